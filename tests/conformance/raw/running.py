"""Plays cases side by side on one kind of broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.verdicts.comparison import TOLERATED_MS, TOLERATED_SHARE
from tests.conformance.backends import CONSUMERS, SHARES, STREAMS, Backend, Backends, Configuration
from tests.conformance.raw import share_requests, streams_requests
from tests.conformance.raw.consumer_requests import LEAVE, beat, enter
from tests.conformance.raw.memory import Ids
from tests.conformance.raw.playing import Measured, Played, Player
from tests.conformance.raw.requests import delete_groups
from tests.conformance.raw.steps import OK, TIMEOUT_MS, Again, Case, ask

PARTITIONS = 3
#: Cases whose times are measured run after the others, so many at a time: they should not disturb each other.
TIMED_AT_ONCE = 12
#: A machine that was busy for a moment is no difference between brokers: a case that went wrong, or whose
#: times were off the rule by more than half of what is tolerated between brokers, is played again, by itself.
#: So often that one of them meets a quiet second, also where every core has ten processes.
PLAYED_AT_MOST = 10
#: Answers by the name of a case.
Expected = Mapping[str, list[dict[str, Any]]]


class _Place(NamedTuple):
    """The broker and the topic of a case."""

    backend: Backend
    topic: str
    topic_id: str


def play(
    backends: Backends, kind: str, cases: Iterable[Case], expected: Expected | None = None
) -> Mapping[str, Played]:
    """Case name -> what came of it. ``expected``: the answers of cases that are played again without them."""
    by_configuration: dict[str, list[Case]] = {}
    configurations: dict[str, Configuration] = {}
    for case in cases:
        by_configuration.setdefault(case.configuration.name, []).append(case)
        configurations[case.configuration.name] = case.configuration
    played: dict[str, Played] = {}
    for name, wanted in by_configuration.items():
        try:
            backend = backends.get(kind, configurations[name])
        except BrokerUnavailable as unavailable:
            played |= {case.name: Played(unavailable=str(unavailable)) for case in wanted}
            continue
        topic = backend.topic(PARTITIONS)
        place = _Place(backend, topic, backend.topic_id(topic))
        played |= asyncio.run(_play(place, wanted, expected or {}))
    return played


def is_within(measured: Measured, other_ms: float | None = None) -> bool:
    """Whether a time is what the rule says, or what another broker took."""
    expected_ms = measured.expected_ms if other_ms is None else other_ms
    return abs(measured.ms - expected_ms) <= tolerated_ms(expected_ms)


def tolerated_ms(expected_ms: float) -> float:
    """Return the tolerance, the one between virtual and real time."""
    return max(TOLERATED_SHARE * expected_ms, TOLERATED_MS)


async def _play(place: _Place, cases: list[Case], expected: Expected) -> dict[str, Played]:
    untimed = [case for case in cases if not case.is_about_time]
    timed = [case for case in cases if case.is_about_time]
    results = await asyncio.gather(*(_play_one(place, case) for case in untimed))
    few = asyncio.Semaphore(TIMED_AT_ONCE)

    async def with_few(case: Case) -> Played:
        async with few:
            return await _play_one(place, case)

    results += await asyncio.gather(*(with_few(case) for case in timed))
    played = {case.name: result for case, result in zip([*untimed, *timed], results, strict=True)}
    for case in cases:
        for _ in range(PLAYED_AT_MOST - 1):
            if not _is_doubtful(case, played[case.name], expected):
                break
            played[case.name] = await _play_one(place, case)
    return played


def _is_doubtful(case: Case, result: Played, expected: Expected) -> bool:
    if case.name in expected and result.answers != expected[case.name]:
        return True
    return case.is_about_time and bool(result.failure or not all(map(_is_close, result.times)))


def _is_close(measured: Measured) -> bool:
    return 2 * abs(measured.ms - measured.expected_ms) <= tolerated_ms(measured.expected_ms)


#: A coordinator learns of a new topic a moment after the topic's leaders are there.
_ALL_TASKS = {"active_tasks": [{"subtopology_id": "0", "partitions": [0, 1, 2]}]}
_KNOWS_THE_TOPIC_TOO = Case(
    "knows-the-topic-too",
    "a streams group of the case's name gets a task for each of the topic's partitions, and is deleted again",
    (
        Again("probe", streams_requests.enter(), _ALL_TASKS),
        ask("probe", streams_requests.beat(epoch=LEAVE), OK),
        Again("probe", delete_groups(), {"results": [{"error_code": "NONE"}]}),
    ),
    STREAMS,
)
_KNOWS_THE_TOPIC_AS_WELL = Case(
    "knows-the-topic-as-well",
    "a share group of the case's name gets the topic's partitions, and is deleted again",
    (
        Again(
            "probe", share_requests.enter(), {"assignment": {"topic_partitions": [{"partitions": [0, 1, 2]}]}}
        ),
        ask("probe", share_requests.beat(epoch=LEAVE), OK),
        Again("probe", delete_groups(), {"results": [{"error_code": "NONE"}]}),
    ),
    SHARES,
)
_KNOWS_THE_TOPIC = Case(
    "knows-the-topic",
    "a consumer group of the case's name gets the topic's partitions, and is deleted again",
    (
        Again("probe", enter(), {"assignment": {"topic_partitions": [{"topic_id": "<topic id>"}]}}),
        ask("probe", beat(epoch=LEAVE), OK),
        Again("probe", delete_groups(), {"results": [{"error_code": "NONE"}]}),
    ),
    CONSUMERS,
)


async def _play_one(place: _Place, case: Case) -> Played:
    ids = Ids(place.backend.group(case.name), place.topic, place.topic_id)
    cluster = ClusterClient(place.backend.broker.bootstrap, "conformance", TIMEOUT_MS)
    try:
        coordinator = (await cluster.find_coordinator(ids.group)).endpoint
    finally:
        cluster.close()
    for probe in (_KNOWS_THE_TOPIC, _KNOWS_THE_TOPIC_TOO, _KNOWS_THE_TOPIC_AS_WELL):
        if case.configuration is not probe.configuration:
            continue
        knows = await Player(coordinator, probe, ids).play()
        if knows.failure:
            return knows
    return await Player(coordinator, case, ids).play()

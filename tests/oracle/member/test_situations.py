"""Our member over TCP does what Kafka's Java consumer (4.3.1, JDK 17) did in the same situation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tests.oracle.build import Built
from tests.oracle.member.command import meet_all, not_expected
from tests.oracle.member.comparison import Difference, differences
from tests.oracle.member.known_differences import KNOWN
from tests.oracle.member.recordings import read_golden, record
from tests.oracle.member.requests import Json
from tests.oracle.member.situation import Situation
from tests.oracle.member.situations import SITUATIONS

Found = dict[str, list[Difference]]

#: How often a situation is played with Kafka's consumer before its difference counts.
PLAYED_AT_MOST = 3


@pytest.fixture(scope="module")
def golden() -> Mapping[str, dict[str, Json]]:
    return read_golden()


@pytest.fixture(scope="module")
def found(golden: Mapping[str, dict[str, Json]]) -> Found:
    """Return what differs in each situation."""
    return asyncio.run(meet_all(golden))


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_our_member_asks_what_kafkas_asks(situation: Situation, found: Found) -> None:
    differing = found[str(situation)]
    sentences = not_expected(situation, differing)
    assert not sentences, "\n".join([*sentences, *map(str, differing)])


@pytest.mark.slow
def test_every_known_difference_is_met(found: Found) -> None:
    """Rows for several situations: a row for one is checked with that one."""
    met = [
        row
        for row in KNOWN
        if any(
            row.covers(situation.name, situation.variant, one.what)
            for situation in SITUATIONS
            for one in found[str(situation)]
        )
    ]
    assert [row for row in KNOWN if row.always and row not in met] == []


def test_the_recordings_are_those_of_the_table(golden: Mapping[str, dict[str, Json]]) -> None:
    assert list(golden) == [str(situation) for situation in SITUATIONS]
    assert len({situation.name for situation in SITUATIONS}) >= 20


def test_a_difference_is_found(golden: Mapping[str, dict[str, Json]]) -> None:
    """In a field, in the bytes of a subscription, in what is asked, in what the application sees."""
    java = golden["first join[range]"]
    joins = [at for at, request in enumerate(java["requests"]) if request["api"] == "JoinGroup"]
    other = [dict(request) for request in java["requests"]]
    other[joins[0]]["session_timeout"] = 1
    other[joins[1]]["protocols"] = []
    observed = [*java["observed"], {"event": "failed", "error": "FENCED_INSTANCE_ID"}]
    shorter = {**java, "requests": other[:-1], "observed": observed}
    assert {one.what for one in differences(java, shorter)} == {
        "JoinGroup.session_timeout",
        "JoinGroup.protocols",
        "requests",
        "observed",
    }
    assert list(differences(java, java)) == []


@pytest.mark.soak
def test_kafkas_consumer_still_does_what_was_recorded(
    golden: Mapping[str, dict[str, Json]], built: Built
) -> None:
    """Kafka's consumer has two threads, and a situation closes it after a heartbeat. On a busy machine that
    heartbeat may come before the consumer knows its positions, which it then does not commit. So a situation
    that differs is played again: what differs every time is a difference.
    """
    differing: dict[str, list[str]] = {}
    to_play = list(SITUATIONS)
    for _ in range(PLAYED_AT_MOST):
        recordings = asyncio.run(record(built, to_play)) if to_play else []
        differing = {
            str(situation): sentences
            for situation, live in zip(to_play, recordings, strict=True)
            if (sentences := _not_as_recorded(golden[str(situation)], live))
        }
        to_play = [situation for situation in to_play if str(situation) in differing]
    assert differing == {}


def _not_as_recorded(recorded: dict[str, Json], live: dict[str, Json]) -> list[str]:
    sometimes = [row for row in KNOWN if not row.always]
    situation, variant = live["situation"], live["variant"]
    return [
        str(one)
        for one in differences(recorded, live)
        if not any(row.covers(situation, variant, one.what) for row in sometimes)
    ]

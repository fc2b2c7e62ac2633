"""The rights that each API needs, and its answers without them, as Kafka 4.3.1 has answered.

`python -m tests.broker.authorization` records `golden/`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import request_type
from tests.broker import wire
from tests.broker.authorization.__main__ import RECORDED, as_lines, golden, heard_from_kafka
from tests.broker.authorization.brokers import AUTHORIZER, Emulator, prepare
from tests.broker.authorization.playing import (
    AUTHORIZATION_ERRORS,
    USER,
    Heard,
    Probe,
    codes_of,
    give,
    must_ask,
    play,
)
from tests.broker.authorization.probes import PROBES, heartbeat
from tests.needs import needed

#: Files of probes about rights that APIs need.
_RIGHTS = ("rights", "streams", "share")


def heard_from_emulator(probes: Sequence[Probe]) -> list[Heard]:
    emulator = Emulator()
    prepare(emulator, emulator.topic_ids)
    return list(play(emulator, probes, emulator.topic_ids))


@pytest.mark.parametrize("name", RECORDED)
def test_answers_are_those_of_kafka(name: str) -> None:
    expected = golden(name).read_text("utf-8").splitlines()
    heard = as_lines(heard_from_emulator(RECORDED[name])).splitlines()
    assert len(heard) == len(expected)
    for ours, theirs in zip(heard, expected, strict=True):
        assert json.loads(ours) == json.loads(theirs)


@pytest.mark.soak
@pytest.mark.parametrize("name", RECORDED)
def test_kafka_still_answers_as_recorded(name: str) -> None:
    with needed():
        heard = asyncio.run(heard_from_kafka(name))
    assert as_lines(heard) == golden(name).read_text("utf-8")


def test_every_api_that_needs_rights_is_refused_without_them() -> None:
    refused = {probe.api_key for name in _RIGHTS for probe in RECORDED[name] if probe.name in _refused()}
    shortened = {wire.LIST_GROUPS}  # groups that the client may not describe are left out
    needing = {key for key, api in APIS.items() if api.needs or api.on_topics or api.on_groups}
    assert needing - shortened <= refused


def _refused() -> set[str]:
    """The probes that Kafka has answered with an error of authorization."""
    lines = [line for name in _RIGHTS for line in golden(name).read_text("utf-8").splitlines()]
    heard = map(json.loads, lines)
    return {
        name for name, _, _, answer in heard if set(codes_of(answer)) & set(AUTHORIZATION_ERRORS) - {42, 54}
    }


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    emulator = Emulator({})
    prepare(emulator, emulator.topic_ids)
    rightless = [probe._replace(rights=((),)) for probe in PROBES if "ACL" not in probe.name]
    codes = {
        code for heard in play(emulator, rightless, emulator.topic_ids) for code in codes_of(heard.answer)
    }
    assert codes & {29, 30, 31, 53} == set()
    assert 0 in codes


@pytest.mark.parametrize(
    ("described", "expected"),
    [("ord*", {"orders"}), ("*", {"orders", "hidden", "__consumer_offsets", "__transaction_state"})],
)
def test_a_regular_expression_matches_the_topics_that_its_member_may_describe(
    described: str, expected: set[str]
) -> None:
    """The topics of coordinators among them: Kafka 4.3.1 assigns these, too."""
    emulator = Emulator()
    prepare(emulator, emulator.topic_ids)
    give(emulator, ["READ GROUP patterns", f"DESCRIBE TOPIC {described}"])
    for _ in range(2):  # the first one has the expression resolved
        joins = heartbeat("patterns", subscribed_topic_names=None, subscribed_topic_regex=".*")
        body = wire.message(request_type(wire.CONSUMER_GROUP_HEARTBEAT, 1), joins)
        assert emulator.ask(USER, wire.CONSUMER_GROUP_HEARTBEAT, 1, body).error_code == 0
    groups = must_ask(emulator, wire.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ("patterns",)}).groups
    (member,) = groups[0].members
    assert {one.topic_name for one in member.target_assignment.topic_partitions} == expected


def test_an_authorizer_without_super_users_lets_nobody_in() -> None:
    emulator = Emulator({name: value for name, value in AUTHORIZER.items() if name != "super.users"})
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    answer = must_ask(emulator, wire.CREATE_TOPICS, 5, {"topics": [topic], "timeout": 10_000})
    assert [one.error_code for one in answer.topics] == [Error.TOPIC_AUTHORIZATION_FAILED]
    assert "orders" not in emulator.topic_ids()

"""Kafka 4.3.1 freezes a consumer group whose metadata lies about its lengths; by default it is answered."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import Subscription, encode_subscription
from groupstorm.coordinator.classic.subscriptions import assigned_partitions, subscribed_topics
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

HUGE_ARRAY = b"\0\1\x7f\xff\xff\xff"
NULL_ARRAY = b"\0\1\xff\xff\xff\xff"
NULL_STRING = b"\0\1\0\0\0\1\xff\xff\0\0\0\0"
LONG_STRING = b"\0\1\0\0\0\1\0\x09foo"
LONG_USER_DATA = b"\0\1\0\0\0\0\0\0\0\x09foo"
FREEZING = [HUGE_ARRAY, NULL_ARRAY, NULL_STRING, LONG_STRING, LONG_USER_DATA]
HARMLESS = [b"", b"\0", b"\0\1\0\0", b"\0\1\0\0\0\0", b"\0\1\0\0\0\0\xff\xff\xff\xff"]


#: A subscription to no topics.
NOTHING = encode_subscription(Subscription(()), 1)


def _world(compatibility: Compatibility) -> World:
    return World(no_delay(compatibility=compatibility))


def _join(world: World, metadata: bytes, member: str = "", kind: str = "consumer") -> object:
    return world.join(member, protocols=(("range", metadata),), kind=kind)


@pytest.mark.parametrize("metadata", FREEZING)
def test_in_4_3_1_the_round_does_not_close(metadata: bytes) -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    token = _join(world, metadata)
    world.advance(60_000)
    assert world.error(token) is None
    assert (world.state, world.group.generation) == ("PreparingRebalance", 1)
    assert world.group.protocol == "range"
    assert "unreadable subscription" in world.of(events.OperationFailed)[0].detail


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (b"", HUGE_ARRAY, "CompletingRebalance"),
        (HUGE_ARRAY, b"", "PreparingRebalance"),
    ],
)
def test_the_first_member_that_cannot_be_read_decides(first: bytes, second: bytes, state: str) -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    _join(world, first)
    _join(world, second)
    world.advance(0)
    assert list(world.group.members) == ["m1", "m2"]
    assert world.state == state


def test_a_round_that_breaks_off_leaves_the_topics_that_were_known() -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    _join(world, NOTHING)
    world.advance(0)
    _join(world, HUGE_ARRAY, "m1")
    world.advance(60_000)
    assert subscribed_topics(world.group, Compatibility.KAFKA_4_3_1) == frozenset()


@pytest.mark.parametrize("metadata", FREEZING)
def test_by_default_it_does(metadata: bytes) -> None:
    world = _world(Compatibility.REPAIRED)
    token = _join(world, metadata)
    world.advance(0)
    assert world.error(token) is Error.NONE
    assert subscribed_topics(world.group, Compatibility.REPAIRED) is None


@pytest.mark.parametrize("metadata", HARMLESS)
@pytest.mark.parametrize("compatibility", Compatibility)
def test_bytes_that_end_early_freeze_neither(metadata: bytes, compatibility: Compatibility) -> None:
    world = _world(compatibility)
    token = _join(world, metadata)
    world.advance(0)
    assert world.error(token) is Error.NONE


def test_other_types_are_not_looked_into() -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    token = _join(world, HUGE_ARRAY, kind="connect")
    world.advance(0)
    assert world.error(token) is Error.NONE


def test_the_request_that_closes_the_round_gets_an_error_and_the_others_stay_parked() -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    first = _join(world, NOTHING)
    world.advance(0)
    second = _join(world, HUGE_ARRAY)
    assert world.error(first) is Error.NONE
    again = _join(world, NOTHING, "m1")
    assert world.error(again) is Error.UNKNOWN_SERVER_ERROR
    assert world.joined(again).member_id == ""
    assert world.error(second) is None
    assert (world.state, world.group.generation) == ("PreparingRebalance", 2)


def test_a_frozen_group_thaws_when_the_culprit_leaves() -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    good, bad = _join(world, NOTHING), _join(world, HUGE_ARRAY)
    world.advance(0)
    assert world.error(good) is None
    # the group was new: a leave does not close its first round, the expiry of the parked newcomers does
    assert world.leave("m2") == [Error.NONE]
    assert world.error(bad) is Error.UNKNOWN_MEMBER_ID
    again = _join(world, NOTHING, "m1")
    assert world.error(again) is None
    world.advance(300_000)
    assert world.error(again) is Error.UNKNOWN_MEMBER_ID
    assert world.state == "Empty"


def test_subscribed_topics() -> None:
    world = _world(Compatibility.KAFKA_4_3_1)
    for topics in (("a", "b"), ("b", "c")):
        _join(world, encode_subscription(Subscription(topics), 3))
    assert subscribed_topics(world.group, Compatibility.KAFKA_4_3_1) is None, "no protocol is chosen yet"
    world.advance(0)
    assert subscribed_topics(world.group, Compatibility.KAFKA_4_3_1) == frozenset("abc")
    world.leave("m1", "m2")
    assert subscribed_topics(world.group, Compatibility.KAFKA_4_3_1) == frozenset()


def test_assignments_that_are_none_have_no_partitions() -> None:
    assert assigned_partitions(b"") is None
    assert assigned_partitions(b"\0\1\x7f\xff\xff\xff") is None
    assert assigned_partitions(b"\0\1\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\3\xff\xff\xff\xff") == ("t-0", "t-3")

"""Kafka 4.3.1 freezes a consumer group whose metadata lies about its lengths; by default it is answered."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.classic.subscriptions import subscribed_topics
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


def _joined(metadata: bytes, compatibility: Compatibility) -> tuple[World, object]:
    """A group whose only member joins with this metadata."""
    world = World(no_delay(compatibility=compatibility))
    token = world.join(protocols=(("range", metadata),))
    world.advance(0)
    return world, token


@pytest.mark.parametrize("metadata", FREEZING)
def test_in_4_3_1_the_round_does_not_close(metadata: bytes) -> None:
    world, token = _joined(metadata, Compatibility.KAFKA_4_3_1)
    world.advance(60_000)
    assert world.error(token) is None
    assert (world.state, world.group.generation) == ("PreparingRebalance", 1)
    assert world.group.protocol == "range"
    assert "unreadable subscription" in world.of(events.OperationFailed)[0].detail


@pytest.mark.parametrize("metadata", FREEZING)
def test_by_default_it_does(metadata: bytes) -> None:
    world, token = _joined(metadata, Compatibility.REPAIRED)
    assert world.error(token) is Error.NONE
    assert subscribed_topics(world.group, Compatibility.REPAIRED) is None


@pytest.mark.parametrize("metadata", HARMLESS)
@pytest.mark.parametrize("compatibility", Compatibility)
def test_bytes_that_end_early_freeze_neither(metadata: bytes, compatibility: Compatibility) -> None:
    world, token = _joined(metadata, compatibility)
    assert world.error(token) is Error.NONE

"""When a round closes: its first delay, and the time-outs of rounds that nobody joins."""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.config import CoordinatorConfig
from tests.coordinator.world import World, no_delay


def test_a_round_that_no_static_member_has_joined_is_closed_at_the_next_timeout_for_those_who_have() -> None:
    """Both are silent for the first 5 s. One joins at 7 s; the other one's session would last for 30 s."""
    world = World(no_delay())
    settings: dict[str, Any] = {"rebalance": 5_000, "session": 30_000}
    for instance in ("i1", "i2"):
        world.join(instance=instance, **settings)
    world.advance(0)
    world.join("m1", "i1", **settings)
    world.join("m2", "i2", **settings)
    world.complete()
    began_ms = world.now_ms
    world.join(**settings)
    assert world.state == "PreparingRebalance"
    world.leave("m3")
    world.advance(7_000)
    token = world.join("m1", "i1", **settings)
    world.advance(10_000)
    assert world.answered_at_ms[token] == began_ms + 10_000
    assert world.joined(token).leader == "m1"


def test_a_round_without_members_ends_at_once_although_an_id_is_pending() -> None:
    """The longest rebalance timeout of nobody is 0."""
    world = World(no_delay())
    world.stable(1)
    world.join(version=4)
    world.leave("m1")
    assert (world.state, list(world.group.members)) == ("PreparingRebalance", [])
    world.advance(0)
    assert world.state == "Empty"


def test_a_round_whose_timeout_is_0_and_that_nobody_joins_looks_again_after_a_millisecond() -> None:
    world = World(no_delay())
    settings: dict[str, Any] = {"rebalance": 0, "session": 30_000}
    world.join(instance="i1", **settings)
    closed = world.coordinator.fire_one(world.now_ms)  # before the sync times out at the same instant
    assert closed is not None
    world.take(closed)
    world.complete()
    world.advance(1_000)
    world.join(**settings)
    world.leave("m2")
    world.advance(0)
    assert world.state == "PreparingRebalance"
    assert world.coordinator.next_deadline() == world.now_ms + 1


def test_only_who_joins_during_the_initial_delay_extends_it() -> None:
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=3_000))
    world.join()
    world.advance(3_000)
    world.complete({"m1": b""})
    world.join()  # in a round of a group that was stable
    world.leave("m1")
    world.leave("m2")
    assert world.state == "Empty"
    began_ms = world.now_ms
    token = world.join()
    world.advance(3_000)
    assert world.answered_at_ms[token] == began_ms + 3_000


def test_once_all_have_synced_nothing_of_the_round_is_awaited() -> None:
    world = World(no_delay())
    world.stable(rebalance=7_000, session=10_000)
    assert world.coordinator.next_deadline() == 10_000, "the sessions"

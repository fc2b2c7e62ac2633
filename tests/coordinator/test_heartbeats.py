"""A heartbeat's error on its own, as storms ask for it, against the whole request."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse
from tests.coordinator.world import World, no_delay

STATES = ("no group", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable")

#: group, member, group.instance.id, generation less that of the group
HEARTBEATS = {
    "leader": ("g", "m1", None, 0),
    "follower": ("g", "m2", None, 0),
    "of an older generation": ("g", "m2", None, -1),
    "of nobody": ("g", "m9", None, 0),
    "with an instance that there is not": ("g", "m2", "i9", 0),
    "of another group": ("other", "m1", None, 0),
    "without a group": ("", "m1", None, 0),
}


def in_state(state: str) -> World:
    """m1 leads and m2 follows, both of generation 1 or later; empty: they have left."""
    world = World(no_delay())
    if state == "no group":
        return world
    world.stable()
    match state:
        case "Empty":
            world.leave("m1", "m2")
        case "PreparingRebalance":
            world.join("m1")
        case "CompletingRebalance":
            world.join("m1")
            world.join("m2")
    assert world.state == state
    return world


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("which", HEARTBEATS)
def test_it_is_what_the_request_is_answered(state: str, which: str) -> None:
    asked, alone = in_state(state), in_state(state)
    group, member, instance, less = HEARTBEATS[which]
    now_ms = asked.now_ms + 700
    known = asked.coordinator.group("g")
    generation = (0 if known is None else known.generation) + less
    request = Heartbeat(group, member, instance, generation, 4, "c")
    [(_, response)] = asked.coordinator.handle(request, now_ms, "token").replies
    error = alone.coordinator.heartbeat(group, member, instance, generation, now_ms)
    assert isinstance(response, HeartbeatResponse)
    assert error is response.error
    assert alone.coordinator.next_deadline() == asked.coordinator.next_deadline()


def test_it_cannot_be_told_while_a_write_holds_the_answers_up() -> None:
    world = in_state("CompletingRebalance")
    world.append_delay_ms = 50
    world.sync("m1", {"m1": b"1", "m2": b"2"})
    generation = world.group.generation
    assert world.coordinator.heartbeat("g", "m1", None, generation, world.now_ms) is None
    world.advance(50)
    assert world.coordinator.heartbeat("g", "m1", None, generation, world.now_ms) is Error.NONE

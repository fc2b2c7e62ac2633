"""Answers to requests, by the state of the group (GMM and ClassicGroup of Kafka 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.coordinator.world import World, no_delay

PARKED = None


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


Ask = Callable[[World], Any]
_ASK: dict[str, Ask] = {
    "join, new": lambda world: world.error(world.join()),
    "join, new, sent back for an id": lambda world: world.error(world.join(version=4)),
    "join, member again": lambda world: world.error(world.join("m2")),
    "join, leader again": lambda world: world.error(world.join("m1")),
    "join, member with other metadata": lambda world: world.error(
        world.join("m2", protocols=(("range", b"x"),))
    ),
    "join, unknown id": lambda world: world.error(world.join("nobody")),
    "join, other type": lambda world: world.error(world.join(kind="connect")),
    "join, no protocol in common": lambda world: world.error(world.join(protocols=(("sticky", b""),))),
    "sync": lambda world: world.error(world.sync("m2")),
    "sync, unknown id": lambda world: world.error(world.sync("nobody")),
    "sync, old generation": lambda world: world.error(world.sync("m2", generation=0)),
    "sync, other protocol": lambda world: world.error(world.sync("m2", protocol="sticky")),
    "sync, other type": lambda world: world.error(world.sync("m2", kind="connect")),
    "heartbeat": lambda world: world.heartbeat("m2"),
    "heartbeat, unknown id": lambda world: world.heartbeat("nobody"),
    "heartbeat, old generation": lambda world: world.heartbeat("m2", generation=0),
    "leave": lambda world: world.leave("m2")[0],
    "leave, unknown id": lambda world: world.leave("nobody")[0],
    "leave, no id": lambda world: world.leave("")[0],
    "commit": lambda world: world.commit("m2", generation=_generation(world)),
    "commit, old generation": lambda world: world.commit("m2", generation=0),
    "commit, old version": lambda world: world.commit("m2", generation=_generation(world), version=8),
    "commit, unknown id": lambda world: world.commit("nobody", generation=_generation(world)),
    "commit from outside": lambda world: world.commit(),
    "commit from outside with an id": lambda world: world.commit("m2"),
}


def _generation(world: World) -> int:
    group = world.classic_group()
    return group.generation if group is not None else 1


_STATES = ("no group", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
_UNKNOWN, _GENERATION = Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION
_BUSY, _FOREIGN, _OK = Error.REBALANCE_IN_PROGRESS, Error.INCONSISTENT_GROUP_PROTOCOL, Error.NONE
_SENT_BACK, _NO_GROUP = Error.MEMBER_ID_REQUIRED, Error.GROUP_ID_NOT_FOUND

# request: (no group, Empty, PreparingRebalance, CompletingRebalance, Stable)
_TABLE: dict[str, tuple[Error | None, ...]] = {
    "join, new": (PARKED, PARKED, PARKED, PARKED, PARKED),
    "join, new, sent back for an id": (_SENT_BACK,) * 5,
    "join, member again": (_UNKNOWN, _UNKNOWN, _OK, _OK, _OK),
    "join, leader again": (_UNKNOWN, _UNKNOWN, PARKED, _OK, PARKED),
    "join, member with other metadata": (_UNKNOWN, _UNKNOWN, _OK, PARKED, PARKED),
    "join, unknown id": (_UNKNOWN,) * 5,
    "join, other type": (PARKED, PARKED, _FOREIGN, _FOREIGN, _FOREIGN),
    "join, no protocol in common": (PARKED, PARKED, _FOREIGN, _FOREIGN, _FOREIGN),
    "sync": (_UNKNOWN, _UNKNOWN, _BUSY, PARKED, _OK),
    "sync, unknown id": (_UNKNOWN,) * 5,
    "sync, old generation": (_UNKNOWN, _UNKNOWN, _GENERATION, _GENERATION, _GENERATION),
    "sync, other protocol": (_UNKNOWN, _UNKNOWN, _FOREIGN, _FOREIGN, _FOREIGN),
    "sync, other type": (_UNKNOWN, _UNKNOWN, _FOREIGN, _FOREIGN, _FOREIGN),
    "heartbeat": (_UNKNOWN, _UNKNOWN, _BUSY, _OK, _OK),
    "heartbeat, unknown id": (_UNKNOWN,) * 5,
    "heartbeat, old generation": (_UNKNOWN, _UNKNOWN, _GENERATION, _GENERATION, _GENERATION),
    "leave": (_UNKNOWN, _UNKNOWN, _OK, _OK, _OK),
    "leave, unknown id": (_UNKNOWN,) * 5,
    "leave, no id": (_UNKNOWN,) * 5,
    "commit": (_NO_GROUP, _UNKNOWN, _OK, _BUSY, _OK),
    "commit, old generation": (_NO_GROUP, _UNKNOWN, _GENERATION, _GENERATION, _GENERATION),
    "commit, old version": (_GENERATION, _UNKNOWN, _OK, _BUSY, _OK),
    "commit, unknown id": (_NO_GROUP, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN),
    "commit from outside": (_OK, _OK, _UNKNOWN, _UNKNOWN, _UNKNOWN),
    "commit from outside with an id": (_OK, _OK, _GENERATION, _GENERATION, _GENERATION),
}
_CASES = [
    pytest.param(what, state, answer, id=f"{what} - {state}")
    for what, answers in _TABLE.items()
    for state, answer in zip(_STATES, answers, strict=True)
]


@pytest.mark.parametrize(("what", "state", "answer"), _CASES)
def test_answer(what: str, state: str, answer: Error | None) -> None:
    assert _ASK[what](in_state(state)) is answer


def test_the_empty_group_may_commit_and_be_described() -> None:
    """For old clients (KIP-289): only membership needs a name."""
    world = World()
    assert world.commit(group="") is Error.NONE
    assert world.describe("").state == "Empty"

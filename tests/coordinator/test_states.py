"""Every row of the transition table is taken by the requests and timers that it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groupstorm.assignors.userdata import Subscription, encode_subscription
from groupstorm.coordinator.classic.states import TRANSITIONS, mermaid, next_state
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import IllegalTransition
from groupstorm.coordinator.records import AppendCause
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState
from tests.coordinator.world import World, no_delay

OTHER = (("range", b"other"),)

Story = Callable[[World], None]
_STORIES: dict[tuple[str, str], Story] = {}


def story(state: str, cause: str) -> Callable[[Story], Story]:
    def keep(tell: Story) -> Story:
        _STORIES[(state, cause)] = tell
        return tell

    return keep


@story("Empty", "new-member")
def _(world: World) -> None:
    world.join(version=3)


@story("Empty", "pending-member")
def _(world: World) -> None:
    world.join(version=4)
    world.join("m1", version=4)


@story("Empty", "static-member")
def _(world: World) -> None:
    world.join(instance="i1")


@story("PreparingRebalance", "initial-delay")
def _(world: World) -> None:
    world.join()
    world.advance(0)


@story("PreparingRebalance", "all-joined")
def _(world: World) -> None:
    world.stable()
    world.join("m1")
    world.join("m2")


@story("PreparingRebalance", "rebalance-timeout")
def _(world: World) -> None:
    world.stable()
    world.join("m1")
    for _second in range(60):
        world.heartbeat("m2")
        world.advance(1_000)


@story("PreparingRebalance", "no-members")
def _(world: World) -> None:
    world.stable()
    world.leave("m1", "m2")


def _completing(world: World) -> None:
    world.stable()
    world.join("m1")
    world.join("m2")
    world.events.clear()


@story("CompletingRebalance", "assigned")
def _(world: World) -> None:
    _completing(world)
    world.sync("m1")


@story("CompletingRebalance", "append-failed")
def _(world: World) -> None:
    _completing(world)
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    world.sync("m1")


@story("CompletingRebalance", "new-member")
def _(world: World) -> None:
    _completing(world)
    world.join()


@story("CompletingRebalance", "pending-member")
def _(world: World) -> None:
    _completing(world)
    world.join(version=4)
    world.join("m3", version=4)


@story("CompletingRebalance", "static-member")
def _(world: World) -> None:
    _completing(world)
    world.join(instance="i1")


@story("CompletingRebalance", "member-updated")
def _(world: World) -> None:
    _completing(world)
    world.join("m2", protocols=OTHER)


@story("CompletingRebalance", "left")
def _(world: World) -> None:
    _completing(world)
    world.leave("m2")


@story("CompletingRebalance", "session-expired")
def _(world: World) -> None:
    _completing(world)
    world.advance(5_000)
    world.heartbeat("m1")
    world.advance(5_000)


@story("CompletingRebalance", "sync-timeout")
def _(world: World) -> None:
    _completing(world)
    for _second in range(60):
        world.heartbeat("m1")
        world.heartbeat("m2")
        world.advance(1_000)


@story("Stable", "new-member")
def _(world: World) -> None:
    world.stable()
    world.join()


@story("Stable", "pending-member")
def _(world: World) -> None:
    world.stable()
    world.join(version=4)
    world.join("m3", version=4)


@story("Stable", "static-member")
def _(world: World) -> None:
    world.stable()
    world.join(instance="i1")


@story("Stable", "member-updated")
def _(world: World) -> None:
    world.stable()
    world.join("m2", protocols=OTHER)


@story("Stable", "leader-rejoined")
def _(world: World) -> None:
    world.stable()
    world.join("m1")


@story("Stable", "left")
def _(world: World) -> None:
    world.stable()
    world.leave("m2")


@story("Stable", "session-expired")
def _(world: World) -> None:
    world.stable()
    world.advance(5_000)
    world.heartbeat("m1")
    world.advance(5_000)


@story("Stable", "sync-timeout")
def _(world: World) -> None:
    _completing(world)
    world.sync("m1")
    for _second in range(60):
        world.heartbeat("m1")
        world.heartbeat("m2")
        world.advance(1_000)


@story("Stable", "over-capacity")
def _(world: World) -> None:
    world.stable(members=2)
    smaller = world.successor(max_size=1)
    world.take(Effects([], smaller.events, []))


@story("Stable", "downgraded")
def _(world: World) -> None:
    """The member of the new protocol leaves a group whose other member speaks the classic one."""
    subscription = encode_subscription(Subscription(("t",)))
    world.step("chb", member="new", epoch=0, rebalance=10_000, topics=["t"], owned={})
    world.join(member="old", protocols=(("range", subscription),))
    world.step("chb", member="new", epoch=-1)


@story("PreparingRebalance", "failed")
def _(world: World) -> None:
    world.join(protocols=(("range", b""), ("range", b"")))
    world.advance(0)


@story("CompletingRebalance", "failed")
def _(world: World) -> None:
    _completing(world)
    _damage(world)
    world.advance(10_000)


@story("Stable", "failed")
def _(world: World) -> None:
    world.stable()
    _damage(world)
    world.advance(10_000)


def _damage(world: World) -> None:
    """The end of the first member's session will raise a TypeError."""
    world.group.members["m1"].names = None  # type: ignore[assignment]


_ROWS = [(before, cause, after) for before, row in TRANSITIONS.items() for cause, after in row.items()]


@pytest.mark.parametrize(("before", "cause", "after"), _ROWS, ids=str)
def test_row_is_taken(before: GroupState, cause: Cause, after: GroupState) -> None:
    world = World(no_delay())
    _STORIES[(before, cause)](world)
    taken = [
        (change.previous_state, change.cause, change.state) for change in world.of(events.GroupStateChanged)
    ]
    assert (before, cause, after) in taken


def test_every_story_is_a_row() -> None:
    assert set(_STORIES) == {(before, cause) for before, cause, _ in _ROWS}


@pytest.mark.parametrize("state", GroupState)
@pytest.mark.parametrize("cause", Cause)
def test_what_is_not_in_the_table_raises_a_sentence(state: GroupState, cause: Cause) -> None:
    if cause in TRANSITIONS[state]:
        assert next_state("g", state, cause) is TRANSITIONS[state][cause]
        return
    with pytest.raises(IllegalTransition, match=f"group 'g' cannot leave {state} because of '{cause}'"):
        next_state("g", state, cause)


def test_kafkas_pairs_of_states_and_no_others() -> None:
    """ClassicGroupState.validPreviousStates, without Dead and without groups that fail."""
    assert {(before, after) for before, cause, after in _ROWS if cause is not Cause.FAILED} == {
        (GroupState.EMPTY, GroupState.PREPARING_REBALANCE),
        (GroupState.PREPARING_REBALANCE, GroupState.EMPTY),
        (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
        (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE),
        (GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
        (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
    }


def test_the_documents_diagram_is_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "coordinator.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{mermaid()}```" in text


def test_append_causes_are_those_of_the_event() -> None:
    assert [cause.value for cause in AppendCause] == [
        "empty-group",
        "static-member",
        "generation",
        "offset-commit",
        "txn-offset-commit",
        "transaction-end",
        "topics-deleted",
        "offsets-deleted",
        "group-deleted",
        "expired",
        "member-heartbeat",
        "group-downgraded",
        "members-removed",
        "regexes-resolved",
    ]

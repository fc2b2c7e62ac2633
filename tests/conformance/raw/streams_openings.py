"""Steps that most cases of streams groups begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.backends import STREAMS
from tests.conformance.raw.consumer_openings import at
from tests.conformance.raw.steps import OK, Case, Steps, ask
from tests.conformance.raw.streams_requests import beat, describe_streams, enter, owning


def case(name: str, about: str, *steps: Any) -> Case:
    """A case on a broker whose streams groups get new targets at once."""
    return Case(f"streams-{name}", about, steps, STREAMS)


def given(epoch: int, *active: int, **more: Any) -> Mapping[str, Any]:
    """The answer to a heartbeat: this epoch, these tasks of the only subtopology."""
    tasks = [{"subtopology_id": "0", "partitions": list(active)}] if active else []
    return at(epoch, active_tasks=tasks, **more)


def unchanged(epoch: int) -> Mapping[str, Any]:
    """Return the answer without tasks: the member's have not changed."""
    return at(epoch, active_tasks=None)


def described(state: str, **more: Any) -> Mapping[str, Any]:
    """The answer to StreamsGroupDescribe of the case's group."""
    return {"groups": [{"error_code": "NONE", "group_state": state, **more}]}


def group_of_one(who: str = "a", **more: Any) -> Steps:
    """A member alone, with all three tasks."""
    return ask(who, enter(**more), given(2, 0, 1, 2))


def group_of_two() -> Steps:
    """Members a and b, Stable in group epoch 3: a has two tasks, b has one."""
    return (
        group_of_one(),
        ask("b", enter(), given(3)),
        ask("a", beat(), given(2, 0, 1)),
        ask("a", beat(**owning({"0": (0, 1)})), unchanged(3)),
        ask("b", beat(), given(3, 2)),
        ask("admin", describe_streams(), described("Stable", group_epoch=3, assignment_epoch=3)),
    )


def still(*who: str) -> Steps:
    """These members' heartbeats pass, and nothing about their tasks has changed."""
    return [ask(one, beat(), {**OK, "active_tasks": None}) for one in who]

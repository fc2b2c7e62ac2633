"""Steps that most cases of consumer groups begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import CONSUMERS
from tests.conformance.raw.consumer_requests import beat, describe_consumers, enter
from tests.conformance.raw.steps import OK, Again, Case, OwnedBy, Steps, ask

OWN = OwnedBy()


def case(name: str, about: str, *steps: Any) -> Case:
    """A case on a broker whose consumer groups get new targets at once."""
    return Case(name, about, steps, CONSUMERS)


def at(epoch: int, **more: Any) -> Mapping[str, Any]:
    """The answer to a heartbeat: the member has this epoch."""
    return {"error_code": "NONE", "member_epoch": epoch, **more}


def given(epoch: int, *partitions: int) -> Mapping[str, Any]:
    """Return the answer with these partitions of the case's topic; none: an empty assignment."""
    listed = [{"topic_id": "<topic id>", "partitions": list(partitions)}] if partitions else []
    return at(epoch, assignment={"topic_partitions": listed})


def unchanged(epoch: int) -> Mapping[str, Any]:
    """Return the answer without an assignment: the member's has not changed."""
    return at(epoch, assignment=None)


def refused(code: Error, sentence: str | None = None) -> Mapping[str, Any]:
    """The answer to a heartbeat that is refused, with Kafka's message."""
    return {"error_code": code.name, **({} if sentence is None else {"error_message": sentence})}


def described(state: str, *members: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
    """The answer to ConsumerGroupDescribe of the case's group."""
    return {"groups": [{"error_code": "NONE", "group_state": state, "members": list(members), **more}]}


def group_of_one(who: str = "a", **more: Any) -> Steps:
    """A member alone, with all three partitions."""
    return ask(who, enter(**more), given(2, 0, 1, 2))


def group_of_two(**more: Any) -> Steps:
    """Members a and b, Stable in group epoch 3: a has two partitions, b has one."""
    return (
        group_of_one(**more),
        ask("b", enter(), given(3)),
        ask("a", beat(), given(2, 0, 1)),
        ask("a", beat(owned=OWN), unchanged(3)),
        ask("b", beat(), given(3, 2)),
        ask("b", beat(owned=OWN), unchanged(3)),
        ask("admin", describe_consumers(), described("Stable", {}, {})),
    )


def until(state: str, *, members: int, epoch: int | None = None) -> Again:
    """Ask again until the group is described so."""
    more = {} if epoch is None else {"group_epoch": epoch}
    return Again("admin", describe_consumers(), described(state, *[{}] * members, **more))


def still(*who: str) -> Steps:
    """These members' heartbeats pass, and nothing about their assignments has changed."""
    return [ask(one, beat(), {**OK, "assignment": None}) for one in who]

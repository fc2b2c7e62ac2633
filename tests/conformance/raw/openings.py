"""Steps that most cases begin with: members join, a group settles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.requests import Assigned, join, sync
from tests.conformance.raw.steps import OK, Receive, Send, Steps, Until, ask

#: JoinGroup from this version on draws the member id first (KIP-394).
_TWO_STEPS_SINCE = 4

MEMBER_ID_REQUIRED = Error.MEMBER_ID_REQUIRED


def joined(generation: int, **more: Any) -> dict[str, Any]:
    """The answer to a JoinGroup that is accepted."""
    return {"error_code": "NONE", "generation_id": generation, **more}


def listed(*states: str) -> Mapping[str, Any]:
    """The answer to ListGroups."""
    return {"error_code": "NONE", "groups": [{"group_state": state} for state in states]}


def deleted(code: Error) -> Mapping[str, Any]:
    """The answer to DeleteGroups."""
    return {"results": [{"error_code": code.name}]}


def each(*codes: Error) -> Mapping[str, Any]:
    """An error for each partition of the only topic."""
    return {"topics": [{"partitions": [{"error_code": code.name} for code in codes]}]}


def request_member_id(who: str, *, version: int = 9, **more: Any) -> Steps:
    """Get a member id, if this member has to have one before it may join."""
    if version < _TWO_STEPS_SINCE or more.get("instance") is not None:
        return ()
    return ask(who, join(version=version, member="", **more), MEMBER_ID_REQUIRED)


def send_join(who: str, *, mark: str = "", version: int = 9, **more: Any) -> Steps:
    """Join, without waiting for the answer; ``mark``: when the JoinGroup that is parked was sent."""
    return (
        request_member_id(who, version=version, **more),
        Send(who, join(version=version, **more), mark=mark),
    )


def group_of_one(
    who: str = "a", *, plan: bytes | Assigned = b"all", sync_version: int = 5, **more: Any
) -> Steps:
    """A group of one, Stable in its first generation."""
    protocols = more.get("protocols") or [("range", b"")]
    first = sync(
        assignments={who: plan},
        version=sync_version,
        instance=more.get("instance"),
        protocol=protocols[0][0],
        protocol_type=more.get("protocol_type", "consumer"),
    )
    return (send_join(who, **more), Receive(who, joined(1)), ask(who, first, OK))


def second_round(*others: str, leader: str = "a", own: Any = None, mark: str = "", **more: Any) -> Steps:
    """``others`` come to the group that ``leader`` has alone; all have their answers, nobody has synced.

    ``own``: what differs in the leader's join. ``mark``: when the last who had to join did.
    """
    rejoined = {**more, **(own or {})}
    generation = {"error_code": "NONE"}
    return (
        [send_join(who, **more) for who in others],
        Until("PreparingRebalance", 1 + len(others)),
        Send(leader, join(**rejoined), mark=mark),
        [Receive(who, generation) for who in (leader, *others)],
    )


def all_sync(*others: str, leader: str = "a", **more: Any) -> Steps:
    """All of a round sync: each gets ``for <name>``."""
    everyone = (leader, *others)
    plan = {who: b"for " + who.encode() for who in everyone}
    return (
        [Send(who, sync(**more)) for who in others],
        Send(leader, sync(assignments=plan, **more)),
        [Receive(who, {"error_code": "NONE", "assignment": f"for {who}"}) for who in everyone],
    )


def stable_group(*others: str, leader: str = "a", own: Any = None, **more: Any) -> Steps:
    """A Stable group in its second generation, led by ``leader``; ``own``: what differs in its joins."""
    return (
        group_of_one(leader, **{**more, **(own or {})}),
        second_round(*others, leader=leader, own=own, **more),
        all_sync(*others, leader=leader),
    )

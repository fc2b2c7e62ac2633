"""Static membership (KIP-345): replacement, fencing, and what ends a static member."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import group_of_one, joined, request_member_id, stable_group
from tests.conformance.raw.requests import SESSION_MS, commit, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Receive, Send, Until, ask, case, late

_STATIC_A = {"instance": "i"}
_FENCED = {"error_code": "FENCED_INSTANCE_ID"}
REPLACEMENTS = (
    *(
        case(
            f"static-leader-comes-back-v{version}",
            "in Stable no round: "
            + (
                "the answer has all members and says to skip the assignment (KIP-814)"
                if version >= 9
                else "the answer names its former id as the leader, so it behaves as a follower"
            ),
            stable_group("b", own={**_STATIC_A, "version": version}),
            ask(
                "again",
                join(instance="i", version=version),
                joined(2)
                | (
                    {"skip_assignment": True, "leader": "{again}", "members": [{}, {}]}
                    if version >= 9
                    else {"leader": "{a}", "members": []}
                ),
            ),
            ask("again", sync(instance="i"), {"error_code": "NONE", "assignment": "for a"}),
            ask("b", heartbeat(), OK),
            ask("a", heartbeat(instance="i"), _FENCED),
        )
        for version in (5, 8, 9)
    ),
)

FENCING = (
    case(
        "old-id-of-an-instance",
        "FENCED_INSTANCE_ID in every request of a member; without the instance id it is unknown",
        group_of_one(instance="i"),
        ask("again", join(instance="i"), OK),
        ask("a", join(instance="i"), _FENCED),
        ask("a", sync(instance="i"), _FENCED),
        ask("a", heartbeat(instance="i"), _FENCED),
        ask("a", commit(instance="i"), {"topics": [{"partitions": [_FENCED]}]}),
        ask("a", leave(("$a", "i")), {"members": [_FENCED]}),
        ask("a", heartbeat(), Error.UNKNOWN_MEMBER_ID),
        ask("again", heartbeat(instance="i"), OK),
    ),
    case(
        "administrator-removes-an-instance",
        "LeaveGroup with the instance id alone; a wrong member id beside it is fenced",
        stable_group("b", own=_STATIC_A),
        ask("admin", leave(("$b", "i")), {"members": [_FENCED]}),
        ask(
            "admin",
            leave(("", "i")),
            {"members": [{"member_id": "", "group_instance_id": "i", "error_code": "NONE"}]},
        ),
        ask("a", heartbeat(instance="i"), Error.UNKNOWN_MEMBER_ID),
        ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        Send("b", join()),
        Receive("b", joined(3, leader="{b}")),
    ),
    case(
        "static-member-misses-a-round",
        "the rebalance timeout does not remove the member: it stays, with its former subscription",
        group_of_one(rebalance=1_000),
        Send("s", join(instance="i", rebalance=1_000)),
        Until("PreparingRebalance", 2),
        Send("a", join(rebalance=1_000)),
        Receive("a", {"generation_id": 2}),
        Receive("s", {"generation_id": 2}),
        Send("s", sync(instance="i")),
        ask("a", sync(assignments={"a": b"for a", "s": b"for s"}), OK),
        Receive("s", {"assignment": "for s"}),
        Send("a", join(rebalance=1_000), mark="round"),
        late(
            "a",
            joined(3, members=[{}, {}]),
            "a round waits for a static member that does not join",
            "round",
            1_000,
        ),
    ),
    case(
        "static-member-without-heartbeats",
        "the session timeout removes the member, like any other",
        request_member_id("b"),
        group_of_one(instance="i", session=1_000),
        Send("b", join(session=SESSION_MS)),
        Until("PreparingRebalance", 2, heartbeats_of=("a",)),
        ask("a", heartbeat(instance="i"), Error.REBALANCE_IN_PROGRESS, mark="last"),
        late("b", joined(2, leader="{b}"), "the session of a static member ends", "last", 1_000),
    ),
)

CASES = (*REPLACEMENTS, *FENCING)

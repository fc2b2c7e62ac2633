"""SyncGroup, Heartbeat and LeaveGroup in each state of the group."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import all_sync, joined, stable_group
from tests.conformance.raw.requests import heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Receive, Send, Until, ask, case

_BEFORE, _AFTER = "$-1", "$+1"


def _left(code: Error) -> dict[str, object]:
    """LeaveGroup 3 and newer answers for each member."""
    return {"error_code": "NONE", "members": [{"error_code": code.name}]}


SYNCS = (
    case(
        "sync-with-unknown-group",
        "UNKNOWN_MEMBER_ID in SyncGroup and Heartbeat; in LeaveGroup as the member's error",
        ask("a", sync(member="x", generation=1), Error.UNKNOWN_MEMBER_ID),
        ask("a", heartbeat(member="x", generation=1), Error.UNKNOWN_MEMBER_ID),
        ask("a", leave(("x", None)), _left(Error.UNKNOWN_MEMBER_ID)),
        ask("a", leave(("x", None), version=2), Error.UNKNOWN_MEMBER_ID),
    ),
    case(
        "sync-checks-in-order",
        "the member, then the generation, then type and protocol (SyncGroup 5: KIP-559), then the state",
        stable_group("b"),
        ask("b", sync(member="x", generation=99), Error.UNKNOWN_MEMBER_ID),
        ask("b", sync(generation=_AFTER, protocol="other"), Error.ILLEGAL_GENERATION),
        ask("b", sync(generation=_BEFORE), Error.ILLEGAL_GENERATION),
        ask("b", sync(protocol="other"), Error.INCONSISTENT_GROUP_PROTOCOL),
        ask("b", sync(protocol_type="other"), Error.INCONSISTENT_GROUP_PROTOCOL),
        ask("b", sync(protocol_type=None, protocol=None), Error.INCONSISTENT_GROUP_PROTOCOL),
        ask("b", sync(version=4), {"error_code": "NONE", "assignment": "for b"}),
        Send("a", join()),
        Until("PreparingRebalance", 2),
        ask("b", sync(), Error.REBALANCE_IN_PROGRESS),
    ),
)

HEARTBEATS = (
    case(
        "heartbeat-checks",
        "an unknown member, an older and a newer generation; each version",
        stable_group("b"),
        ask("b", heartbeat(member="x"), Error.UNKNOWN_MEMBER_ID),
        ask("b", heartbeat(generation=_BEFORE), Error.ILLEGAL_GENERATION),
        ask("b", heartbeat(generation=_AFTER), Error.ILLEGAL_GENERATION),
        [ask("b", heartbeat(version=version, generation="$"), OK) for version in range(5)],
    ),
)

LEAVES = (
    case(
        "leave-before-v3",
        "one member, its error on top",
        stable_group("b"),
        [ask("b", leave(("x", None), version=version), Error.UNKNOWN_MEMBER_ID) for version in range(3)],
        ask("b", leave(version=0), OK),
        ask("b", leave(version=1), Error.UNKNOWN_MEMBER_ID),
        ask("a", leave(version=2), OK),
    ),
    *(
        case(
            f"leave-v{version}-batch",
            "an error for each member, and one round for all of them",
            stable_group("b", "c", "d"),
            ask(
                "admin",
                leave(("$b", None), ("x", None), ("$c", None), ("", "none"), version=version),
                {"error_code": "NONE", "members": [{}, {}, {}, {}]},
            ),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Until("PreparingRebalance", 2),
            Send("d", join()),
            Receive("a", joined(3, members=[{}, {}])),
            Receive("d", joined(3)),
            all_sync("d"),
        )
        for version in (3, 4, 5)
    ),
)

CASES = (*SYNCS, *HEARTBEATS, *LEAVES)

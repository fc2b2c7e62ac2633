"""SyncGroup, Heartbeat and LeaveGroup in each state of the group."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import (
    all_sync,
    group_of_one,
    request_member_id,
    second_round,
    send_join,
    stable_group,
)
from tests.conformance.raw.requests import describe, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Case, Parked, Receive, Send, Until, ask

_BEFORE, _AFTER = "$-1", "$+1"
_EMPTY = {"groups": [{"error_code": "NONE", "group_state": "Empty", "members": []}]}


def _left(code: Error) -> dict[str, object]:
    """LeaveGroup 3 and newer answers for each member."""
    return {"error_code": "NONE", "members": [{"error_code": code.name}]}


SYNCS = (
    Case(
        "sync-with-unknown-group",
        "UNKNOWN_MEMBER_ID in SyncGroup and Heartbeat; in LeaveGroup as the member's error",
        (
            ask("a", sync(member="x", generation=1), Error.UNKNOWN_MEMBER_ID),
            ask("a", heartbeat(member="x", generation=1), Error.UNKNOWN_MEMBER_ID),
            ask("a", leave(("x", None)), _left(Error.UNKNOWN_MEMBER_ID)),
            ask("a", leave(("x", None), version=2), Error.UNKNOWN_MEMBER_ID),
        ),
    ),
    Case(
        "sync-checks-in-order",
        "the member, then the generation, then type and protocol (SyncGroup 5: KIP-559), then the state",
        (
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
    ),
    Case(
        "sync-waits-for-the-leader",
        "followers are parked until the leader's assignment; a member left out gets empty bytes (not null)",
        (
            group_of_one(),
            second_round("b", "c"),
            Send("b", sync()),
            Send("c", sync()),
            ask("a", heartbeat(), OK),
            Parked("b"),
            Parked("c"),
            ask("a", sync(assignments={"a": b"for a", "b": b"for b"}), {"assignment": "for a"}),
            Receive("b", {"error_code": "NONE", "assignment": "for b", "protocol_name": "range"}),
            Receive("c", {"error_code": "NONE", "assignment": ""}),
            ask("a", describe(), {"groups": [{"group_state": "Stable", "members": [{}, {}, {}]}]}),
        ),
    ),
    Case(
        "sync-again-in-stable",
        "the assignment again; the assignments in the request are ignored",
        (
            stable_group("b"),
            ask("a", sync(assignments={"a": b"other", "b": b"other"}), {"assignment": "for a"}),
            ask("b", sync(), {"assignment": "for b"}),
        ),
    ),
    Case(
        "sync-is-answered-when-a-round-begins",
        "the leader leaves: parked SyncGroups are answered REBALANCE_IN_PROGRESS",
        (
            group_of_one(),
            second_round("b"),
            Send("b", sync()),
            Until("CompletingRebalance", 2),
            ask("a", leave(), OK),
            Receive("b", {"error_code": "REBALANCE_IN_PROGRESS", "assignment": ""}),
            Send("b", join()),
            Receive("b", {"error_code": "NONE", "generation_id": 3, "leader": "{b}"}),
            ask("b", sync(assignments={"b": b"all"}), {"assignment": "all"}),
        ),
    ),
)

HEARTBEATS = (
    Case(
        "heartbeat-by-state",
        "NONE in CompletingRebalance and Stable; REBALANCE_IN_PROGRESS in PreparingRebalance",
        (
            send_join("a"),
            Receive("a", {"generation_id": 1}),
            ask("a", heartbeat(), OK),
            ask("a", sync(assignments={"a": b"all"}), OK),
            ask("a", heartbeat(), OK),
            send_join("b"),
            Until("PreparingRebalance", 2),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            ask("a", leave(), OK),
            Receive("b", {"error_code": "NONE", "generation_id": 2, "leader": "{b}"}),
            ask("b", leave(), OK),
            ask("b", heartbeat(), Error.UNKNOWN_MEMBER_ID),
        ),
    ),
    Case(
        "heartbeat-checks",
        "an unknown member, an older and a newer generation; each version",
        (
            stable_group("b"),
            ask("b", heartbeat(member="x"), Error.UNKNOWN_MEMBER_ID),
            ask("b", heartbeat(generation=_BEFORE), Error.ILLEGAL_GENERATION),
            ask("b", heartbeat(generation=_AFTER), Error.ILLEGAL_GENERATION),
            [ask("b", heartbeat(version=version, generation="$"), OK) for version in range(5)],
        ),
    ),
)

LEAVES = (
    Case(
        "leave-before-v3",
        "one member, its error on top",
        (
            stable_group("b"),
            [ask("b", leave(("x", None), version=version), Error.UNKNOWN_MEMBER_ID) for version in range(3)],
            ask("b", leave(version=0), OK),
            ask("b", leave(version=1), Error.UNKNOWN_MEMBER_ID),
            ask("a", leave(version=2), OK),
        ),
    ),
    *(
        Case(
            f"leave-v{version}-batch",
            "an error for each member, and one round for all of them",
            (
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
                Receive("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
                Receive("d", {"error_code": "NONE", "generation_id": 3}),
                all_sync("d"),
            ),
        )
        for version in (3, 4, 5)
    ),
    Case(
        "last-member-leaves",
        "the group is Empty, with one generation more",
        (
            group_of_one(),
            ask("a", leave(), _left(Error.NONE)),
            ask("a", leave(), _left(Error.UNKNOWN_MEMBER_ID)),
            ask("a", describe(), _EMPTY),
            send_join("b"),
            Receive("b", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
    Case(
        "leave-ends-the-round",
        "in PreparingRebalance, if the last member that has not joined leaves, the others are answered",
        (
            stable_group("b", "c"),
            Send("a", join()),
            Until("PreparingRebalance", 3),
            Send("b", join()),
            ask("c", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Parked("a"),
            ask("c", leave(), OK),
            Receive("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Receive("b", {"error_code": "NONE", "generation_id": 3}),
            all_sync("b"),
        ),
    ),
    Case(
        "pending-member-leaves-a-stable-group",
        "Kafka's Java coordinator begins a round for it (the Scala one did not)",
        (
            group_of_one(),
            request_member_id("b"),
            ask("b", leave(), _left(Error.NONE)),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Receive("a", {"error_code": "NONE", "generation_id": 2}),
        ),
    ),
    Case(
        "member-of-an-unfinished-round-leaves",
        "in CompletingRebalance a leave begins a round",
        (
            group_of_one(),
            second_round("b", "c"),
            ask("c", leave(), OK),
            ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Send("b", join()),
            Receive("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Receive("b", {"error_code": "NONE", "generation_id": 3}),
            all_sync("b"),
        ),
    ),
)

CASES = (*SYNCS, *HEARTBEATS, *LEAVES)

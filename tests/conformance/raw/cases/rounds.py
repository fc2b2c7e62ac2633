"""SyncGroup, Heartbeat and LeaveGroup in each state of the group."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.lives import alone, enter, knock, second_round, settled, together
from tests.conformance.raw.requests import MINE, describe, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Case, GenerationOf, Hear, Parked, Send, Until, ask

_BEFORE, _AFTER = GenerationOf(plus=-1), GenerationOf(plus=1)
_EMPTY = {"groups": [{"error_code": "NONE", "group_state": "Empty", "members": []}]}


def _left(code: Error) -> dict[str, object]:
    """LeaveGroup 3 and newer answers for each member."""
    return {"error_code": "NONE", "members": [{"error_code": code.name}]}


SYNCS = (
    Case(
        "sync-with-unknown-group",
        "UNKNOWN_MEMBER_ID, in SyncGroup and Heartbeat; of a leave the member's error says it",
        (
            ask("a", sync(member_id="x", generation=1), Error.UNKNOWN_MEMBER_ID),
            ask("a", heartbeat(member_id="x", generation=1), Error.UNKNOWN_MEMBER_ID),
            ask("a", leave(("x", None)), _left(Error.UNKNOWN_MEMBER_ID)),
            ask("a", leave(("x", None), version=2), Error.UNKNOWN_MEMBER_ID),
        ),
    ),
    Case(
        "sync-checks-in-order",
        "the member, then the generation, then protocol type and name (SyncGroup 5: KIP-559), then the state",
        (
            together("b"),
            ask("b", sync(member_id="x", generation=99), Error.UNKNOWN_MEMBER_ID),
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
        "followers are parked until the leader's plan comes; who is not in it gets empty bytes (not null)",
        (
            alone(),
            second_round("b", "c"),
            Send("b", sync()),
            Send("c", sync()),
            ask("a", heartbeat(), OK),
            Parked("b"),
            Parked("c"),
            ask("a", sync(plan={"a": b"for a", "b": b"for b"}), {"assignment": "for a"}),
            Hear("b", {"error_code": "NONE", "assignment": "for b", "protocol_name": "range"}),
            Hear("c", {"error_code": "NONE", "assignment": ""}),
            ask("a", describe(), {"groups": [{"group_state": "Stable", "members": [{}, {}, {}]}]}),
        ),
    ),
    Case(
        "sync-again-in-stable",
        "the assignment again, whatever plan comes with it",
        (
            together("b"),
            ask("a", sync(plan={"a": b"other", "b": b"other"}), {"assignment": "for a"}),
            ask("b", sync(), {"assignment": "for b"}),
        ),
    ),
    Case(
        "sync-is-answered-when-a-round-begins",
        "who waits for the leader's plan is told REBALANCE_IN_PROGRESS when the leader leaves",
        (
            alone(),
            second_round("b"),
            Send("b", sync()),
            Until("CompletingRebalance", 2),
            ask("a", leave(), OK),
            Hear("b", {"error_code": "REBALANCE_IN_PROGRESS", "assignment": ""}),
            Send("b", join()),
            Hear("b", {"error_code": "NONE", "generation_id": 3, "leader": "{b}"}),
            ask("b", sync(plan={"b": b"all"}), {"assignment": "all"}),
        ),
    ),
)

HEARTBEATS = (
    Case(
        "heartbeat-by-state",
        "CompletingRebalance and Stable: NONE; PreparingRebalance: REBALANCE_IN_PROGRESS; Empty: unknown",
        (
            enter("a"),
            Hear("a", {"generation_id": 1}),
            ask("a", heartbeat(), OK),
            ask("a", sync(plan={"a": b"all"}), OK),
            ask("a", heartbeat(), OK),
            enter("b"),
            Until("PreparingRebalance", 2),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            ask("a", leave(), OK),
            Hear("b", {"error_code": "NONE", "generation_id": 2, "leader": "{b}"}),
            ask("b", leave(), OK),
            ask("b", heartbeat(), Error.UNKNOWN_MEMBER_ID),
        ),
    ),
    Case(
        "heartbeat-checks",
        "an unknown member, an older and a newer generation; each version",
        (
            together("b"),
            ask("b", heartbeat(member_id="x"), Error.UNKNOWN_MEMBER_ID),
            ask("b", heartbeat(generation=_BEFORE), Error.ILLEGAL_GENERATION),
            ask("b", heartbeat(generation=_AFTER), Error.ILLEGAL_GENERATION),
            [ask("b", heartbeat(version=version, generation=MINE), OK) for version in range(5)],
        ),
    ),
)

LEAVES = (
    Case(
        "leave-before-v3",
        "one member, its error on top",
        (
            together("b"),
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
                together("b", "c", "d"),
                ask(
                    "admin",
                    leave(("{b}", None), ("x", None), ("{c}", None), ("", "none"), version=version),
                    {"error_code": "NONE", "members": [{}, {}, {}, {}]},
                ),
                ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
                Send("a", join()),
                Until("PreparingRebalance", 2),
                Send("d", join()),
                Hear("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
                Hear("d", {"error_code": "NONE", "generation_id": 3}),
                settled("d"),
            ),
        )
        for version in (3, 4, 5)
    ),
    Case(
        "last-member-leaves",
        "the group is Empty, in a generation of its own",
        (
            alone(),
            ask("a", leave(), _left(Error.NONE)),
            ask("a", leave(), _left(Error.UNKNOWN_MEMBER_ID)),
            ask("a", describe(), _EMPTY),
            enter("b"),
            Hear("b", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
    Case(
        "leave-ends-the-round",
        "in PreparingRebalance the leave of the last who is waited for answers the others",
        (
            together("b", "c"),
            Send("a", join()),
            Until("PreparingRebalance", 3),
            Send("b", join()),
            ask("c", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Parked("a"),
            ask("c", leave(), OK),
            Hear("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Hear("b", {"error_code": "NONE", "generation_id": 3}),
            settled("b"),
        ),
    ),
    Case(
        "pending-member-leaves-a-stable-group",
        "Kafka's Java coordinator begins a round for it (the Scala one did not)",
        (
            alone(),
            knock("b"),
            ask("b", leave(), _left(Error.NONE)),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Hear("a", {"error_code": "NONE", "generation_id": 2}),
        ),
    ),
    Case(
        "member-of-an-unfinished-round-leaves",
        "in CompletingRebalance a leave begins a round",
        (
            alone(),
            second_round("b", "c"),
            ask("c", leave(), OK),
            ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Send("b", join()),
            Hear("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Hear("b", {"error_code": "NONE", "generation_id": 3}),
            settled("b"),
        ),
    ),
)

CASES = (*SYNCS, *HEARTBEATS, *LEAVES)

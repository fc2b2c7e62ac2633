"""JoinGroup: who is let in, when a round ends, what a second JoinGroup of a member does."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import MAX_SIZE
from tests.conformance.raw.lives import alone, enter, knock, second_round, settled, together
from tests.conformance.raw.requests import Subscribed, describe, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Case, Hear, Parked, Send, Until, ask

_CHANGED = (("range", Subscribed(owned=(0,))),)
_NO_GROUP = {"groups": [{"error_code": "GROUP_ID_NOT_FOUND", "group_state": "Dead"}]}


def _life(version: int) -> Case:
    """The versions of the other requests that came with the same releases."""
    others = {"sync": min(version, 5), "heartbeat": min(version, 4), "leave": min(version, 5)}
    return Case(
        f"life-with-join-v{version}",
        f"a member joins, syncs, beats and leaves: JoinGroup {version}, "
        + ", ".join(f"{name} {number}" for name, number in others.items()),
        (
            alone(version=version, sync_version=others["sync"]),
            ask("a", heartbeat(version=others["heartbeat"]), OK),
            ask("a", join(version=version), {"error_code": "NONE", "generation_id": 2, "leader": "{a}"}),
            ask("a", sync(version=others["sync"], plan={"a": b"again"}), {"assignment": "again"}),
            ask("a", leave(version=others["leave"]), OK),
            ask("a", heartbeat(version=others["heartbeat"]), Error.UNKNOWN_MEMBER_ID),
        ),
    )


CASES = (
    *(_life(version) for version in range(10)),
    Case(
        "join-with-unknown-id-makes-no-group",
        "a member id that nobody has given out: UNKNOWN_MEMBER_ID, and no group is left behind",
        (
            ask("a", join(member_id="nobody"), Error.UNKNOWN_MEMBER_ID),
            ask("a", describe(), _NO_GROUP),
        ),
    ),
    Case(
        "join-session-timeout-bounds",
        "session.timeout.ms outside of group.min.session.timeout.ms and group.max.session.timeout.ms",
        (
            ask("a", join(session_ms=99), Error.INVALID_SESSION_TIMEOUT),
            ask("a", join(session_ms=1_800_001), Error.INVALID_SESSION_TIMEOUT),
            ask("a", join(session_ms=1_800_000), Error.MEMBER_ID_REQUIRED),
            ask("b", join(session_ms=100), Error.MEMBER_ID_REQUIRED),
        ),
    ),
    Case(
        "empty-group-id",
        "INVALID_GROUP_ID for each request of a member",
        (
            ask("a", join(group=""), Error.INVALID_GROUP_ID),
            ask("a", sync(group="", generation=1), Error.INVALID_GROUP_ID),
            ask("a", heartbeat(group="", generation=1), Error.INVALID_GROUP_ID),
            ask("a", leave(("x", None), group=""), Error.INVALID_GROUP_ID),
        ),
    ),
    Case(
        "join-without-protocols",
        "neither the type nor the list may be empty: INCONSISTENT_GROUP_PROTOCOL, and no group is left",
        (
            ask("a", join(protocols=()), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("a", join(protocol_type=""), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("a", describe(), {}),
        ),
    ),
    Case(
        "pending-member-holds-the-round-open",
        "who was given an id and has not joined is waited for; when it leaves the round ends",
        (
            alone(),
            knock("b"),
            enter("c"),
            Until("PreparingRebalance", 2),
            Send("a", join()),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS, over="second"),
            Parked("a"),
            Parked("c"),
            ask("b", leave(), OK),
            Hear("a", {"error_code": "NONE", "generation_id": 2, "leader": "{a}"}),
            Hear("c", {"error_code": "NONE", "generation_id": 2, "members": []}),
            settled("c"),
        ),
    ),
    Case(
        "pending-member-joins",
        "a round that waits for a pending member ends when it joins",
        (
            alone(),
            knock("b"),
            enter("c"),
            Until("PreparingRebalance", 2),
            Send("a", join()),
            Until("PreparingRebalance", 2),
            Parked("a"),
            Send("b", join()),
            Hear("b", {"error_code": "NONE", "generation_id": 2}),
            Hear("a", {"generation_id": 2, "members": [{}, {}, {}]}),
            Hear("c", {"generation_id": 2}),
            settled("b", "c"),
        ),
    ),
    Case(
        "follower-joins-again-unchanged",
        "in Stable, with the metadata it has: the current generation at once, no round",
        (
            together("b"),
            ask("b", join(), {"error_code": "NONE", "generation_id": 2, "leader": "{a}", "members": []}),
            ask("b", sync(), {"error_code": "NONE", "assignment": "for b"}),
            ask("a", heartbeat(), OK),
        ),
    ),
    Case(
        "follower-joins-again-changed",
        "in Stable, with other metadata: a round",
        (
            together("b"),
            Send("b", join(protocols=_CHANGED)),
            Until("PreparingRebalance", 2),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Hear("a", {"error_code": "NONE", "generation_id": 3}),
            Hear("b", {"error_code": "NONE", "generation_id": 3}),
            settled("b"),
        ),
    ),
    Case(
        "leader-joins-again",
        "in Stable the leader's JoinGroup always begins a round",
        (
            together("b"),
            Send("a", join()),
            Until("PreparingRebalance", 2),
            ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("b", join()),
            Hear("a", {"generation_id": 3, "leader": "{a}"}),
            Hear("b", {"generation_id": 3, "leader": "{a}"}),
            settled("b"),
        ),
    ),
    Case(
        "join-again-before-sync-unchanged",
        "in CompletingRebalance, with the metadata it has: the answer again (it may have been lost)",
        (
            alone(),
            second_round("b"),
            ask("b", join(), {"error_code": "NONE", "generation_id": 2, "members": []}),
            ask("a", join(), {"error_code": "NONE", "generation_id": 2, "members": [{}, {}]}),
            settled("b"),
        ),
    ),
    Case(
        "join-again-before-sync-changed",
        "in CompletingRebalance, with other metadata: a new round; who waits in SyncGroup is told",
        (
            alone(),
            second_round("b", "c"),
            Send("c", sync()),
            Until("CompletingRebalance", 3),
            Send("b", join(protocols=_CHANGED)),
            Hear("c", {"error_code": "REBALANCE_IN_PROGRESS", "assignment": ""}),
            Send("a", join()),
            Send("c", join()),
            Hear("a", {"generation_id": 3}),
            Hear("b", {"generation_id": 3}),
            Hear("c", {"generation_id": 3}),
            settled("b", "c"),
        ),
    ),
    Case(
        "join-after-leave",
        "a member id ends with its leave: UNKNOWN_MEMBER_ID",
        (
            together("b"),
            ask("b", leave(), OK),
            ask("b", join(), Error.UNKNOWN_MEMBER_ID),
        ),
    ),
    Case(
        "join-of-empty-group-with-old-id",
        "in an Empty group nobody is known",
        (
            alone(),
            ask("a", leave(), OK),
            ask("a", describe(), {"groups": [{"group_state": "Empty", "members": []}]}),
            ask("a", join(), Error.UNKNOWN_MEMBER_ID),
            enter("b"),
            Hear("b", {"error_code": "NONE", "generation_id": 3, "leader": "{b}"}),
        ),
    ),
    Case(
        "parked-member-is-removed",
        "whoever is removed while its JoinGroup is parked is answered UNKNOWN_MEMBER_ID",
        (
            together("b"),
            Send("b", join(protocols=_CHANGED)),
            Until("PreparingRebalance", 2),
            ask("admin", leave(("{b}", None)), OK),
            Hear("b", {"error_code": "UNKNOWN_MEMBER_ID"}),
            Send("a", join()),
            Hear("a", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
    Case(
        "group-is-full",
        "group.max.size: one more is refused, a member is not; in an open round only those that wait count",
        (
            alone(),
            second_round(*(f"b{number}" for number in range(1, MAX_SIZE))),
            ask("one-more", join(member_id=""), {"error_code": "GROUP_MAX_SIZE_REACHED", "member_id": ""}),
            ask("b1", join(), {"error_code": "NONE", "generation_id": 2}),
            ask("b2", leave(), OK),
            ask("one-more", join(member_id=""), Error.MEMBER_ID_REQUIRED),
        ),
    ),
)

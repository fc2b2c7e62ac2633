"""JoinGroup: which joins are accepted, when a round ends, and the effect of a member's second JoinGroup."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import MAX_SIZE
from tests.conformance.raw.openings import (
    all_sync,
    group_of_one,
    request_member_id,
    second_round,
    send_join,
    stable_group,
)
from tests.conformance.raw.requests import Subscribed, describe, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Case, Parked, Receive, Send, Until, ask

_CHANGED = (("range", Subscribed(owned=(0,))),)
_NO_GROUP = {"groups": [{"error_code": "GROUP_ID_NOT_FOUND", "group_state": "Dead"}]}


def _member_session(version: int) -> Case:
    """The versions of the other requests that came with the same releases."""
    others = {"sync": min(version, 5), "heartbeat": min(version, 4), "leave": min(version, 5)}
    return Case(
        f"member-session-with-join-v{version}",
        f"a member joins, syncs, sends a heartbeat and leaves: JoinGroup {version}, "
        + ", ".join(f"{name} {number}" for name, number in others.items()),
        (
            group_of_one(version=version, sync_version=others["sync"]),
            ask("a", heartbeat(version=others["heartbeat"]), OK),
            ask("a", join(version=version), {"error_code": "NONE", "generation_id": 2, "leader": "{a}"}),
            ask("a", sync(version=others["sync"], assignments={"a": b"again"}), {"assignment": "again"}),
            ask("a", leave(version=others["leave"]), OK),
            ask("a", heartbeat(version=others["heartbeat"]), Error.UNKNOWN_MEMBER_ID),
        ),
    )


CASES = (
    *(_member_session(version) for version in range(10)),
    Case(
        "join-with-unknown-id-makes-no-group",
        "an invented member id: UNKNOWN_MEMBER_ID, and no group is made",
        (ask("a", join(member="nobody"), Error.UNKNOWN_MEMBER_ID), ask("a", describe(), _NO_GROUP)),
    ),
    Case(
        "join-session-timeout-bounds",
        "session.timeout.ms outside of group.min.session.timeout.ms and group.max.session.timeout.ms",
        (
            ask("a", join(session=99), Error.INVALID_SESSION_TIMEOUT),
            ask("a", join(session=1_800_001), Error.INVALID_SESSION_TIMEOUT),
            ask("a", join(session=1_800_000), Error.MEMBER_ID_REQUIRED),
            ask("b", join(session=100), Error.MEMBER_ID_REQUIRED),
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
        "an empty type or an empty list: INCONSISTENT_GROUP_PROTOCOL, and no group is made",
        (
            ask("a", join(protocols=()), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("a", join(protocol_type=""), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("a", describe(), {}),
        ),
    ),
    Case(
        "pending-member-holds-the-round-open",
        "the round waits for a client that was given an id and has not joined; it ends if the client leaves",
        (
            group_of_one(),
            request_member_id("b"),
            send_join("c"),
            Until("PreparingRebalance", 2),
            Send("a", join()),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS, over="second"),
            Parked("a"),
            Parked("c"),
            ask("b", leave(), OK),
            Receive("a", {"error_code": "NONE", "generation_id": 2, "leader": "{a}"}),
            Receive("c", {"error_code": "NONE", "generation_id": 2, "members": []}),
            all_sync("c"),
        ),
    ),
    Case(
        "pending-member-joins",
        "a round that waits for a pending member ends when that member joins",
        (
            group_of_one(),
            request_member_id("b"),
            send_join("c"),
            Until("PreparingRebalance", 2),
            Send("a", join()),
            Until("PreparingRebalance", 2),
            Parked("a"),
            Send("b", join()),
            Receive("b", {"error_code": "NONE", "generation_id": 2}),
            Receive("a", {"generation_id": 2, "members": [{}, {}, {}]}),
            Receive("c", {"generation_id": 2}),
            all_sync("b", "c"),
        ),
    ),
    Case(
        "follower-joins-again-unchanged",
        "in Stable, with unchanged metadata: the current generation at once, no round",
        (
            stable_group("b"),
            ask("b", join(), {"error_code": "NONE", "generation_id": 2, "leader": "{a}", "members": []}),
            ask("b", sync(), {"error_code": "NONE", "assignment": "for b"}),
            ask("a", heartbeat(), OK),
        ),
    ),
    Case(
        "follower-joins-again-changed",
        "in Stable, with other metadata: a round",
        (
            stable_group("b"),
            Send("b", join(protocols=_CHANGED)),
            Until("PreparingRebalance", 2),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join()),
            Receive("a", {"error_code": "NONE", "generation_id": 3}),
            Receive("b", {"error_code": "NONE", "generation_id": 3}),
            all_sync("b"),
        ),
    ),
    Case(
        "leader-joins-again",
        "in Stable the leader's JoinGroup always begins a round",
        (
            stable_group("b"),
            Send("a", join()),
            Until("PreparingRebalance", 2),
            ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("b", join()),
            Receive("a", {"generation_id": 3, "leader": "{a}"}),
            Receive("b", {"generation_id": 3, "leader": "{a}"}),
            all_sync("b"),
        ),
    ),
    Case(
        "join-again-before-sync-unchanged",
        "in CompletingRebalance, with unchanged metadata: the same answer again (it may be lost)",
        (
            group_of_one(),
            second_round("b"),
            ask("b", join(), {"error_code": "NONE", "generation_id": 2, "members": []}),
            ask("a", join(), {"error_code": "NONE", "generation_id": 2, "members": [{}, {}]}),
            all_sync("b"),
        ),
    ),
    Case(
        "join-again-before-sync-changed",
        "in CompletingRebalance, with other metadata: a new round; parked SyncGroups are answered",
        (
            group_of_one(),
            second_round("b", "c"),
            Send("c", sync()),
            Until("CompletingRebalance", 3),
            Send("b", join(protocols=_CHANGED)),
            Receive("c", {"error_code": "REBALANCE_IN_PROGRESS", "assignment": ""}),
            Send("a", join()),
            Send("c", join()),
            Receive("a", {"generation_id": 3}),
            Receive("b", {"generation_id": 3}),
            Receive("c", {"generation_id": 3}),
            all_sync("b", "c"),
        ),
    ),
    Case(
        "join-after-leave",
        "UNKNOWN_MEMBER_ID: a leave ends the member id",
        (stable_group("b"), ask("b", leave(), OK), ask("b", join(), Error.UNKNOWN_MEMBER_ID)),
    ),
    Case(
        "join-of-empty-group-with-old-id",
        "UNKNOWN_MEMBER_ID: an Empty group knows no member",
        (
            group_of_one(),
            ask("a", leave(), OK),
            ask("a", describe(), {"groups": [{"group_state": "Empty", "members": []}]}),
            ask("a", join(), Error.UNKNOWN_MEMBER_ID),
            send_join("b"),
            Receive("b", {"error_code": "NONE", "generation_id": 3, "leader": "{b}"}),
        ),
    ),
    Case(
        "parked-member-is-removed",
        "a member that is removed while its JoinGroup is parked is answered UNKNOWN_MEMBER_ID",
        (
            stable_group("b"),
            Send("b", join(protocols=_CHANGED)),
            Until("PreparingRebalance", 2),
            ask("admin", leave(("$b", None)), OK),
            Receive("b", {"error_code": "UNKNOWN_MEMBER_ID"}),
            Send("a", join()),
            Receive("a", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
    Case(
        "group-is-full",
        "group.max.size: a newcomer is refused, a member is not; during a round only parked joins count",
        (
            group_of_one(),
            second_round(*(f"b{number}" for number in range(1, MAX_SIZE))),
            ask("one-more", join(member=""), {"error_code": "GROUP_MAX_SIZE_REACHED", "member_id": ""}),
            ask("b1", join(), {"error_code": "NONE", "generation_id": 2}),
            ask("b2", leave(), OK),
            ask("one-more", join(member=""), Error.MEMBER_ID_REQUIRED),
        ),
    ),
)

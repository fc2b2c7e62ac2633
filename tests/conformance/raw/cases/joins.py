"""JoinGroup: which joins are accepted, when a round ends, and the effect of a member's second JoinGroup."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import group_of_one, joined
from tests.conformance.raw.requests import describe, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Case, ask, case

_NO_GROUP = {"groups": [{"error_code": "GROUP_ID_NOT_FOUND", "group_state": "Dead"}]}


def _member_session(version: int) -> Case:
    """The versions of the other requests that came with the same releases."""
    others = {"sync": min(version, 5), "heartbeat": min(version, 4), "leave": min(version, 5)}
    return case(
        f"member-session-with-join-v{version}",
        f"a member joins, syncs, sends a heartbeat and leaves: JoinGroup {version}, "
        + ", ".join(f"{name} {number}" for name, number in others.items()),
        group_of_one(version=version, sync_version=others["sync"]),
        ask("a", heartbeat(version=others["heartbeat"]), OK),
        ask("a", join(version=version), joined(2, leader="{a}")),
        ask("a", sync(version=others["sync"], assignments={"a": b"again"}), {"assignment": "again"}),
        ask("a", leave(version=others["leave"]), OK),
        ask("a", heartbeat(version=others["heartbeat"]), Error.UNKNOWN_MEMBER_ID),
    )


CASES = (
    *(_member_session(version) for version in range(10)),
    Case(
        "join-with-unknown-id-makes-no-group",
        "an invented member id: UNKNOWN_MEMBER_ID, and no group is made",
        (ask("a", join(member="nobody"), Error.UNKNOWN_MEMBER_ID), ask("a", describe(), _NO_GROUP)),
    ),
    case(
        "join-session-timeout-bounds",
        "session.timeout.ms outside of group.min.session.timeout.ms and group.max.session.timeout.ms",
        ask("a", join(session=99), Error.INVALID_SESSION_TIMEOUT),
        ask("a", join(session=1_800_001), Error.INVALID_SESSION_TIMEOUT),
        ask("a", join(session=1_800_000), Error.MEMBER_ID_REQUIRED),
        ask("b", join(session=100), Error.MEMBER_ID_REQUIRED),
    ),
    case(
        "empty-group-id",
        "INVALID_GROUP_ID for each request of a member",
        ask("a", join(group=""), Error.INVALID_GROUP_ID),
        ask("a", sync(group="", generation=1), Error.INVALID_GROUP_ID),
        ask("a", heartbeat(group="", generation=1), Error.INVALID_GROUP_ID),
        ask("a", leave(("x", None), group=""), Error.INVALID_GROUP_ID),
    ),
    case(
        "join-without-protocols",
        "an empty type or an empty list: INCONSISTENT_GROUP_PROTOCOL, and no group is made",
        ask("a", join(protocols=()), Error.INCONSISTENT_GROUP_PROTOCOL),
        ask("a", join(protocol_type=""), Error.INCONSISTENT_GROUP_PROTOCOL),
        ask("a", describe(), {}),
    ),
)

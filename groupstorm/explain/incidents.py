"""The incidents that patterns look for: a literal table from rows of a trace to kinds of incidents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from groupstorm.history.rebalances import Row

#: Errors with which a coordinator refuses what a member sends that is no member any more.
ZOMBIE_ERRORS: Final = frozenset(
    {
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_MEMBER_EPOCH",
        "STALE_MEMBER_EPOCH",
        "CommitFailedException",
        "TaskMigratedException",
    }
)
#: `rejoin_requested`: a heartbeat was refused, because the coordinator is gone or moved.
COORDINATOR_ERRORS: Final = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
)
FENCED: Final = "FENCED_INSTANCE_ID"
#: A member of a consumer group is refused, as another one has its group.instance.id.
UNRELEASED: Final = "UNRELEASED_INSTANCE_ID"
INCONSISTENT: Final = "INCONSISTENT_GROUP_PROTOCOL"
#: `member_failed`: a member of the new protocol is refused by a classic group (KIP-848's migration).
MIGRATION_REFUSED: Final = {"GROUP_ID_NOT_FOUND": "migration-refused"}
#: onPartitionsRevoked takes so long: the whole group waits for it, or the partitions do.
SLOW_CALLBACK_US: Final = 3_000_000
_REFUSED: Final = {FENCED: "fenced", UNRELEASED: "fenced", INCONSISTENT: "inconsistent-protocol"}
_MOVED: Final = dict.fromkeys(COORDINATOR_ERRORS, "coordinator-moved")
_UNLOADED: Final = {"unloaded": "unloaded"}

Classify = Callable[[Row], str | None]


def _by(column: str, kinds: Mapping[str, str], otherwise: str | None = None) -> Classify:
    """The kind that the value of a column stands for."""
    return lambda row: kinds.get(row.get(column) or "", otherwise)


def _always(kind: str) -> Classify:
    return lambda _row: kind


def _revoked(row: Row) -> str | None:
    return "slow-callback" if row.get("duration_us", 0) >= SLOW_CALLBACK_US else None


def _lost(row: Row) -> str | None:
    return "poll-timeout-lost" if row.get("cause") == "poll-timeout" else _revoked(row) or "lost"


def _counted(row: Row) -> str | None:
    if row.get("error") == INCONSISTENT:
        return "inconsistent-protocol-counted"
    refused = row["api"] == "OffsetCommit" and row.get("error") in ZOMBIE_ERRORS
    return "commit-refused-counted" if refused else None


def _request_refused(row: Row) -> str | None:
    if row["error"] in ZOMBIE_ERRORS:
        return "commit-refused" if row["api"] == "OffsetCommit" else "out-of-group"
    return _REFUSED.get(row["error"])


def _restoring(row: Row) -> str | None:
    return "restored-from-nothing" if row.get("cause") == "nothing" and row.get("lag") != 0 else None


#: Event -> the kind of incident that a row of it is, or None.
INCIDENTS: Final[Mapping[str, Classify]] = {
    "rejoin_requested": _by(
        "cause",
        {
            **dict.fromkeys(ZOMBIE_ERRORS, "out-of-group"),
            **_MOVED,
            **_REFUSED,
            "poll-timeout": "poll-timeout",
            "metadata-changed": "metadata-changed",
            "assignment-does-not-match-subscription": "metadata-changed",
            "session-timeout": "session-timeout",
            "config-behind": "config-behind",
        },
    ),
    "client_reason": lambda row: "poll-timeout-told" if "poll timeout has expired" in row["detail"] else None,
    "join_answered": _by("error", {**_MOVED, **_REFUSED}),
    "sync_answered": _by("error", {**_MOVED, **_REFUSED}),
    "request_refused": _request_refused,
    "offset_reset": _always("offset-reset"),
    "append_refused": _always("append-refused"),
    "partitions_revoked": _revoked,
    "partitions_lost": _lost,
    "member_crashed": _always("crashed"),
    "member_failed": _by("error", {**MIGRATION_REFUSED, **_REFUSED}, "member-failed"),
    "offsets_committed": _by("error", dict.fromkeys(ZOMBIE_ERRORS, "commit-refused")),
    "requests_counted": _counted,
    "member_removed": _by("cause", _UNLOADED),
    "group_created": _by("cause", {"loaded": "loaded"}),
    "group_deleted": _by("cause", _UNLOADED),
    "member_paused": _by("cause", {"slow-batch": "slow-batch", "pause": "process-paused"}),
    "follow_up_due": _always("follow-up"),
    "group_converted": _always("converted"),
    "partitions_created": _always("topics-changed"),
    "partitions_deleted": _always("topics-changed"),
    "task_restoring": _restoring,
    "instance_gone": _always("instance-gone"),
    "step_taken": _by("cause", {"coordinator-failover": "coordinator-away"}),
}

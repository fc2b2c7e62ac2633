"""Which rows of a trace are incidents that patterns look for, by kind: a literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from groupstorm.explain.history import Row

#: Errors with which a coordinator refuses what a member sends that is no member any more.
ZOMBIE_ERRORS: Final = frozenset(
    {
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_MEMBER_EPOCH",
        "STALE_MEMBER_EPOCH",
        "UNRELEASED_INSTANCE_ID",
    }
)
#: `rejoin_requested`: a heartbeat was refused, because the coordinator is gone or moved.
COORDINATOR_ERRORS: Final = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
)
FENCED: Final = "FENCED_INSTANCE_ID"
INCONSISTENT: Final = "INCONSISTENT_GROUP_PROTOCOL"


#: `member_failed`: a member of the new protocol is refused by a classic group (KIP-848's migration).
MIGRATION_REFUSED: Final = {"GROUP_ID_NOT_FOUND": "migration-refused"}
#: onPartitionsRevoked takes so long: the whole group waits for it, or the partitions do.
SLOW_CALLBACK_US: Final = 3_000_000


def _rejoin(row: Row) -> str | None:
    cause = row["cause"]
    if cause in ZOMBIE_ERRORS:
        return "out-of-group"
    if cause in COORDINATOR_ERRORS:
        return "coordinator-moved"
    return {
        "poll-timeout": "poll-timeout",
        "metadata-changed": "metadata-changed",
        "assignment-does-not-match-subscription": "metadata-changed",
        "session-timeout": "session-timeout",
        FENCED: "fenced",
        INCONSISTENT: "inconsistent-protocol",
    }.get(cause)


def _answered(row: Row) -> str | None:
    error = row.get("error")
    if error in COORDINATOR_ERRORS:
        return "coordinator-moved"
    return {FENCED: "fenced", INCONSISTENT: "inconsistent-protocol"}.get(error or "")


def _revoked(row: Row) -> str | None:
    return "slow-callback" if row.get("duration_us", 0) >= SLOW_CALLBACK_US else None


def _lost(row: Row) -> str | None:
    return "poll-timeout-lost" if row.get("cause") == "poll-timeout" else _revoked(row)


def _failed(row: Row) -> str | None:
    error = row.get("error", "")
    return {FENCED: "fenced", INCONSISTENT: "inconsistent-protocol"}.get(
        error, MIGRATION_REFUSED.get(error, "member-failed")
    )


def _commit(row: Row) -> str | None:
    return "commit-refused" if row.get("error") in ZOMBIE_ERRORS else None


def _counted(row: Row) -> str | None:
    if row.get("error") == INCONSISTENT:
        return "inconsistent-protocol-counted"
    refused = row["api"] == "OffsetCommit" and row.get("error") in ZOMBIE_ERRORS
    return "commit-refused-counted" if refused else None


def _removed(row: Row) -> str | None:
    return "unloaded" if row.get("cause") == "unloaded" else None


def _created(row: Row) -> str | None:
    return "loaded" if row.get("cause") == "loaded" else None


def _deleted(row: Row) -> str | None:
    return "unloaded" if row.get("cause") == "unloaded" else None


def _paused(row: Row) -> str | None:
    return {"slow-batch": "slow-batch", "pause": "process-paused"}.get(row["cause"])


def _restoring(row: Row) -> str | None:
    return "restored-from-nothing" if row.get("cause") == "nothing" and row.get("lag") else None


def _step(row: Row) -> str | None:
    return "coordinator-away" if row["cause"] == "coordinator-failover" else None


def _always(kind: str) -> Callable[[Row], str | None]:
    return lambda _row: kind


#: Event -> the kind of incident that a row of it is, or None.
INCIDENTS: Final[Mapping[str, Callable[[Row], str | None]]] = {
    "rejoin_requested": _rejoin,
    "join_answered": _answered,
    "sync_answered": _answered,
    "partitions_lost": _lost,
    "member_failed": _failed,
    "offsets_committed": _commit,
    "requests_counted": _counted,
    "member_removed": _removed,
    "group_created": _created,
    "group_deleted": _deleted,
    "member_paused": _paused,
    "follow_up_due": _always("follow-up"),
    "group_converted": _always("converted"),
    "partitions_created": _always("topics-changed"),
    "partitions_deleted": _always("topics-changed"),
    "task_restoring": _restoring,
    "instance_gone": _always("instance-gone"),
    "step_taken": _step,
    "partitions_revoked": _revoked,
}

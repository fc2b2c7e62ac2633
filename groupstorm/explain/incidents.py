"""The incidents that patterns look for: a literal table from rows of a trace to kinds of incidents; and the
requests of members that were refused, one after the other: who tried, how often, and why it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from groupstorm.history.causes import ASKED_TO_STOP, OF_A_RECORD
from groupstorm.history.rebalances import Row
from groupstorm.trace.events.imported import SIMPLE_COMMIT
from groupstorm.wording import counted, lasting

#: Errors with which a coordinator refuses what a member sends that is no member any more.
ZOMBIE_ERRORS: Final = frozenset(
    {
        *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"),
        *("CommitFailedException", "TaskMigratedException"),
    }
)
#: The answer of a coordinator that cannot write to __consumer_offsets, too.
NOT_AVAILABLE: Final = "COORDINATOR_NOT_AVAILABLE"
#: `rejoin_requested`: a heartbeat was refused, because the coordinator is gone or moved.
COORDINATOR_ERRORS: Final = frozenset({"NOT_COORDINATOR", NOT_AVAILABLE, "COORDINATOR_LOAD_IN_PROGRESS"})
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
#: What a coordinator writes of a group's members, and not of its offsets.
_WRITTEN: Final = ("generation", "static-member", "member-heartbeat", "members-removed", "targets-computed")
_UNWRITTEN: Final = dict.fromkeys(_WRITTEN, "append-failed")

_Classify = Callable[[Row], str | None]


def _by(column: str, kinds: Mapping[str, str], otherwise: str | None = None) -> _Classify:
    """The kind that the value of a column stands for."""
    return lambda row: kinds.get(row.get(column) or "", otherwise)


def _always(kind: str) -> _Classify:
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
    if row["error"] in ZOMBIE_ERRORS and row["api"] != SIMPLE_COMMIT:
        return "commit-refused" if row["api"] == "OffsetCommit" else "out-of-group"
    return _REFUSED.get(row["error"])


def _step(row: Row) -> str | None:
    away = "coordinator-away" if row["cause"] == "coordinator-failover" else None
    # a share consumer's process ends with its work "of a record"
    return {OF_A_RECORD: "killed-by-record", ASKED_TO_STOP: "asked-to-stop"}.get(
        row.get("detail") or "", away
    )


def _restoring(row: Row) -> str | None:
    return "restored-from-nothing" if row.get("cause") == "nothing" and row.get("lag") != 0 else None


#: Words in which Java's client gives its coordinator a reason (KIP-800) -> the kind of incident.
_TOLD: Final = {
    "poll timeout has expired": "poll-timeout-told",
    "cached metadata has changed": "metadata-changed-told",
}

#: Event -> the kind of incident that a row of it is, or None.
_INCIDENTS: Final[Mapping[str, _Classify]] = {
    "rejoin_requested": _by(
        "cause",
        {
            **dict.fromkeys(ZOMBIE_ERRORS, "out-of-group"),
            **_MOVED,
            **_REFUSED,
            "poll-timeout": "poll-timeout",
            "metadata-changed": "metadata-changed",
            "assignment-does-not-match-subscription": "assignment-mismatch",
            "session-timeout": "session-timeout",
            "config-behind": "config-behind",
        },
    ),
    "client_reason": lambda row: next(
        (kind for words, kind in _TOLD.items() if words in row["detail"]), None
    ),
    "join_answered": _by("error", {**_MOVED, **_REFUSED}),
    "sync_answered": _by("error", {"UNKNOWN_MEMBER_ID": "out-of-group", **_MOVED, **_REFUSED}),
    "request_refused": _request_refused,
    "offset_reset": _always("offset-reset"),
    "append_refused": _always("append-refused"),
    "append_failed": _by("cause", _UNWRITTEN),
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
    "step_taken": _step,
}


def incident_of(row: Row) -> str | None:
    """The kind of incident that a row is; None if it is none."""
    classify = _INCIDENTS.get(row["event"])
    return None if classify is None else classify(row)


#: Lines so close to each other are about one refusal: a client logs the answer, and then what it does.
ONE_REFUSAL_US: Final = 100_000
#: More refusals of one group are not kept.
_REFUSALS_MAX: Final = 10_000
JOIN: Final = "JoinGroup"
HEARTBEAT: Final = "Heartbeat"
COMMIT: Final = "OffsetCommit"
FIND: Final = "FindCoordinator"
_UNKNOWN: Final = "unknown"
REBALANCING: Final = "REBALANCE_IN_PROGRESS"
NOT_AUTHORIZED: Final = "GROUP_AUTHORIZATION_FAILED"
TIMED_OUT: Final = "REQUEST_TIMED_OUT"
#: Causes of `rejoin_requested` that are answers of a coordinator, but not named after an error.
_ANSWERS: Final = {
    "group-rebalancing": REBALANCING,
    "coordinator-unknown": "COORDINATOR_NOT_AVAILABLE",
    "coordinator-loading": "COORDINATOR_LOAD_IN_PROGRESS",
    "unknown-generation": "ILLEGAL_GENERATION",
}
#: Rows with which a member is in a generation.
_ADMITTED: Final = frozenset({"join_answered", "sync_answered", "partitions_assigned", "work_assigned"})
_WITH_EVERY_FIRST_JOIN: Final = "MEMBER_ID_REQUIRED"
_ANSWERED: Final = {"join_answered": JOIN, "sync_answered": "SyncGroup"}
#: The words of a coordinator for its errors.
_WORDS: Final = {
    "NOT_COORDINATOR": "This is not the correct coordinator",
    "COORDINATOR_NOT_AVAILABLE": "The coordinator is not available",
    "COORDINATOR_LOAD_IN_PROGRESS": "The coordinator is loading",
    "UNKNOWN_MEMBER_ID": "The coordinator is not aware of this member",
    "ILLEGAL_GENERATION": "The generation is not the group's",
    "REBALANCE_IN_PROGRESS": "The group is rebalancing",
    "FENCED_INSTANCE_ID": "Another process has its group.instance.id",
    "UNRELEASED_INSTANCE_ID": "Another member has its group.instance.id and has not left",
    "GROUP_MAX_SIZE_REACHED": "The group has reached group.max.size",
    NOT_AUTHORIZED: "The client may not read with this group id",
    TIMED_OUT: "No answer came in time",
    "TaskMigratedException": "The thread missed a rebalance and is out of the group",
    "CommitFailedException": "The consumer was not in the group any more",
}


@dataclass(slots=True)
class Refusal:
    """Requests of ``member`` that were refused with ``error``, without a generation in between. ``api``: of
    the first; JoinGroup if the member then tried to join. ``over_us``: it is in a generation since."""

    member: str
    api: str
    error: str
    first: Row
    last: Row
    count: int = 1
    over_us: int | None = None

    @property
    def is_over(self) -> bool:
        return self.over_us is not None

    @property
    def lasted_us(self) -> int:
        return int(self.last["time_us"]) - int(self.first["time_us"])

    def is_same(self, row: Row, api: str) -> bool:
        """Whether a row that comes next is another line about the last of these refusals."""
        is_other = api == COMMIT and self.api not in (COMMIT, FIND)
        return not is_other and int(row["time_us"]) - int(self.last["time_us"]) < ONE_REFUSAL_US

    @property
    def sentence(self) -> str:
        who = self.member or "A member"
        words = f" ({_WORDS[self.error]})" if self.error in _WORDS else ""
        times = counted(self.count, "time")
        within = f" in {lasting(self.lasted_us)}" if self.lasted_us else ""
        why = f"{self.error}{words}"
        if self.api == HEARTBEAT and self.error == REBALANCING:
            if not self.lasted_us:  # a heartbeat, or a SyncGroup, and the log may end with it
                since = "it is in a generation since" if self.is_over else "no later line says more"
                return f"{who} was told once that the group rebalances; {since}."
            over = f"for {lasting(self.lasted_us)}, {times},"
            since = "it is in a generation since" if self.is_over else "it never joined again in this log"
            return f"{who}'s heartbeats were refused {over} because the group was rebalancing: {since}."
        if self.api == FIND:
            did = "was refused" if self.error == NOT_AUTHORIZED else "lost"
            return f"{who} {did} its coordinator {times}{within}: {why}."
        if self.api not in (JOIN, "SyncGroup"):
            others = "requests" if self.api == _UNKNOWN else f"{self.api} requests"
            what = {HEARTBEAT: "heartbeats", COMMIT: "commits"}.get(self.api, others)
            were = "had no answer" if self.error == TIMED_OUT else "were refused"
            return f"{who}'s {what} {were} {times}{within}: {why}."
        got = "and got no generation" if not self.is_over else "before it got a generation"
        return f"{who} tried to join {times}{within} {got}: {why}."


class Refusals:
    """Takes the rows of one group, in their order."""

    def __init__(self) -> None:
        self.found: list[Refusal] = []
        #: Member -> by error, and whether commits were refused: the refusals since its last generation.
        self._open: dict[str, dict[tuple[str, bool], Refusal]] = {}

    def forget(self) -> None:
        """Drop those that are over."""
        self.found = [one for ones in self._open.values() for one in ones.values()]

    def add(self, row: Row, member: str) -> bool:
        """Take the next row; whether it is another line about the refusal before it."""
        event = row["event"]
        if event in _ADMITTED and "error" not in row:
            for one in self._open.pop(member, {}).values():
                one.over_us = row["time_us"]
            return False
        api, error = _refusal_in(row)
        ones = self._open.setdefault(member, {}) if error else self._open.get(member, {})
        before = max(ones.values(), key=lambda one: int(one.last["time_us"]), default=None)
        if event == "member_failed":
            return before is not None and before.error == row.get("error") and before.is_same(row, api)
        if not error:
            return False
        if row["source"] == "member" and before is not None and before.is_same(row, api):
            if before.api == FIND:  # it lost its coordinator because of what it was answered
                before.api = api
            return True
        key = error, api == COMMIT
        if key in ones:
            ones[key].last, ones[key].count = row, ones[key].count + 1
        elif len(self.found) < _REFUSALS_MAX:
            ones[key] = Refusal(member, api, error, row, row)
            self.found.append(ones[key])
        return False


def _refusal_in(row: Row) -> tuple[str, str]:
    """The request that a row says to be refused, and the error; no error if it says none."""
    event = row["event"]
    if event == "request_refused":
        return row["api"], row["error"]
    if event in _ANSWERED:
        error = row.get("error") or ""
        return _ANSWERED[event], "" if error == _WITH_EVERY_FIRST_JOIN else error
    if event != "rejoin_requested":
        return "", ""
    cause = row.get("cause") or ""
    error = _ANSWERS.get(cause, cause if cause.isupper() else "")
    return HEARTBEAT if error == REBALANCING else JOIN, error

"""Why a Java consumer joins again, why a member gives up partitions, and which requests of a client were
refused, from the words of its log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from groupstorm.imports.source import BY_HAND, Observation
from groupstorm.imports.templates import LATE, UNKNOWN_ERROR, Catalogue, error_of, table
from groupstorm.trace.events import imported

UNKNOWN: Final = UNKNOWN_ERROR
#: Errors with which a coordinator answers members in every round.
TOLD: Final = "group-rebalancing"
#: The cause of the second round of a cooperative rebalance.
REVOKED: Final = "revoked-partitions"
_OF_ROUNDS: Final = {"REBALANCE_IN_PROGRESS": TOLD, "MEMBER_ID_REQUIRED": "first-join"}
REJOIN_REASONS: Final = Catalogue(table("client_reasons"))
#: Kinds of lines of a process that has just started.
STARTS: Final = frozenset({"config", "subscribed", "rd-started", "worker-config"})

#: States of a KIP-848 member that closes. It gives up its partitions before it logs the first of them.
_LEAVES: Final = frozenset({"PREPARE_LEAVING", "LEAVING"})
#: Why a static member of Kafka 3 and newer says that it will join again, when it is closed.
_LEFT: Final = "left-group"
_WITH_REASON: Final = frozenset({"rejoin", "reset"})

_CLOSES = "cause: the member's next line is its LeaveGroup"
_ENDS = "cause: the process logs nothing after it; a static member says nothing when it closes"
_JOINS = "cause: the member's next line joins again, so it gave up everything before (eager)"
_UPDATED = "cause: the partitions are not in the assignment that came before (cooperative)"


def rejoin_cause(line: Observation) -> str:
    """Why a Java consumer says that it joins again."""
    reason = line.fields.get("reason", "")
    found = REJOIN_REASONS.find(reason)
    if found is None:
        return cause_of_error(error_of(reason))
    return str(found.fields["error"]) if found.kind == "error" else found.kind


def cause_of_error(error: str) -> str:
    """The cause of joining again after ``error``: answers that belong to every round have names of their
    own."""
    return _OF_ROUNDS.get(error, error)


def revocation_cause(line: Observation, then: Observation | None, is_cooperative: bool) -> tuple[str, str]:
    """The cause of a revocation and the rule behind it.

    ``then``: the member's next line, None if there is none. ``is_cooperative``: the member gives up what its
    assignment has not got.
    """
    ends = then is None or then.kind in STARTS
    if ends and line.fields.get("instance"):
        return "close", _ENDS
    if then is not None and _closes(then):
        return "close", _CLOSES
    if is_cooperative or (then is not None and _reason(then) == REVOKED):
        return "assignment", _UPDATED
    return "rebalance", _JOINS


def _reason(then: Observation) -> str:
    """Why the line says that the member joins again; "" if it is another one."""
    return rejoin_cause(then) if then.kind in _WITH_REASON else ""


def _closes(then: Observation) -> bool:
    if then.kind in _WITH_REASON:
        return _reason(then) == _LEFT
    return then.kind == "leaving" or then.fields.get("state") in _LEAVES


#: An answer that belongs to every first join.
REQUIRED: Final = "MEMBER_ID_REQUIRED"
_POSITION: Final = re.compile(r"[0-9]{1,18}")
#: Kind of a line -> the request that was refused.
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("commit-refused", "commit-exception", "rebalance-exception", "commit-late"), "OffsetCommit"
    ),
    **dict.fromkeys(("heartbeat-refused", "heartbeat-late"), "Heartbeat"),
    **dict.fromkeys(("join-refused", "join-exception", "join-late"), "JoinGroup"),
    **dict.fromkeys(("sync-refused", "sync-late"), "SyncGroup"),
    "leave-late": "LeaveGroup",
    "fetch-refused": "OffsetFetch",
    "metadata-refused": "Metadata",
    **dict.fromkeys(("coordinator-lost", "authorization-exception"), "FindCoordinator"),
}
#: The errors of lines of these kinds, if they say no other.
_IF_UNKNOWN: Final[Mapping[str, str]] = {
    "authorization-exception": "GROUP_AUTHORIZATION_FAILED",
    "commit-exception": "CommitFailedException",
    "rebalance-exception": "REBALANCE_IN_PROGRESS",
    "coordinator-lost": "COORDINATOR_NOT_AVAILABLE",
    **dict.fromkeys(LATE, "REQUEST_TIMED_OUT"),
}
#: Kind of a line -> why a client began where auto.offset.reset says.
NO_OFFSET: Final[Mapping[str, str]] = {
    "offset-missing": "no-committed-offset",
    "offset-out-of-range": "out-of-range",
    "offset-reset": "reset",
}


def refusal(line: Observation) -> tuple[str, str] | None:
    """The request and the error; None for an answer that belongs to every first join."""
    error = error_of(line.fields["said"])
    if error == UNKNOWN_ERROR:
        error = _IF_UNKNOWN.get(line.kind, error)
    api = REFUSED[line.kind]
    api = imported.SIMPLE_COMMIT if line.fields.get(BY_HAND) and api == "OffsetCommit" else api
    return None if error == REQUIRED else (api, error)


def offset_reset(group: str, client: str, line: Observation) -> imported.OffsetReset:
    """The row of a line about a partition without a position."""
    at = line.fields.get("position", "")
    positions = (int(at),) if line.kind == "offset-reset" and _POSITION.fullmatch(at) else None
    return imported.OffsetReset(group, client, (line.fields["named"],), positions, NO_OFFSET[line.kind])

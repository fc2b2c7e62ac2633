"""Lines by which a client says that a request was refused, or that it began without an offset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from groupstorm.imports.observation import Observation
from groupstorm.imports.templates.catalogues import UNKNOWN_ERROR, error_of
from groupstorm.trace.events import imported

#: An answer that belongs to every first join.
REQUIRED: Final = "MEMBER_ID_REQUIRED"
_POSITION: Final = re.compile(r"[0-9]{1,18}")
#: Kind of a line -> the request that was refused.
REFUSED: Final[Mapping[str, str]] = {
    "commit-refused": "OffsetCommit",
    "commit-exception": "OffsetCommit",
    "rebalance-exception": "OffsetCommit",
    "heartbeat-refused": "Heartbeat",
    "heartbeat-late": "Heartbeat",
    "join-refused": "JoinGroup",
    "join-late": "JoinGroup",
    "sync-refused": "SyncGroup",
    "fetch-refused": "OffsetFetch",
    "coordinator-lost": "FindCoordinator",
}
#: The errors of lines of these kinds, if they say no other.
_IF_UNKNOWN: Final[Mapping[str, str]] = {
    "commit-exception": "CommitFailedException",
    "rebalance-exception": "REBALANCE_IN_PROGRESS",
    "coordinator-lost": "COORDINATOR_NOT_AVAILABLE",
    "heartbeat-late": "REQUEST_TIMED_OUT",
    "join-late": "REQUEST_TIMED_OUT",
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
    return None if error == REQUIRED else (REFUSED[line.kind], error)


def offset_reset(group: str, client: str, line: Observation) -> imported.OffsetReset:
    """The row of a line about a partition without a position."""
    at = line.fields.get("position", "")
    positions = (int(at),) if line.kind == "offset-reset" and _POSITION.fullmatch(at) else None
    return imported.OffsetReset(group, client, (line.fields["named"],), positions, NO_OFFSET[line.kind])

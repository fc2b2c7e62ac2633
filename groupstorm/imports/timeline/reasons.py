"""Why a Java consumer joins again, and why a member gives up partitions, from the words of its log."""

from __future__ import annotations

from typing import Final

from groupstorm.imports.observation import Observation
from groupstorm.imports.template import Catalogue
from groupstorm.imports.templates.catalogues import UNKNOWN_ERROR, error_of, table

UNKNOWN: Final = UNKNOWN_ERROR
#: Errors with which a coordinator answers members in every round.
_OF_ROUNDS: Final = {"REBALANCE_IN_PROGRESS": "group-rebalancing", "MEMBER_ID_REQUIRED": "first-join"}
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
    return ("assignment", _UPDATED) if is_cooperative else ("rebalance", _JOINS)


def _closes(then: Observation) -> bool:
    if then.kind in _WITH_REASON:
        return rejoin_cause(then) == _LEFT
    return then.kind == "leaving" or then.fields.get("state") in _LEAVES

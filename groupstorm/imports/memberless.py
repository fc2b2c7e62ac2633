"""Times in which a group had no members: somebody had stopped it, so its partitions needed no owner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from groupstorm.imports.provenance import Provenance, with_provenance
from groupstorm.trace.events import imported
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.rows import TraceEntry, event_name
from groupstorm.trace.schema import Source

_EMPTY = "members: the group is Empty"
_NOT_EMPTY = "members: the group is not Empty any more"
_ALL_LEFT = "members: by the logs of all members, each has left"
_ONE_CAME = "members: a member's own log says that it is there"


def with_memberless_times(
    entries: Iterable[TraceEntry], told_by_members: Collection[str]
) -> Iterator[TraceEntry]:
    """The rows of an import, in the trace's order, and a row where a group begins or ends to have members.

    ``told_by_members``: groups of which only members tell, each in a log of its own.
    """
    empty: set[str] = set()
    running: dict[str, set[str]] = {name: set() for name in told_by_members}
    for entry in entries:
        event: Any = entry[2]
        there = running.get(event.group)
        found = _by_coordinator(event) if there is None else _by_members(event, there)
        if found is None or found[0] == (event.group in empty):
            yield entry
        elif found[0]:
            empty.add(event.group)
            yield entry
            yield entry[0], Source.WORLD, _row(imported.MembersGone, event, found[1])
        else:
            empty.remove(event.group)
            yield entry[0], Source.WORLD, _row(imported.MembersBack, event, found[1])
            yield entry


def _by_coordinator(event: Any) -> tuple[bool, str] | None:
    """Whether the group is without members after the row, and the rule; None if the row does not say it."""
    kind: type = type(event)
    name = event_name(kind)
    if name == "group_state_changed" and event.state == GroupState.EMPTY:
        return True, _EMPTY
    return (False, _NOT_EMPTY) if name in ("group_state_changed", "member_added") else None


def _by_members(event: Any, running: set[str]) -> tuple[bool, str] | None:
    """As `_by_coordinator`. ``running``: the members that are there, which the row may change."""
    kind: type = type(event)
    name = event_name(kind)
    if name in ("member_started", "partitions_assigned"):
        running.add(event.member)
        return False, _ONE_CAME
    closes = name == "partitions_revoked" and event.cause == "close"
    if not closes and name not in ("member_closed", "member_crashed"):
        return None
    running.discard(event.member)
    return None if running else (True, _ALL_LEFT)


def _row(kind: Any, event: Any, rule: str) -> Any:
    """With the evidence of the row from which it follows."""
    return with_provenance(kind)(
        event.group, str(Provenance.INFERRED), event.evidence, rule, event.earliest_us, event.latest_us
    )

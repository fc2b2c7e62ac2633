"""Rows that say how they are known: events with the columns of version 2, sorted into a trace, with a row
where a group begins or ends to have members."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from operator import itemgetter
from types import NoneType
from typing import Any, Final, NamedTuple

from groupstorm.imports.source import TIME_RULE, Observation
from groupstorm.imports.spill import SpillingSorter
from groupstorm.trace.events import imported
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.rows import TracedEvent, TraceEntry, event_name, event_types
from groupstorm.trace.schema import PROVENANCE_COLUMNS, Source

_COLUMNS = tuple(column.name for column in PROVENANCE_COLUMNS)
_OBSERVED, _INFERRED, _MISSING = "observed", "inferred", "missing"
#: What most events hold, and `marshal` writes.
_PLAIN: Final = frozenset({str, int, bool, NoneType, tuple})


class Why(NamedTuple):
    """``evidence``: the lines behind a row. ``rule``: what was inferred, and from what; "" if nothing was.

    ``earliest_us``, ``latest_us``: bounds of the time, None if the time is exact. ``missing``: the row says
    that something is not known.
    """

    evidence: Sequence[Observation] = ()
    rule: str = ""
    earliest_us: int | None = None
    latest_us: int | None = None
    inferred: bool = False
    missing: bool = False


def between(before: Observation | None, line: Observation, rule: str) -> Why:
    """Why a row says what happened after ``before``, if there was anything, and not later than ``line``."""
    return Why([line], rule, None if before is None else before.time_us, line.time_us, inferred=True)


@cache
def with_provenance(event_type: Any) -> Any:
    """The event type with the columns of provenance behind its own."""
    return namedtuple(event_type.__name__, (*event_type._fields, *_COLUMNS))


class Rows:
    """Takes rows in any order; `entries` gives them in the order of the trace.

    Rows of one instant stand in the order of the observations that they hang on, then by ``step`` around it.
    """

    def __init__(self) -> None:
        self._sorter = SpillingSorter(key=itemgetter(0, 1, 2))

    def add(self, at: Observation, source: Source, event: TracedEvent, why: Why, step: int = 0) -> None:
        evidence, rule, earliest_us, latest_us, inferred, missing = _bounded(why)
        provenance = _OBSERVED
        if missing:
            provenance = _MISSING
        elif inferred or not evidence:
            provenance = _INFERRED
        lines = [(one.source, one.line) for one in evidence]
        values = tuple(event)
        if not _PLAIN.issuperset(map(type, values)):
            values = tuple([str(value) if isinstance(value, StrEnum) else value for value in event])
        self._sorter.add(
            (
                at.time_us,
                at.order,
                step,
                source.value,
                event_name(type(event)),
                values,
                provenance,
                lines if len(lines) < 2 else [*dict.fromkeys(lines)],
                rule or None,
                earliest_us,
                latest_us,
            )
        )

    def entries(self, began_us: int, places: Iterable[Any]) -> Iterator[TraceEntry]:
        """The rows, their times counted from ``began_us``. ``places``: each log's parser."""
        logs = [*places]
        kinds = event_types()
        for time_us, _, _, source, name, values, provenance, evidence, rule, *bounds in self._sorter.sorted():
            lines = tuple(logs[log].place(line) for log, line in evidence)
            earliest, latest = (None if us is None else max(0, us - began_us) for us in bounds)
            event = with_provenance(kinds[name])(*values, provenance, lines or None, rule, earliest, latest)
            yield max(0, time_us - began_us), Source(source), event


def _bounded(why: Why) -> Why:
    """With the rule of a line behind the row whose time is a bound."""
    bounded = [one for one in why.evidence if TIME_RULE in one.fields]
    times = [one.time_us for one in bounded]
    for bound, sentence in sorted({one.fields[TIME_RULE] for one in bounded}):
        why = why._replace(rule="; ".join(filter(None, (why.rule, sentence))), inferred=True)
        if bound == "earliest" and why.earliest_us is None:
            why = why._replace(earliest_us=max(times))
        elif bound == "latest" and why.latest_us is None:
            why = why._replace(latest_us=min(times))
    return why


def with_own_names(
    entries: Iterable[TraceEntry], shared: Mapping[str, Collection[str]]
) -> Iterator[TraceEntry]:
    """The rows with the member id in the place of a client id that several members have at once.

    ``shared``: these client ids by group.
    """
    for entry in entries:
        event: Any = entry[2]
        names = shared.get(event.group)
        if names and getattr(event, "member", None) in names and getattr(event, "member_id", None):
            yield *entry[:2], event._replace(member=event.member_id)
        else:
            yield entry


_EMPTY = "members: the group is Empty"
_NOT_EMPTY = "members: the group is not Empty any more"
_ALL_LEFT = "members: by the logs of all members, each has left"
_ONE_CAME = "members: a member's own log says that it is there"


def with_memberless_times(
    entries: Iterable[TraceEntry], told_by_members: Mapping[str, set[str]]
) -> Iterator[TraceEntry]:
    """The rows of an import, in the trace's order, and a row where a group begins or ends to have members.

    ``told_by_members``: groups of which only members tell, each in a log of its own: who is there at first.
    """
    empty: set[str] = set()
    running = {name: {*members} for name, members in told_by_members.items()}
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
        event.group, _INFERRED, event.evidence, rule, event.earliest_us, event.latest_us
    )

"""Rows that say how they are known: events with the columns of version 2, sorted into a trace."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from operator import itemgetter
from types import NoneType
from typing import Any, Final, NamedTuple

from groupstorm.imports.observation import TIME_RULE, Observation
from groupstorm.imports.spill import SpillingSorter
from groupstorm.trace.rows import TracedEvent, TraceEntry, event_name, event_types
from groupstorm.trace.schema import PROVENANCE_COLUMNS, Source

_SOURCES = {str(source): source for source in Source}
_SOURCE_NAMES = {source: name for name, source in _SOURCES.items()}
_COLUMNS = tuple(column.name for column in PROVENANCE_COLUMNS)


class Provenance(StrEnum):
    OBSERVED = "observed"
    INFERRED = "inferred"
    MISSING = "missing"


#: As texts, which can be put on disk.
_OBSERVED, _INFERRED, _MISSING = (str(one) for one in Provenance)


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


@cache
def with_provenance(event_type: Any) -> Any:
    """The event type with the columns of provenance behind its own."""
    return namedtuple(event_type.__name__, (*event_type._fields, *_COLUMNS))


class Rows:
    """Takes rows in any order; `entries` gives them in the order of the trace.

    ``order`` and ``step`` order rows of one instant: by the observation that they hang on, then around it.
    """

    def __init__(self) -> None:
        self._sorter = SpillingSorter(key=itemgetter(0, 1, 2))
        self.count = 0

    def add(
        self, time_us: int, order: int, source: Source, event: TracedEvent, why: Why, step: int = 0
    ) -> None:
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
                time_us,
                order,
                step,
                _SOURCE_NAMES[source],
                event_name(type(event)),
                values,
                provenance,
                lines if len(lines) < 2 else [*dict.fromkeys(lines)],
                rule or None,
                earliest_us,
                latest_us,
            )
        )
        self.count += 1

    def entries(self, began_us: int, places: Iterable[Any]) -> Iterator[TraceEntry]:
        """The rows, their times counted from ``began_us``. ``places``: each log's parser."""
        logs = [*places]
        kinds = event_types()
        for (
            time_us,
            _,
            _,
            source,
            name,
            values,
            provenance,
            evidence,
            rule,
            earliest,
            latest,
        ) in self._sorter.sorted():
            lines = tuple(logs[log].place(line) for log, line in evidence)
            event = with_provenance(kinds[name])(
                *values, provenance, lines or None, rule, _since(began_us, earliest), _since(began_us, latest)
            )
            yield max(0, time_us - began_us), _SOURCES[source], event


def _bounded(why: Why) -> Why:
    """With the rule of a line behind the row whose time is a bound."""
    for one in why.evidence:
        if TIME_RULE in one.fields:
            break
    else:
        return why
    rules = {one.fields[TIME_RULE] for one in why.evidence if TIME_RULE in one.fields}
    for bound, sentence in sorted(rules):
        times = [one.time_us for one in why.evidence if TIME_RULE in one.fields]
        why = why._replace(rule="; ".join(filter(None, (why.rule, sentence))), inferred=True)
        if bound == "earliest" and why.earliest_us is None:
            why = why._replace(earliest_us=max(times))
        elif bound == "latest" and why.latest_us is None:
            why = why._replace(latest_us=min(times))
    return why


def _since(began_us: int, time_us: int | None) -> int | None:
    return None if time_us is None else max(0, time_us - began_us)

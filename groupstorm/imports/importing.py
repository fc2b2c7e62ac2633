"""`groupstorm import`, without the command line: logs in, a trace in a folder out."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Final

from groupstorm.imports.clocks import Anchors, Offset, anchor_rank
from groupstorm.imports.envelopes import Envelope
from groupstorm.imports.groups_command.reader import DescribedGroups
from groupstorm.imports.kinds import SourceKind, kind_of
from groupstorm.imports.lines import Log
from groupstorm.imports.memberless import with_memberless_times
from groupstorm.imports.observation import Observation
from groupstorm.imports.offsets_topic.dump import OffsetsDump
from groupstorm.imports.offsets_topic.segments import OffsetsSegments
from groupstorm.imports.output import import_folder, write_summary
from groupstorm.imports.parser import LogParser
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.provenance import Rows, Why
from groupstorm.imports.result import Imported
from groupstorm.imports.source import LogSource
from groupstorm.imports.spill import SpillingSorter
from groupstorm.imports.timeline.connect import NO_PARTITIONS
from groupstorm.imports.timeline.group import ADD_ASSIGNMENTS, GroupRecord
from groupstorm.imports.timeline.groups import OWN_MEMBER_ID, Groups
from groupstorm.imports.times import Instant, shown
from groupstorm.imports.topic_ids import with_topic_names
from groupstorm.problems import InputError
from groupstorm.trace.events import imported
from groupstorm.trace.schema import IMPORTED_VERSION, Source
from groupstorm.trace.writer import open_writer

#: Clients that say little or nothing about their groups.
_SILENT: Final = frozenset({Writer.SARAMA, Writer.KAFKA_GO, Writer.BROD, Writer.SPRING})


@dataclass(frozen=True, slots=True)
class Options:
    """``zones``: by log name, "" for all others. ``groups``: None for all. ``times``: when an output of
    kafka-consumer-groups was printed, by its name, "" for all others."""

    zones: Mapping[str, tzinfo] = field(default_factory=dict)
    envelope: Envelope | None = None
    groups: frozenset[str] | None = None
    trace_format: str = "jsonl"
    times: Mapping[str, Instant] = field(default_factory=dict)


class _SortedLog:
    """The observations of one log, sorted by time."""

    def __init__(self, parser: LogSource, anchors: Anchors, groups: frozenset[str] | None) -> None:
        self.parser = parser
        #: Group and member id -> client id, as far as a line says both.
        self.clients: dict[tuple[str, str], str] = {}
        self._sorter = SpillingSorter(key=lambda one: (one[0], -one[2] if parser.newest_first else one[2]))
        for one in parser.observations():
            if groups is None or not one.group or one.group in groups:
                anchors.add(one)
                if one.kind in OWN_MEMBER_ID and one.fields.get("client") and one.fields.get("member_id"):
                    self.clients[one.group, one.fields["member_id"]] = one.fields["client"]
                self._sorter.add(tuple(one))

    def observations(self, offset_us: int) -> Iterator[Observation]:
        for time_us, source, line, kind, group, fields in self._sorter.sorted():
            yield Observation(time_us - offset_us, source, line, kind, group, fields)


def import_logs(logs: Sequence[Log], out: Path, options: Options) -> Imported:
    """Read the logs and write a trace into ``out``, with `import.json` beside it.

    Raises InputError if no log says anything about a group, or nothing that has a time; OutputError.
    """
    sources = []
    for number, log in enumerate(logs):
        tz = options.zones.get(log.name, options.zones.get("", UTC))
        sources.append(_source(log, number, tz, options))
    return import_sources(sources, out, options)


def import_sources(sources: Sequence[LogSource], out: Path, options: Options) -> Imported:
    """`import_logs` of sources of any kind, numbered from 0 in this order."""
    anchors = Anchors()
    read = [_SortedLog(source, anchors, options.groups) for source in sources]
    parsers = [one.parser for one in read]
    _check(parsers)
    offsets = anchors.offsets(parsers)
    rows = Rows()
    clients = {known: client for one in read for known, client in one.clients.items()}
    groups = Groups(rows, parsers, clients)
    streams = [one.observations(offsets[one.parser.number].us) for one in read]
    began_us = ended_us = 0
    names = {topic_id: name for one in parsers for topic_id, name in one.topic_names.items()}
    said = (one for one in heapq.merge(*streams, key=_in_order(parsers)) if not groups.configures(one))
    for order, unnamed in enumerate(said):
        one = with_topic_names(unnamed, names)
        began_us = one.time_us if order == 0 else began_us
        ended_us = one.time_us
        groups.add(one, order)
    found = groups.finish()
    if not found:
        raise InputError(_nothing(parsers, options.groups))
    for record in found:
        _describe(record, rows, began_us, parsers, offsets)
    with import_folder(out) as folder:
        writer = open_writer(folder, "trace", options.trace_format, IMPORTED_VERSION)
        try:
            told = {one.name for one in found if one.is_told_by_members_alone}
            writer.add_all(with_memberless_times(rows.entries(began_us, parsers), told))
            writer.close()
        except BaseException:
            writer.discard()
            raise
        done = Imported(found, parsers, offsets, began_us, ended_us, writer.rows)
        write_summary(folder / "import.json", done)
    return done


def _source(log: Log, number: int, tz: tzinfo, options: Options) -> LogSource:
    """What reads a source of this kind."""
    kind = kind_of(log)
    if kind is SourceKind.SEGMENTS:
        return OffsetsSegments(log, number)
    if kind is SourceKind.DUMP:
        return OffsetsDump(log, number)
    if kind is SourceKind.DESCRIBED:
        named = [*(options.groups or ())]
        at = options.times.get(log.name, options.times.get(""))
        return DescribedGroups(log, number, at, named[0] if len(named) == 1 else None, tz)
    return LogParser(log, number, tz, options.envelope)


def _in_order(parsers: Sequence[LogSource]) -> Callable[[Observation], Any]:
    """At one time, clients' lines from before the coordinator answers come first, then its own, then theirs
    after."""
    return lambda one: (one.time_us, anchor_rank(one.kind), one.source)


def _check(parsers: Sequence[LogSource]) -> None:
    for parser in parsers:
        if len(parsers) > 1 and isinstance(parser, DescribedGroups) and parser.is_timeless:
            raise InputError(
                f"{parser.log.name}: nothing says when the output was printed, so it has no place among the "
                f"other sources: say it with --at '{parser.log.name}=2026-01-31T12:00:00Z'"
            )
        if parser.untimed and parser.first_us is None:
            raise InputError(
                f"{parser.log.name}: lines about groups ({parser.untimed}), and none says when: expected a "
                f"log with "
                "times; if it has them, name them with --pattern '(?P<time>...)'"
            )


def _nothing(parsers: Sequence[LogSource], groups: frozenset[str] | None) -> str:
    damage = [each for parser in parsers for each in parser.damage]
    more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
    because = f"{damage[0]}{more}; " if damage else ""
    if groups is not None and any(parser.first_us is not None for parser in parsers):
        return f"{because}--group {', '.join(sorted(groups))}: no line of the logs names it"
    lines = sum(parser.lines for parser in parsers)
    if damage:
        return f"{because}none of {lines:,} lines says what a group did"
    unknown = sum(parser.not_understood for parser in parsers)
    names = ", ".join(parser.log.name for parser in parsers)
    silent = sorted({str(one) for parser in parsers for one in parser.writers} & _SILENT)
    if silent:
        return (
            f"{because}{names}: these are lines of {' and '.join(silent)}, which does not log the rounds of "
            "its group: add the log of the group's coordinator (kafka.coordinator.group at INFO)"
        )
    hint = f"; {unknown:,} lines look like Kafka's and are not understood (--unknown)" if unknown else ""
    understood = sum(parser.understood for parser in parsers)
    if understood:
        return (
            f"{because}{names}: {understood:,} of {lines:,} lines are about groups, and none says what one "
            f"did{hint}: add the log from before and after them, and the log of the group's coordinator "
            "(kafka.coordinator.group at INFO)"
        )
    return (
        f"{names}: none of {lines:,} lines says what a group did{hint}: expected the log of a broker "
        "(kafka.coordinator.group at INFO), or of a client (org.apache.kafka.clients.consumer at INFO), "
        "records of __consumer_offsets, or what kafka-consumer-groups --describe prints"
    )


def _describe(
    record: GroupRecord,
    rows: Rows,
    began_us: int,
    parsers: Iterable[LogSource],
    offsets: Mapping[int, Offset],
) -> None:
    """The first row of a group: the wall clock, the logs, and from whose rows ownership follows."""
    logs = [
        {"log": one.log.name, "clock_offset_us": offsets[one.number].us, "zone_stated": one.zoned}
        for one in parsers
    ]
    detail = json.dumps({"began": shown(began_us), "logs": logs}, ensure_ascii=False, separators=(",", ":"))
    event = imported.GroupImported(record.name, record.view, detail)
    first_us = began_us if record.first_us is None else record.first_us
    rows.add(first_us, record.first_order, Source.WORLD, event, Why(rule="made by groupstorm import"), -9)
    if not record.rounds_known and not record.owners_described:
        unknown = f"who owned which partition is not known: {ADD_ASSIGNMENTS}"
        unknown = NO_PARTITIONS if record.is_connect else unknown
        _, sentence = record.missing.setdefault("ownership", (1, unknown))
        missing = imported.EvidenceMissing(record.name, "ownership", None, sentence)
        rows.add(first_us, record.first_order, Source.WORLD, missing, Why(missing=True), -8)

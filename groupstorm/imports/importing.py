"""`groupstorm import`, without the command line: logs in, a trace in a folder out."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, tzinfo
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

from groupstorm.garbage import few_collections
from groupstorm.imports.clocks import Anchors, Offset, anchor_rank
from groupstorm.imports.groups_command import DescribedGroups
from groupstorm.imports.line_owners import UNNAMED_GROUP
from groupstorm.imports.lines import HEAD_BYTES, SEGMENT_NAME, Log, open_files
from groupstorm.imports.offsets_topic.segments import MAGIC, MAGIC_AT, OffsetsSegments
from groupstorm.imports.offsets_topic.text import OffsetsDump
from groupstorm.imports.output import SUMMARY, Imported, import_folder, write_summary
from groupstorm.imports.parser import LogParser
from groupstorm.imports.prefixes import Writer, find_prefix
from groupstorm.imports.provenance import Rows, Why, with_memberless_times, with_own_names
from groupstorm.imports.source import POD, LogSource, Observation, with_topic_names
from groupstorm.imports.spill import SpillingSorter
from groupstorm.imports.templates import BROKER_KINDS
from groupstorm.imports.timeline.group import (
    NO_PARTITIONS,
    OWNERS_UNKNOWN,
    OWNERS_UNKNOWN_MODERN,
    GroupRecord,
)
from groupstorm.imports.timeline.groups import OWN_MEMBER_ID, GroupTimeline, ObservationsByGroup
from groupstorm.imports.timeline.streams import THREAD
from groupstorm.imports.timeline.summary import GroupSummary
from groupstorm.imports.times import Instant, shown
from groupstorm.problems import InputError
from groupstorm.trace.events import imported
from groupstorm.trace.schema import IMPORTED_VERSION, Source
from groupstorm.trace.writer import open_writer
from groupstorm.wording import counted

_T = TypeVar("_T")
#: Clients that say little or nothing about their groups.
_SILENT: Final = frozenset({Writer.SARAMA, Writer.SPRING})


@dataclass(frozen=True, slots=True)
class Options:
    """``zones``: by the name of a log or of its file, "" for all others. ``groups``: None for all. ``times``:
    when an output of kafka-consumer-groups was printed, ``days``: when the first line was written of a log
    whose times print no date, each by its name, "" for all others."""

    zones: Mapping[str, tzinfo] = field(default_factory=dict)
    envelope: re.Pattern[str] | None = None
    groups: frozenset[str] | None = None
    trace_format: str = "jsonl"
    times: Mapping[str, Instant] = field(default_factory=dict)
    days: Mapping[str, date] = field(default_factory=dict)


#: Group and client id -> the pods whose lines name it.
Pods = dict[tuple[str, str], set[str]]


class _SortedLog:
    """The observations of one log, sorted by time."""

    def __init__(
        self, parser: LogSource, anchors: Anchors, groups: frozenset[str] | None, pods: Pods
    ) -> None:
        self.parser = parser
        self._pods = pods
        #: Group and member id -> client id, as far as a line says both, and pod.
        self._clients: dict[tuple[str, str], str] = {}
        self._pod_of: dict[tuple[str, str], str] = {}
        #: Group and client id -> when its own lines, which name no pod, say its member ids; and these.
        self.spans: dict[tuple[str, str], tuple[int, int, set[str]]] = {}
        #: Those of them that go by the name of the log, as by that of a pod.
        self.by_name: set[tuple[str, str]] = set()
        #: Member ids of lines that name no group.
        self.ungrouped: set[str] = set()
        #: Instance of Kafka Streams -> its group, by the member ids of its threads.
        self.instances: dict[str, str] = {}
        #: Whether it has lines of groups that are left out.
        self.leaves_out = False
        self._sorter = SpillingSorter(key=lambda one: (one[0], -one[2] if parser.newest_first else one[2]))
        for one in parser.observations():
            if groups is not None and one.group and one.group not in groups:
                self.leaves_out = True
                continue
            client, pod = one.fields.get("client"), one.fields.get(POD, "")
            if client and pod:
                pods.setdefault((one.group, client), set()).add(pod)
            anchors.add(one._replace(fields={**one.fields, "client": f"{pod} {client}"}) if pod else one)
            if one.kind in OWN_MEMBER_ID and client and one.fields.get("member_id"):
                self._clients[one.group, one.fields["member_id"]] = client
                if pod:
                    self._pod_of[one.group, one.fields["member_id"]] = pod
                elif one.kind not in BROKER_KINDS:
                    at_us, own = one.time_us, (one.group, client)
                    since_us, until_us, ids = self.spans.setdefault(own, (at_us, at_us, set()))
                    ids.add(one.fields["member_id"])
                    self.spans[own] = min(since_us, at_us), max(until_us, at_us), ids
            if one.group and THREAD in (member_id := one.fields.get("member_id") or ""):
                self.instances[member_id.partition(THREAD)[0]] = one.group
            if not one.group and "old_member_id" in one.fields:
                self.ungrouped.add(one.fields["old_member_id"])
            self._sorter.add(tuple(one))

    def clients(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Group and member id, and the name of the client."""
        for known, client in self._clients.items():
            yield known, self._named(known[0], client, self._pod_of.get(known, ""))

    def _named(self, group: str, client: str, pod: str) -> str:
        """The client id; with the pod if several pods have it."""
        if not pod and (group, client) in self.by_name:
            return f"{Path(self.parser.log.name).stem} {client}"
        return f"{pod} {client}" if pod and len(self._pods[group, client]) > 1 else client

    def observations(self, offset_us: int, instances: Mapping[str, str]) -> Iterator[Observation]:
        """``instances``: the groups of instances of Kafka Streams whose own lines name none."""
        for time_us, source, line, kind, said, fields, _ in self._sorter.sorted():
            group = said or instances.get((fields.get("client") or "").partition(THREAD)[0], "")
            if fields.get("client") and kind not in BROKER_KINDS:
                fields["client"] = self._named(group, fields["client"], fields.get(POD, ""))
            yield Observation(time_us - offset_us, source, line, kind, group, fields)


def _see_processes(read: Sequence[_SortedLog], offsets: Mapping[int, Offset]) -> None:
    """Let clients of one id go by their logs if they are several at once, each with member ids of its own."""
    for key in {key for log in read for key in log.spans}:
        logs = [log for log in read if key in log.spans]
        ids = [member_id for log in logs for member_id in log.spans[key][2]]
        names = {Path(log.parser.log.name).stem for log in logs}
        moved = ((log.spans[key], offsets[log.parser.number].us) for log in logs)
        spans = sorted((since_us - by_us, until_us - by_us) for (since_us, until_us, _), by_us in moved)
        are_at_once = any(before[1] > after[0] for before, after in pairwise(spans))
        if are_at_once and len({*ids}) == len(ids) and len(names) == len(logs):
            for log in logs:
                log.by_name.add(key)


def import_logs(logs: Sequence[Log], out: Path, options: Options) -> Imported:
    """Read the logs and write a trace into ``out``, with `import.json` beside it.

    Raises InputError if no log says anything about a group, or nothing that has a time; OutputError.
    """
    return import_sources(sources_of(logs, options), out, options)


def sources_of(logs: Sequence[Log], options: Options) -> list[LogSource]:
    """A reader for each of the logs, by its kind. Raises InputError."""
    names = {name for log in logs for name in ("", log.name, Path(log.name).name)}
    values = {"--time-zone": options.zones, "--at": options.times, "--date": options.days}
    wrong = [f"{option} {name}" for option, named in values.items() for name in named if name not in names]
    if wrong:
        raise InputError(f"{wrong[0]}=: no such log: expected one of {', '.join(one.name for one in logs)}")
    kinds = [(log, kind) for log in logs for kind in kinds_of(log)]
    return [_source(log, kind, number, options) for number, (log, kind) in enumerate(kinds)]


@few_collections()
def import_sources(sources: Sequence[LogSource], out: Path, options: Options) -> Imported:
    """`import_logs` of sources of any kind, numbered from 0 in this order."""
    anchors = Anchors()
    pods: Pods = {}
    read = [_SortedLog(source, anchors, options.groups, pods) for source in sources]
    parsers = [one.parser for one in read]
    _check(parsers)
    offsets = anchors.offsets(parsers)
    _see_processes(read, offsets)
    ungrouped = {member_id for one in read for member_id in one.ungrouped}
    has_all = not any(one.leaves_out for one in read)
    by_group = ObservationsByGroup(ungrouped, has_all, UNNAMED_GROUP if options.groups is None else "")
    instances = {name: group for one in read for name, group in one.instances.items()}
    streams = [one.observations(offsets[one.parser.number].us, instances) for one in read]
    names = {topic_id: name for one in parsers for topic_id, name in one.topic_names.items()}
    for said in heapq.merge(*streams, key=_in_order):
        by_group.add(with_topic_names(said, names))
    clients: dict[str, dict[str, str]] = {}
    for (group, member_id), client in (known for one in read for known in one.clients()):
        clients.setdefault(group, {})[member_id] = client
    rows = Rows()
    found: list[GroupSummary] = []
    told: dict[str, set[str]] = {}
    shared: dict[str, set[str]] = {}
    began_us, ended_us = by_group.began_us, by_group.ended_us
    origin = _origin(began_us, parsers, offsets)
    for name, observations in by_group.groups():
        timeline = GroupTimeline(name, rows, clients.get(name, {}))
        for one, configuration, refused in observations:
            timeline.add(one, configuration, refused)
        record = timeline.finish()
        if record is not None:
            _describe(record, rows, origin)
            found.append(record.summarized())
            if record.shared:
                shared[name] = record.shared
            if record.is_told_by_members_alone:
                told[name] = record.running
    if not found:
        raise InputError(_nothing(parsers, options.groups))
    with import_folder(out) as folder:
        writer = open_writer(folder, "trace", options.trace_format, IMPORTED_VERSION)
        try:
            writer.add_all(
                with_memberless_times(with_own_names(rows.entries(began_us, parsers), shared), told)
            )
            writer.close()
        except BaseException:
            writer.discard()
            raise
        done = Imported(found, parsers, offsets, began_us, ended_us, writer.rows)
        write_summary(folder / SUMMARY, done)
    return done


def _of(values: Mapping[str, _T], log: Log) -> _T | None:
    """The value for a log: by its name, else by that of its file, else the value for all others."""
    return values.get(log.name, values.get(Path(log.name).name, values.get("")))


def _source(log: Log, kind: SourceKind, number: int, options: Options) -> LogSource:
    tz, day = _of(options.zones, log) or UTC, _of(options.days, log)
    if kind is SourceKind.SEGMENTS:
        return OffsetsSegments(log, number)
    if kind is SourceKind.DUMP:
        return OffsetsDump(log, number)
    if kind is SourceKind.DESCRIBED:
        named = [*(options.groups or ())]
        at = _of(options.times, log)
        return DescribedGroups(log, number, at, named[0] if len(named) == 1 else None, tz, day)
    return LogParser(log, number, tz, options.envelope, day)


def _in_order(one: Observation) -> tuple[int, int, int]:
    """At one time, clients' lines from before the coordinator answers come first, then its own, then theirs
    after."""
    return one.time_us, anchor_rank(one.kind), one.source


def _check(parsers: Sequence[LogSource]) -> None:
    timed = [parser for parser in parsers if parser.first_us is not None]
    for parser in parsers:
        name, lacks = parser.log.name, parser.clock.lacks
        if len(parsers) > 1 and lacks == "time":
            raise InputError(
                f"{name}: nothing says when the output was printed, so it has no place among the "
                f"other sources: say it with --at '{name}=2026-01-31T12:00:00Z'"
            )
        if lacks and any(one.clock.lacks != lacks for one in timed):
            raise InputError(
                f"{name}: its times have no {lacks}, so it has no place among the other sources: give the "
                f"date of its first line with --date '{name}=2026-01-31'"
            )
        if parser.untimed and parser.first_us is None:
            raise InputError(
                f"{name}: lines about groups ({parser.untimed}), and none says when: expected a log with "
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
    hint = f"; {counted(unknown, 'line')} of Kafka's not understood (--unknown)" if unknown else ""
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


def _origin(began_us: int, parsers: Iterable[LogSource], offsets: Mapping[int, Offset]) -> str:
    """The wall clock and the logs, as every group's first row has them."""
    logs = [
        {"log": one.log.name, "clock_offset_us": offsets[one.number].us, "zone_stated": one.clock.zoned}
        for one in parsers
    ]
    lacks = next((one.clock.lacks for one in parsers if one.clock.lacks), "")
    began = {"clock" if lacks else "began": shown(began_us, lacks), "logs": logs}
    return json.dumps(began, ensure_ascii=False, separators=(",", ":"))


def _describe(record: GroupRecord, rows: Rows, origin: str) -> None:
    """The first row of a group: where it comes from, and from whose rows ownership follows."""
    event = imported.GroupImported(record.name, record.view, origin)
    rows.add(record.first, Source.WORLD, event, Why(rule="made by groupstorm import"), -9)
    if not record.summary.rounds_known and not record.owners_described:
        unknown = OWNERS_UNKNOWN_MODERN if record.is_modern else OWNERS_UNKNOWN
        unknown = NO_PARTITIONS if record.is_connect else unknown
        _, sentence = record.summary.missing.setdefault("ownership", (1, unknown))
        missing = imported.EvidenceMissing(record.name, "ownership", None, sentence)
        rows.add(record.first, Source.WORLD, missing, Why(missing=True), -8)


class SourceKind(StrEnum):
    """The way in which a source is read."""

    LOG = "log"
    DUMP = "dump"
    SEGMENTS = "segments"
    DESCRIBED = "described"


#: Kind -> what a line of it looks like; of other sources no line does.
_LINES: Final[Mapping[SourceKind, re.Pattern[str]]] = {
    SourceKind.DUMP: re.compile(
        r"^(?:baseOffset: \d+ lastOffset: |(?:\| )?offset: \d+ .*(?: key: .* payload: |endTxnMarker: )"
        r'|\{"key":\{"(?:type|version)":|\[.*,.*,\d+\]::(?:\[?Offset|NULL)|.*::GroupMetadata\()',
        re.MULTILINE,
    ),
    SourceKind.DESCRIBED: re.compile(
        r"^(?:GROUP +)?(?:TOPIC +PARTITION +.*(?:LOG-END|START)-OFFSET|CONSUMER-ID +.*#PARTITIONS"
        r"|COORDINATOR \(ID\) +(?:ASSIGNMENT-STRATEGY|.*STATE))"
        r"|^(?:Consumer|Share) group '.*' has no active members\.$",
        re.MULTILINE,
    ),
}


def kinds_of(log: Log) -> tuple[SourceKind, ...]:
    """By the names of the files, or by the first lines. A log may have tables between its lines."""
    if log.files and all(SEGMENT_NAME.fullmatch(path.name) for path in log.files):
        return (SourceKind.SEGMENTS,)
    data = _head(log)
    if _is_batch(data):
        return (SourceKind.SEGMENTS,)
    head = data.decode("utf-8", "replace")
    found = next((kind for kind, line in _LINES.items() if line.search(head)), SourceKind.LOG)
    if found is SourceKind.LOG or find_prefix(head) is None:
        return (found,)
    is_read_twice = found is SourceKind.DESCRIBED and log.pipe is None
    return (SourceKind.LOG, found) if is_read_twice else (SourceKind.LOG,)


def _is_batch(head: bytes) -> bool:
    """Whether a file of another name begins with a record batch: its offset has no more than 48 bits."""
    return len(head) > MAGIC_AT and head[:2] == b"\0\0" and head[MAGIC_AT] == MAGIC


def _head(log: Log) -> bytes:
    """The beginning of the first file that can be read. Of a pipe it is still there to be read."""
    return next((head for file in open_files(log) if (head := file.bytes.peek(HEAD_BYTES))), b"")

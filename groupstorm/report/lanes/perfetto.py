"""A trace as lanes for ui.perfetto.dev: a process per group, a thread per member, flows for handovers.

The file has the format of Chrome's tracing, described in "Trace Event Format" (Chromium): slices are written
as they begin and end (phases B and E), so that a trace of any length needs memory for the open ones alone.
Times are microseconds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from groupstorm.figures.accumulator import FiguresAccumulator, Window
from groupstorm.history.gaps import ClosedGap
from groupstorm.history.unknown import figures_from_us
from groupstorm.imports.timeline.members import name_before_uuid
from groupstorm.problems import InputError, writing
from groupstorm.report.lanes.members import Activity, GroupLanes, Member, Row
from groupstorm.report.story import require
from groupstorm.trace.reader import read_entries
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.writer import complete_or_absent
from groupstorm.visible import visible_in_json
from groupstorm.wording import counted

#: Takes one event of the format.
Emit = Callable[[Mapping[str, Any]], None]

#: Ends of slices that a thread remembers for flows that begin there.
_ENDS_MAX: Final = 64


class Slice(NamedTuple):
    """A slice of a thread. Two with different ``key`` are not one, even if they have one name."""

    name: str
    key: object = None
    args: Mapping[str, Any] = {}

    def is_same(self, other: Slice) -> bool:
        return self[:2] == other[:2]


class Process:
    """A process of the format: a group."""

    def __init__(self, pid: int, name: str, emit: Emit) -> None:
        self._pid = pid
        self._emit = emit
        self._tids = count(1)
        emit({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        emit({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}})

    def thread(self, name: str) -> Thread:
        """A new thread; threads stand in the order in which they were made."""
        tid = next(self._tids)
        where = {"pid": self._pid, "tid": tid}
        self._emit({"ph": "M", **where, "name": "thread_name", "args": {"name": name}})
        self._emit({"ph": "M", **where, "name": "thread_sort_index", "args": {"sort_index": tid}})
        return Thread(where, self._emit)

    def counter(self, name: str, value: int, now_us: int) -> None:
        self._emit({"ph": "C", "pid": self._pid, "ts": now_us, "name": name, "args": {name: value}})


class Thread:
    """A thread of the format: a lane. All calls come in the order of time."""

    def __init__(self, where: Mapping[str, int], emit: Emit) -> None:
        self._where = where
        self._emit = emit
        self._open: list[tuple[Slice, int]] = []
        self._last_us = 0
        self._timed: Slice | None = None
        self._timed_until_us = 0
        #: When an outermost slice ended -> when it had begun. The oldest ones are forgotten.
        self._ends: dict[int, int] = {}

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def show(self, slices: Sequence[Slice], now_us: int) -> None:
        """From now on these slices are open, the outermost first, and no others."""
        self._end_timed(now_us)
        wanted = [*slices] if self._timed is None else [*slices, self._timed]
        kept = 0
        while kept < min(len(wanted), len(self._open)) and wanted[kept].is_same(self._open[kept][0]):
            kept += 1
        while len(self._open) > kept:
            self._close(now_us)
        for one in wanted[kept:]:
            self._begin(one, now_us)

    def finish(self, now_us: int) -> None:
        """Nothing is open any more."""
        self._end_timed(now_us)
        while self._open:
            self._close(now_us)
        self._timed = None

    def time(self, one: Slice, lasts_us: int, now_us: int) -> None:
        """Within the open slices another one begins that ends by itself. If those change it is cut in two."""
        self._end_timed(now_us)
        if self._timed is not None:
            self._close(now_us)
        self._timed, self._timed_until_us = one, now_us + lasts_us
        self._begin(one, now_us)

    def look_back(self, one: Slice, lasted_us: int, now_us: int) -> None:
        """A slice has just ended. As far as the open slices have not changed meanwhile, it is within them."""
        self._end_timed(now_us)
        begun_us = max(now_us - lasted_us, self._last_us)
        self._begin(one, begun_us)
        self._close(now_us)

    def instant(self, name: str, args: Mapping[str, Any], now_us: int) -> None:
        self._end_timed(now_us)
        self._put("i", now_us, {"name": name, "s": "t", "args": args})

    def flow_from(self, name: str, flow_id: int, ended_us: int) -> bool:
        """A flow begins in the outermost slice that ended then. Returns whether there was one."""
        begun_us = self._ends.get(ended_us, ended_us)
        if begun_us == ended_us:
            return False
        flow = {"ph": "s", **self._where, "ts": ended_us - 1, "id": flow_id, "name": name, "cat": "handover"}
        self._emit(flow)
        return True

    def flow_to(self, name: str, flow_id: int, now_us: int) -> None:
        """The flow ends in the slice that is open now."""
        self._put("f", now_us, {"id": flow_id, "name": name, "cat": "handover", "bp": "e"})

    def _begin(self, one: Slice, now_us: int) -> None:
        self._open.append((one, now_us))
        self._put("B", now_us, {"name": one.name, "args": one.args})

    def _close(self, now_us: int) -> None:
        _, begun_us = self._open.pop()
        self._put("E", now_us, {})
        if not self._open:
            self._ends.pop(now_us, None)
            self._ends[now_us] = begun_us
            if len(self._ends) > _ENDS_MAX:
                del self._ends[next(iter(self._ends))]

    def _end_timed(self, now_us: int) -> None:
        if self._timed is not None and self._timed_until_us <= now_us:
            self._timed = None
            self._close(max(self._timed_until_us, self._last_us))

    def _put(self, phase: str, now_us: int, rest: Mapping[str, Any]) -> None:
        self._last_us = now_us
        self._emit({"ph": phase, **self._where, "ts": now_us, **rest})


@contextmanager
def trace_event_file(path: Path, about: Mapping[str, Any]) -> Iterator[Emit]:
    """Write a file of the format that is complete or not there, compressed if its name ends in ``.gz``.

    ``about``: what the file says of itself. Raises OutputError.
    """
    is_compressed = path.suffix == ".gz"
    with complete_or_absent(path) as partial, writing(path), _opened(partial, is_compressed) as file:
        head = json.dumps({"displayTimeUnit": "ms", "otherData": about}, ensure_ascii=False)
        file.write(f'{visible_in_json(head[:-1])}, "traceEvents": [')
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        separators = iter(["\n"])

        def emit(event: Mapping[str, Any]) -> None:
            file.write(next(separators, ",\n") + visible_in_json(encode(event)))

        yield emit
        file.write("\n]}\n")


def _opened(path: Path, compressed: bool) -> IO[str]:
    if compressed:
        return cast("IO[str]", gzip.open(path, "wt", encoding="utf-8", newline="\n"))
    return path.open("w", encoding="utf-8", newline="\n")


UNOWNED: Final = "partitions without an owner"
_HANDOVER: Final = "handover"
#: Callbacks by their rows: those that begin with the row, and the one that ends with it.
_BEGINS: Final = {"partitions_revoked": "onPartitionsRevoked", "partitions_lost": "onPartitionsLost"}
_ENDS: Final = {"partitions_assigned": "onPartitionsAssigned"}
_IN_ROUND: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
_SCENARIO: Final = frozenset({"step_taken", "partitions_created", "partitions_deleted"})
#: Rows of a member that are drawn as instants.
_INSTANTS: Final = frozenset({"member_crashed", "member_failed", "member_closed", "member_removed"})
#: Columns that a slice or an instant has as its arguments.
_ARGS: Final = ("cause", "error", "generation", "detail", "topics", "protocol", "count")


def write_perfetto(trace: Path, out: Path, groups: frozenset[str], window: Window) -> int:
    """Write the lanes of a trace's groups, of all if ``groups`` is empty; returns the number of events.

    Raises InputError for a trace without rows, a row that is none, or a group that the trace does not have;
    OutputError if ``out`` cannot be written.
    """
    found: dict[str, _Group] = {}
    names: dict[str, None] = {}
    written = 0
    now_us = -1
    with trace_event_file(out, {"trace": str(trace)}) as emit_one:

        def emit(event: Mapping[str, Any]) -> None:
            nonlocal written
            written += 1
            emit_one(event)

        flows = count(1)
        for row, entry in read_entries(trace):
            now_us, group = row["time_us"], row["group"]
            names[group] = None
            if entry is None or not window.holds(now_us) or (groups and group not in groups):
                continue
            if group not in found:
                process = Process(len(found) + 1, f"group {group}", emit)
                found[group] = _Group(process, flows, window.from_us, figures_from_us(entry[2]) or 0)
            found[group].add_entry(row, entry)
        if now_us < 0:
            raise InputError(f"{trace}: the trace has no rows")
        for group in sorted(groups):
            require("--group", group, names)
        for one in found.values():
            one.finish(window.end(now_us))
    return written


class _Group(GroupLanes):
    """Writes the lanes of one group from ``from_us`` on; the rows before say who owned what until then."""

    def __init__(self, process: Process, flows: Iterator[int], from_us: int, flows_from_us: int) -> None:
        super().__init__()
        self._process = process
        self._flows = flows
        self._from_us = from_us
        self._flows_from_us = flows_from_us
        self._figures = FiguresAccumulator(listener=self)
        self._gaps: list[ClosedGap] = []
        self._rounds = process.thread("rounds")
        self._scenario: Thread | None = None
        self._threads: dict[str, Thread] = {}
        self._round = 0
        self._unowned: int | None = None
        self._now_us = 0
        self._is_written = from_us == 0
        #: The present round and the state in it; empty while there is none.
        self._open: tuple[Slice, ...] = ()
        self._round_name = ""

    def add_entry(self, row: Row, entry: TraceEntry) -> None:
        """Take the next row."""
        now_us = row["time_us"]
        if not self._is_written and now_us >= self._from_us:
            self._is_written = True
            self._show_members(self.members.values(), {}, self._from_us)
            self._rounds.show(self._open, self._from_us)
        if now_us != self._now_us:
            self._count_unowned()
        self._now_us = now_us
        self._figures.add(*entry)
        touched = [*self.take(row, self._figures)]
        if row["event"] == "group_state_changed":
            self._see_state(row)
        if self._is_written:
            self._show(row, touched)
            self._show_flows(now_us)
        self._gaps.clear()

    def finish(self, end_us: int) -> None:
        """The trace ends: what is open ends, too."""
        self._count_unowned()
        for thread in (self._rounds, *self._threads.values()):
            thread.finish(end_us)

    def _show(self, row: Row, touched: Iterable[Member]) -> None:
        event, now_us = row["event"], row["time_us"]
        args = {name: row[name] for name in _ARGS if name in row}
        if event == "group_state_changed":
            self._rounds.show(self._open, now_us)
        elif event == "group_deleted":
            self._rounds.show((), now_us)
        elif event in _SCENARIO:
            if self._scenario is None:
                self._scenario = self._process.thread("scenario")
            name = " ".join(filter(None, (row.get("cause", event), row.get("member"))))
            self._scenario.instant(name, args, now_us)
        if event in _ENDS:
            for member in touched:
                self._callback(member, _ENDS[event], row, args)
        self._show_members(touched, args, now_us)
        for member in touched:
            if event in _BEGINS:
                self._callback(member, _BEGINS[event], row, args)
            elif event in _INSTANTS:
                self._thread(member).instant(event, args, now_us)

    def _see_state(self, row: Row) -> None:
        """A round lasts until the group is Stable or Empty, or until the next one begins."""
        state, args = row["state"], {name: row[name] for name in _ARGS if name in row}
        if state not in _IN_ROUND:
            self._open = ()
            return
        if state == "PreparingRebalance" or row["previous_state"] not in _IN_ROUND:
            self._round += 1
            culprit = name_before_uuid(row.get("member_id", ""))
            self._round_name = f"round: {row['cause']}" + (f" ({culprit})" if culprit else "")
            if self._is_written:
                self._rounds.show((), row["time_us"])
        self._open = (Slice(self._round_name, self._round), Slice(state, None, args))

    def _show_members(self, members: Iterable[Member], args: Mapping[str, Any], now_us: int) -> None:
        for member in members:
            self._thread(member).show([*self._slices(member, args)], now_us)

    def _slices(self, member: Member, args: Mapping[str, Any]) -> Iterator[Slice]:
        """The slices that are open in the lane of a member, the outermost first."""
        activity = member.activity(self.knows_owners)
        if activity is Activity.GONE:
            return
        if member.partitions and self.knows_owners:
            partitions = {"partitions": " ".join(member.partitions)}
            name = f"owns {counted(len(member.partitions), 'partition')}"
            yield Slice(name, member.version, {**args, **partitions})
        if activity in (Activity.JOINS, Activity.REJOINS):
            yield Slice("joins", None, args)
        elif activity in (Activity.PAUSED, Activity.IDLE, Activity.UNKNOWN):
            yield Slice(str(activity), None, args)

    def _callback(self, member: Member, name: str, row: Row, args: Mapping[str, Any]) -> None:
        """A callback that took no time, or of which nobody knows how long it took, is an instant."""
        thread, lasted_us = self._thread(member), row.get("duration_us", 0)
        args = {**args, "partitions": " ".join(row["partitions"])}
        if not lasted_us:
            thread.instant(name, args, row["time_us"])
        elif row["event"] in _ENDS:
            thread.look_back(Slice(name, None, args), lasted_us, row["time_us"])
        else:
            thread.time(Slice(name, row["seq"], args), lasted_us, row["time_us"])

    def _thread(self, member: Member) -> Thread:
        thread = self._threads.get(member.name)
        if thread is None:
            thread = self._threads[member.name] = self._process.thread(member.label)
        return thread

    def _count_unowned(self) -> None:
        """All rows of the instant were taken: write the counter if it has changed."""
        unowned = self._figures.unowned_partitions()
        if unowned != self._unowned and self._is_written and self.knows_owners:
            self._unowned = unowned
            if unowned is not None:
                self._process.counter(UNOWNED, unowned, max(self._now_us, self._from_us))

    def gap_closed(self, gap: ClosedGap) -> None:
        if gap.gap_us and gap.to_us > self._flows_from_us:
            self._gaps.append(gap)

    def _show_flows(self, now_us: int) -> None:
        """A flow from each old owner to the new one, however many partitions it hands over at once."""
        pairs: dict[tuple[str, str, int], int] = {}
        for gap in self._gaps if self.knows_owners else ():
            if gap.old_owner is not None and gap.new_owner not in (None, gap.old_owner):
                pair = gap.old_owner, str(gap.new_owner), gap.from_us
                pairs[pair] = pairs.get(pair, 0) + 1
        for (old, new, from_us), partitions in pairs.items():
            old_thread, new_thread = self._threads.get(old), self._threads.get(new)
            if old_thread is None or new_thread is None or not new_thread.is_open:
                continue
            flow_id, name = next(self._flows), f"{_HANDOVER} of {counted(partitions, 'partition')}"
            if old_thread.flow_from(name, flow_id, from_us):
                new_thread.flow_to(name, flow_id, now_us)

"""Chrome's trace-event format: threads with slices that nest, instants, counters and flows, as a file.

The format is described in "Trace Event Format" (Chromium). Slices are written as they begin and end (phases B
and E), so that a trace of any length needs memory for the open ones alone. Times are microseconds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from groupstorm.problems import writing
from groupstorm.trace.writer import complete_or_absent
from groupstorm.visible import visible_in_json

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

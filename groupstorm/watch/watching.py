"""A watch from its start to its end: rows come in, and pictures of them are made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from groupstorm.problems import InputError
from groupstorm.watch.alerts import Active, Alert, AlertChange, compare
from groupstorm.watch.checkpoint import Checkpoint, open_checkpoint
from groupstorm.watch.feed import Line, Progress, WatchedRow, read_line
from groupstorm.watch.group import GroupPicture
from groupstorm.watch.rolling import GroupSums, Rolling
from groupstorm.watch.sources import TraceSource

MICROSECONDS = 1_000_000
#: Rows older than this have come, late files aside: a sum up to then does not shrink with the next rows.
SETTLED_US = 30 * MICROSECONDS
_PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Picture:
    """The state that is known at ``end_us`` of the trace, which is ``quiet_seconds`` after its last row came.

    ``kept_from_us``: what happened before is in no span, however long.
    ``spans``: by the length of each span in microseconds, the groups in it. ``sums``: since the trace began,
    up to the last row or, if that is later, to `SETTLED_US` before ``end_us``. ``missing``, ``too_late``: see
    `Rolling`. ``changes``: alerts that have begun or are over since the last picture; ``active``: those that
    are on.
    """

    kept_from_us: int
    end_us: int
    quiet_seconds: float
    missing: int
    too_late: int
    spans: dict[int, list[GroupPicture]]
    sums: dict[str, GroupSums]
    changes: list[AlertChange]
    active: Active

    def length_us(self, span_us: int) -> int:
        """Return how much of a span lies within the trace, and within what was kept."""
        return min(span_us, self.end_us - self.kept_from_us)

    @property
    def groups(self) -> list[GroupPicture]:
        """The groups in the shortest span; how they are now does not depend on it."""
        return self.spans[min(self.spans)]


class Watcher(Protocol):
    """Takes each picture."""

    def reading(self, rows: int) -> None:
        """The rows that were there at the start are being read; so many are known by now."""

    def show(self, picture: Picture) -> None:
        """Take the next picture. What it raises ends the watch."""


@dataclass(frozen=True, slots=True)
class Watch:
    """``window_us``: the span that is shown; alerts have spans of their own. ``once``: read the rows that are
    there, and make one picture."""

    source: TraceSource
    checkpoint: Path
    window_us: int
    alerts: Sequence[Alert]
    every_seconds: float
    once: bool

    @property
    def spans_us(self) -> list[int]:
        return sorted({self.window_us, *(alert.span_us for alert in self.alerts)})


def watch(order: Watch, watcher: Watcher) -> None:
    """Watch until the process is stopped. The first picture has every row that was there at the start.

    Raises InputError for a line that is not a row and for a checkpoint of something else, OutputError if the
    checkpoint cannot be written.
    """
    with open_checkpoint(order.checkpoint, order.source.name) as checkpoint:
        rows = RowsSoFar(order, checkpoint)
        with order.source.feed(checkpoint, rows.take) as feed:
            # Figures without the rows that wait to be read would be those of an earlier time.
            while feed.catch_up(_PROGRESS_SECONDS):
                if rows.count:
                    watcher.reading(rows.count)
            rows.show_to(watcher)
            while not order.once:
                feed.follow(order.every_seconds)
                rows.show_to(watcher)


class RowsSoFar:
    """The rows so far, in memory and in the checkpoint."""

    def __init__(self, order: Watch, checkpoint: Checkpoint, now: Callable[[], float] = time.time) -> None:
        """``now``: seconds since 1970."""
        checkpoint.check_begins_with(order.source.first_line())
        self._order = order
        self._checkpoint = checkpoint
        self._lock = threading.Lock()
        self._rolling = Rolling(max(order.spans_us), checkpoint.carried())
        self._rolling.add(checkpoint.rows())
        self._active = checkpoint.active()
        self._came = checkpoint.came()
        self._end_us = 0
        self._now = now

    @property
    def count(self) -> int:
        """The number of the trace's rows that are known."""
        with self._lock:
            return self._rolling.last_seq + 1 - self._rolling.missing

    def take(self, progress: Progress, lines: Sequence[Line]) -> None:
        """Take lines, in any thread. Those that are kept already change nothing."""
        if self._checkpoint.is_done(progress):
            return
        found = [(row, line.came) for line in lines if (row := self._read(line)) is not None]
        with self._lock:
            rolling, before = self._rolling, self._rolling.last_seq
            rolling.add(row for row, _ in found)
            last, came = max(found, key=lambda one: one[0].seq, default=(None, None))
            if last is not None and last.seq > before:
                self._came = came
            kept = [row for row, _ in found if row.seq >= rolling.carried.next_seq]
            self._checkpoint.keep(progress, kept, self._came)

    def show_to(self, watcher: Watcher) -> None:
        """Show the present picture. An alert counts as shown when the watcher has taken it."""
        picture = self._picture()
        watcher.show(picture)
        with self._lock:
            if picture.active != self._active:
                self._active = picture.active
                self._checkpoint.keep_active(picture.active)

    def _picture(self) -> Picture:
        with self._lock:
            rolling = self._rolling
            quiet_seconds = 0.0
            if not self._order.once and self._came is not None:
                quiet_seconds = max(0.0, self._now() - self._came)
            # a file may have waited longer for its end than the one before it: time does not go back for that
            self._end_us = max(self._end_us, rolling.last_us + round(quiet_seconds * MICROSECONDS))
            end_us = self._end_us
            with self._checkpoint.folding():
                if rolling.carry():
                    self._checkpoint.carry(rolling.carried)
                spans = {span_us: rolling.pictures(span_us, end_us) for span_us in self._order.spans_us}
                sums = rolling.sums(max(rolling.last_us, end_us - SETTLED_US))
                changes, active = compare(self._order.alerts, spans, self._active)
            return Picture(
                rolling.carried.from_us,
                end_us,
                quiet_seconds,
                rolling.missing,
                rolling.too_late,
                spans,
                sums,
                changes,
                active,
            )

    def _read(self, line: Line) -> WatchedRow | None:
        try:
            return read_line(line.text)
        except InputError as problem:
            self._order.source.explain(line.place)
            raise InputError(f"{line.place}: {problem}") from problem

"""The lag of all partitions together, over time: its peak, and when it has recovered from a change.

The lag of one partition is the end of its log less the furthest position that was processed. Between
two rows of the trace that concern the partition it is piecewise linear: it grows by ``record_rate`` while
nobody gets further, shrinks by what an owner processes beyond that, and is zero once the owner has caught
up. All values are integers, in millionths of a record at whole microseconds; where two lines cross between
two microseconds, the curve bends at both of them, so that its values at whole microseconds are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from groupstorm.storms.figures.records import RecordModel
from groupstorm.storms.figures.totals import MICRO

#: A slope, and when it changes by how much.
Course = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(slots=True)
class _Frontier:
    """One partition: how far it was processed, and the lines on which owners process it now.

    ``furthest`` is the furthest position that a row of the trace told, or the end of the log when the
    partition was created. An owner that stood at position p at time t is on the line
    ``p * MICRO - process_rate * t``, its value at time 0; ``line`` is the highest of them.
    """

    furthest: int
    slope: int
    lines: list[int] = field(default_factory=list)
    line: int | None = None
    bends: tuple[tuple[int, int], ...] = ()


class LagCurve:
    """Follows the lag as rows come in, in the order of time; the past is forgotten.

    ``begin_peak`` says from when on the peak counts, ``mark`` names the change to recover from.
    """

    def __init__(self, model: RecordModel) -> None:
        self._model = model
        self._frontiers: dict[str, _Frontier] = {}
        self._now_us = 0
        self._value = 0
        self._slope = 0
        self._before = 0  # the value before the rows of this instant
        self._bends: dict[int, int] = {}  # time -> by how much the slope changes then
        self._bend_times: list[int] = []
        #: Courses from this instant on: partitions that change hands together mostly run alike.
        self._courses: dict[tuple[int, int], Course] = {}
        self._peak: int | None = None
        self._peak_counts = False
        self._marked_us: int | None = None
        self._marked_value = 0
        self._low_from_us = 0

    def create(self, partition: str, now_us: int) -> None:
        """The partition exists from now on."""
        self._move_to(now_us)
        rate = self._model.record_rate
        frontier = self._frontiers[partition] = _Frontier(rate * now_us, rate)
        self._slope += frontier.slope

    def start(self, partition: str, now_us: int, position: int) -> None:
        """An owner begins, or goes on, to process from ``position``."""
        frontier = self._frontiers[partition]
        before = self._straighten(frontier, now_us)
        line = position * MICRO - self._model.process_rate * now_us
        frontier.lines.append(line)
        frontier.line = line if frontier.line is None else max(line, frontier.line)
        self._bend(frontier, position * MICRO, before)

    def stop(self, partition: str, now_us: int, started: tuple[int, int], position: int) -> None:
        """The owner that began at ``started`` = (position, time) has stopped at ``position``."""
        frontier = self._frontiers[partition]
        before = self._straighten(frontier, now_us)
        frontier.lines.remove(started[0] * MICRO - self._model.process_rate * started[1])
        frontier.line = max(frontier.lines) if frontier.lines else None
        self._bend(frontier, position * MICRO, before)

    def begin_peak(self) -> None:
        """From this instant on the peak counts."""
        self._peak_counts = True

    def mark(self, now_us: int) -> None:
        """The lag has to come back to the value that it had just before this instant's rows."""
        self._move_to(now_us)
        self._marked_us = self._low_from_us = now_us
        self._marked_value = self._before

    def finish(self, end_us: int) -> tuple[int | None, int | None]:
        """The peak in millionths of a record, and the recovery in microseconds; None where unknown."""
        self._move_to(end_us)
        self._see(self._value)
        if self._marked_us is None or self._value > self._marked_value:
            return self._peak, None
        return self._peak, self._low_from_us - self._marked_us

    def _straighten(self, frontier: _Frontier, now_us: int) -> int:
        """Take the partition out of the curve from now on; returns its lag now."""
        if now_us != self._now_us:
            self._move_to(now_us)
        slope = frontier.slope
        for time_us, change in frontier.bends:
            if time_us > now_us:
                self._bends[time_us] -= change
            else:
                slope += change
        self._slope -= slope
        return lag(self._model, frontier.furthest, frontier.line, now_us)

    def _bend(self, frontier: _Frontier, reached: int, before: int) -> None:
        """Put the partition, whose lag was ``before``, back into the curve: it is known to be ``reached``."""
        furthest = frontier.furthest = max(frontier.furthest, reached)
        line, now_us = frontier.line, self._now_us
        self._value += lag(self._model, furthest, line, now_us) - before
        if line is None:
            frontier.slope, frontier.bends = self._model.record_rate, ()
        else:
            known = self._courses.get((furthest, line))
            if known is None:
                known = self._courses[furthest, line] = course(self._model, furthest, line, now_us)
            frontier.slope, frontier.bends = known
        self._slope += frontier.slope
        for time_us, change in frontier.bends:
            if time_us in self._bends:
                self._bends[time_us] += change
            else:
                self._bends[time_us] = change
                heappush(self._bend_times, time_us)

    def _move_to(self, now_us: int) -> None:
        while self._bend_times and self._bend_times[0] <= now_us:
            time_us = heappop(self._bend_times)
            self._run_to(time_us)
            self._slope += self._bends.pop(time_us)
        self._run_to(now_us)

    def _run_to(self, now_us: int) -> None:
        """Follow one straight line to its end."""
        if now_us == self._now_us:
            return
        self._see(self._value)
        end = self._value + self._slope * (now_us - self._now_us)
        self._see(end)
        if self._marked_us is not None:
            self._watch_recovery(end, now_us)
        self._now_us = now_us
        self._value = self._before = end
        self._courses.clear()

    def _see(self, value: int) -> None:
        if self._peak_counts and (self._peak is None or value > self._peak):
            self._peak = value

    def _watch_recovery(self, end: int, end_us: int) -> None:
        """The last line that lies above the marked value decides from when on the lag stays low."""
        if end > self._marked_value:
            self._low_from_us = end_us
        elif self._value > self._marked_value:
            too_much = self._value - self._marked_value
            self._low_from_us = self._now_us - too_much // self._slope  # the slope is negative: rounds up


def lag(model: RecordModel, furthest: int, line: int | None, at_us: int) -> int:
    """The lag of one partition, in millionths of a record: owners are at most on ``line``."""
    log_end = model.record_rate * at_us
    if line is None:
        return log_end - furthest
    return log_end - max(furthest, min(log_end, line + model.process_rate * at_us))


def course(model: RecordModel, furthest: int, line: int, from_us: int) -> Course:
    """How the lag of a partition goes on if nothing happens: its slope now, and (time, change of slope)."""
    knots = [from_us, *_knots(model, furthest, line, from_us)]
    knots.append(knots[-1] + 1)
    values = [lag(model, furthest, line, knot) for knot in knots]
    slopes = [
        (after - before) // (to_us - at_us)
        for (before, after), (at_us, to_us) in zip(pairwise(values), pairwise(knots), strict=True)
    ]
    bends = tuple(
        (knot, after - before)
        for knot, (before, after) in zip(knots[1:-1], pairwise(slopes), strict=True)
        if after != before
    )
    return slopes[0], bends


def _knots(model: RecordModel, furthest: int, line: int, from_us: int) -> list[int]:
    """Whole microseconds around which the log's end, the furthest position and the owner's line cross."""
    crossings: list[int] = []
    if model.record_rate != model.process_rate:
        crossings.append(line // (model.record_rate - model.process_rate))
    if model.process_rate:
        crossings.append((furthest - line) // model.process_rate)
    crossings.append(furthest // model.record_rate)
    return sorted({time for crossing in crossings for time in (crossing, crossing + 1) if time > from_us})

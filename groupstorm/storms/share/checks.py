"""Invariants of storms with a share group (KIP-932); one that breaks fails the run.

Read from the trace: a record is with one consumer at a time, its deliveries are counted one by one up to the
limit, and once it is done nobody gets it again. At the end the group has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from groupstorm.figures.table import Figures
from groupstorm.storms.checks.settling import FinalState
from groupstorm.storms.checks.verdicts import HELD, SETTLES
from groupstorm.trace.events import share as events
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source

ONE_HOLDER: Final = "a_record_is_with_one_consumer"
COUNTED: Final = "deliveries_are_counted_up_to_the_limit"
DONE_ONCE: Final = "a_record_is_done_once"
SHARE_INVARIANTS: Final = (ONE_HOLDER, COUNTED, DONE_ONCE, SETTLES)


class ShareChecks:
    """A sink of the trace that checks every row. ``limit``: deliveries of a record at most."""

    def __init__(self, limit: int) -> None:
        self.verdicts: dict[str, str] = dict.fromkeys(SHARE_INVARIANTS, HELD)
        self._limit = limit
        self._time_us = 0
        #: Record in flight -> the member that has it (None: nobody), and the number of its deliveries.
        self._in_flight: dict[tuple[str, int], tuple[str | None, int]] = {}
        #: Partition -> the offset behind the last record that was ever delivered.
        self._ends: dict[str, int] = {}
        self._checks: dict[type, Callable[[Any], None]] = {
            events.SharePartitionsLoaded: self._loaded,
            events.ShareRecordsAcquired: self._acquired,
            events.ShareRecordsAccepted: self._done,
            events.ShareRecordsArchived: self._done,
            events.ShareRecordsReturned: self._returned,
        }

    def violated(self, invariant: str, sentence: str) -> None:
        """Keep the first sentence."""
        if self.verdicts[invariant] == HELD:
            self.verdicts[invariant] = sentence

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        for time_us, _, event in entries:
            check = self._checks.get(type(event))
            if check is not None:
                self._time_us = time_us
                check(event)

    def close(self) -> None:
        """Nothing to complete."""

    def _loaded(self, event: events.SharePartitionsLoaded) -> None:
        for partition, position in zip(event.partitions, event.positions, strict=True):
            self._ends.setdefault(partition, position)

    def _acquired(self, event: events.ShareRecordsAcquired) -> None:
        ranges = zip(event.partitions, event.positions, event.counts, event.deliveries, strict=True)
        for partition, first, count, deliveries in ranges:
            for offset in range(first, first + count):
                is_new = offset >= self._ends[partition]
                holder, before = self._in_flight.get((partition, offset), (None, 0))
                if not is_new and (partition, offset) not in self._in_flight:
                    self._break(DONE_ONCE, f"{event.member} got {partition}@{offset}, which was done")
                if holder is not None:
                    self._break(ONE_HOLDER, f"{event.member} got {partition}@{offset}, which {holder} had")
                if deliveries != before + 1 or deliveries > self._limit:
                    self._break(COUNTED, f"{partition}@{offset}: delivery {deliveries} follows {before}")
                self._in_flight[partition, offset] = event.member, deliveries
            self._ends[partition] = max(self._ends[partition], first + count)

    def _done(self, event: events.ShareRecordsAccepted | events.ShareRecordsArchived) -> None:
        for partition, offset in _records(event.partitions, event.positions, event.counts):
            if self._in_flight.pop((partition, offset), None) is None:
                self._break(DONE_ONCE, f"{partition}@{offset} was done before {event.member} was")

    def _returned(self, event: events.ShareRecordsReturned) -> None:
        for partition, offset in _records(event.partitions, event.positions, event.counts):
            holder, deliveries = self._in_flight.get((partition, offset), (None, 0))
            if holder != event.member:
                self._break(ONE_HOLDER, f"{event.member} gave {partition}@{offset} back, which {holder} had")
            self._in_flight[partition, offset] = None, deliveries

    def _break(self, invariant: str, sentence: str) -> None:
        self.violated(invariant, f"after {self._time_us / 1_000_000:.3f} s {sentence}")

    def figures_made(self, now_us: int, figures: Figures) -> None:
        """A share group has no owners whose time and records could be counted again."""

    def finish(self, world: FinalState, now_us: int) -> None:
        """Check what must be true at the end of a run, behind its last row."""
        del now_us
        if not world.settled:
            self.violated(SETTLES, "the group had not settled when the scenario ended")


def _records(
    partitions: Sequence[str], positions: Sequence[int], counts: Sequence[int]
) -> Iterable[tuple[str, int]]:
    for partition, first, count in zip(partitions, positions, counts, strict=True):
        for offset in range(first, first + count):
            yield partition, offset

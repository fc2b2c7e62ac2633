"""Invariants of storms with a share group (KIP-932); one that breaks fails the run.

Read from the trace: a record is with one consumer at a time, its deliveries are counted one by one up to the
limit, and once it is done nobody gets it again. At the end the group has settled.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final, NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.share_records.acquisition import rest_of
from groupstorm.storms.checks.settling import FinalState
from groupstorm.storms.checks.verdicts import HELD, SETTLES
from groupstorm.trace.events import share as events
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source

ONE_HOLDER: Final = "a_record_is_with_one_consumer"
COUNTED: Final = "deliveries_are_counted_up_to_the_limit"
DONE_ONCE: Final = "a_record_is_done_once"
SHARE_INVARIANTS: Final = (ONE_HOLDER, COUNTED, DONE_ONCE, SETTLES)


class Flight(NamedTuple):
    """Records in flight, from offset ``first`` to ``last``: the member that has them (None: nobody), and the
    number of their deliveries."""

    first: int
    last: int
    holder: str | None
    deliveries: int


_FIRST: Final = itemgetter(0)


class ShareChecks:
    """A sink of the trace that checks every row. ``limit``: deliveries of a record at most."""

    def __init__(self, limit: int) -> None:
        self.verdicts: dict[str, str] = dict.fromkeys(SHARE_INVARIANTS, HELD)
        self._limit = limit
        self._time_us = 0
        #: Partition -> its records in flight, in the order of their offsets.
        self._in_flight: defaultdict[str, list[Flight]] = defaultdict(list)
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
        """Take back deliveries that the broker forgot with the group: those that nobody gave back."""
        for partition, position in zip(event.partitions, event.positions, strict=True):
            self._ends.setdefault(partition, position)
            self._in_flight[partition] = [
                one if one.holder is None else Flight(one.first, one.last, None, one.deliveries - 1)
                for one in self._in_flight[partition]
            ]

    def _acquired(self, event: events.ShareRecordsAcquired) -> None:
        ranges = zip(event.partitions, event.positions, event.counts, event.deliveries, strict=True)
        for partition, first, count, deliveries in ranges:
            last, member = first + count - 1, event.member
            before = self._take_out(partition, first, last)
            new = [Flight(*part, None, 0) for part in rest_of(first, last, [one[:2] for one in before])]
            end = self._ends[partition]
            if first > end:  # an answer with those before waits until acknowledgements are written
                self._put(partition, Flight(end, first - 1, None, 0))
            for one in new:
                if one.first < end:
                    self._break(DONE_ONCE, f"{member} got {partition}@{one.first}, which was done")
            for one in before:
                if one.holder is not None:
                    self._break(ONE_HOLDER, f"{member} got {partition}@{one.first}, which {one.holder} had")
            for one in sorted(before + new):
                if deliveries != one.deliveries + 1 or deliveries > self._limit:
                    self._break(
                        COUNTED, f"{partition}@{one.first}: delivery {deliveries} follows {one.deliveries}"
                    )
            self._put(partition, Flight(first, last, member, deliveries))
            self._ends[partition] = max(end, last + 1)

    def _done(self, event: events.ShareRecordsAccepted | events.ShareRecordsArchived) -> None:
        for partition, first, count in zip(event.partitions, event.positions, event.counts, strict=True):
            taken = [one[:2] for one in self._take_out(partition, first, first + count - 1)]
            for offset, _ in rest_of(first, first + count - 1, taken):
                self._break(DONE_ONCE, f"{partition}@{offset} was done before {event.member} was")

    def _returned(self, event: events.ShareRecordsReturned) -> None:
        for partition, first, count in zip(event.partitions, event.positions, event.counts, strict=True):
            last, member = first + count - 1, event.member
            found = self._take_out(partition, first, last)
            found += [Flight(*part, None, 0) for part in rest_of(first, last, [one[:2] for one in found])]
            for one in found:
                if one.holder != member:
                    self._break(
                        ONE_HOLDER, f"{member} gave {partition}@{one.first} back, which {one.holder} had"
                    )
                self._put(partition, one._replace(holder=None))

    def _take_out(self, partition: str, first: int, last: int) -> list[Flight]:
        """Take these records out of flight. Returns those that were in flight, in order."""
        flights = self._in_flight[partition]
        begin = bisect_right(flights, first, key=_FIRST)
        if begin and flights[begin - 1].last >= first:
            begin -= 1
        end, taken, rest = begin, [], []
        while end < len(flights) and flights[end].first <= last:
            one = flights[end]
            end += 1
            if one.first < first:
                rest.append(one._replace(last=first - 1))
            if one.last > last:
                rest.append(one._replace(first=last + 1))
            taken.append(one._replace(first=max(one.first, first), last=min(one.last, last)))
        flights[begin:end] = rest
        return taken

    def _put(self, partition: str, flight: Flight) -> None:
        """Add records that are not in flight."""
        flights = self._in_flight[partition]
        flights.insert(bisect_right(flights, flight.first, key=_FIRST), flight)

    def _break(self, invariant: str, sentence: str) -> None:
        self.violated(invariant, f"after {self._time_us / 1_000_000:.3f} s {sentence}")

    def figures_made(self, now_us: int, figures: Figures) -> None:
        """A share group has no owners whose time and records could be counted again."""

    def finish(self, world: FinalState, now_us: int) -> None:
        """Check what must be true at the end of a run, behind its last row."""
        del now_us
        if not world.settled:
            self.violated(SETTLES, "the group had not settled when the scenario ended")

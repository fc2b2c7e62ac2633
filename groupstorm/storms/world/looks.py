"""The records of one look at the logs, the duration of the work, and the time until which looks are alike.

The rules of the `PollLoop`, apart from its state: partitions, positions and the place in the line come from
the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RECORD, LogCurve, ends_at
from groupstorm.storms.scenario.randomness import Distribution
from groupstorm.storms.world.batches import Batch, Cycle
from groupstorm.storms.world.record_times import RecordTimes

#: A shorter poll_interval_ms means that the application is inside poll() whenever it has nothing to do.
_SHORT_US: Final = 10_000

#: Then what has arrived is handed out so often.
_OFTEN_US: Final = 50_000


class PollSettings(NamedTuple):
    """The client's polling. ``poll_records``: max.poll.records. ``fetch_records``: records that
    max.partition.fetch.bytes has room for. ``keep_us``: how far back positions are asked for.
    ``commits_at_work``: what is committed in the background is what is done by then, between polls too."""

    poll_records: int
    run_records: int
    fetch_records: int
    interval: Distribution
    keep_us: int
    commits_at_work: bool = False


class Sure(NamedTuple):
    """The looks that surely take everything each, the work on which ends before the next one.

    ``until_us``: how long that is so (0: it is not sure; -1: for ever). ``records`` and ``work_us``: the most
    that a look takes, and the longest work on it.
    """

    until_us: int
    records: int = 0
    work_us: int = 0


NOT_SURE: Final = Sure(0)


class Looks:
    """The looks of one process. Times in microseconds; positions are offsets of the next record."""

    def __init__(self, settings: PollSettings, times: RecordTimes) -> None:
        self._interval = settings.interval
        self._settings = settings
        self._times = times
        #: The longest that poll_interval_ms can be.
        self.longest_interval_us = _interval_us(settings.interval.largest_us)

    @property
    def are_constant(self) -> bool:
        """Whether each look that takes the same takes the same time."""
        return self._interval.is_constant and self._times.are_even

    @property
    def waits_in_poll(self) -> bool:
        """Whether the application is inside poll() whenever it has nothing to do."""
        return self._interval.largest_us < _SHORT_US

    def polls_within(self, limit_us: int, partitions: int) -> bool:
        """Whether two polls of a process that owns so many partitions are at most ``limit_us`` apart."""
        times, settings = self._times, self._settings
        if self.longest_interval_us > limit_us or times.slow is not None:
            return False
        records = min(settings.poll_records, partitions * settings.fetch_records)
        return times.largest_us(records) <= limit_us

    def fill(self, batch: Batch, positions: dict[TopicPartition, int]) -> tuple[int, int]:
        """Hand out what has arrived at the batch's look: sets its stretches and times, moves positions.

        Returns the fetch order behind it.
        """
        settings, order, curves = self._settings, batch.order, batch.curves
        room, at_us, fetch_limited = settings.run_records, batch.look_us, False
        turn, left = batch.turn, batch.left
        look_us, times, stretches = batch.look_us, self._times, batch.stretches
        #: Most logs grow alike, and most partitions give as many records as the one before.
        curve: LogCurve | None = None
        end = even_count = even_us = 0
        for _ in order:
            partition = order[turn]
            position = positions[partition]
            if left < 0:
                if curves[turn] is not curve:
                    curve = curves[turn]
                    end = curve.end(look_us)
                left = end - position
                if left > settings.fetch_records:
                    left, fetch_limited = settings.fetch_records, True
            elif left:
                fetch_limited = True
            count = left if left < room else room
            if count > 0:
                if times.are_even:
                    if count != even_count:
                        even_count, even_us = count, times.largest_us(count)
                    stretches.append((partition, position, count, at_us, at_us + even_us))
                    at_us += even_us
                else:
                    at_us = self._work_on(batch, partition, position, count, at_us)
                positions[partition] = position + count
                room -= count
                left -= count
            if left > 0:
                break
            turn = (turn + 1) % len(order)
            left = -1
            if room <= 0:
                break
        if room <= 0 or fetch_limited:
            rest = zip(order, curves, strict=True)
            batch.took_all = not any(one.end(look_us) > positions[partition] for partition, one in rest)
        batch.end_us = at_us
        waits = batch.took_all and room > 0
        batch.next_us = max(at_us, look_us + self.interval_us(batch.number)) if waits else at_us
        return turn, left

    def _work_on(self, batch: Batch, partition: TopicPartition, first: int, count: int, at_us: int) -> int:
        """Add records, some of which may be slow, to the batch; returns when they are finished."""
        times, stretches = self._times, batch.stretches
        done_us = at_us + times.records_us(count, batch.number, len(stretches))
        begun, begun_us, late_us = first, at_us, 0
        slow = () if times.slow is None else times.slow.extra_us(partition, first, first + count)
        for offset, extra_us in slow:
            # the records before it, then the slow one by itself
            before_us = at_us + late_us + (done_us - at_us) * (offset - first) // count
            after_us = at_us + late_us + (done_us - at_us) * (offset + 1 - first) // count + extra_us
            if offset > begun:
                stretches.append((partition, begun, offset - begun, begun_us, before_us))
            stretches.append((partition, offset, 1, before_us, after_us))
            begun, begun_us, late_us = offset + 1, after_us, late_us + extra_us
        if begun < first + count:
            stretches.append((partition, begun, first + count - begun, begun_us, done_us + late_us))
        return done_us + late_us

    def interval_us(self, number: int) -> int:
        """From look ``number``, if it takes everything, to the next one."""
        if self._interval.is_constant:
            return self.longest_interval_us
        return _interval_us(self._times.interval_us(self._interval, number))

    def last_look(
        self, batch: Batch, at_us: int, positions: dict[TopicPartition, int] | None = None
    ) -> Batch:
        """The batch of the last look at ``at_us`` or before; sets ``positions`` to those behind it.

        A look of a series belongs to the series, which may return it again: it must not be changed.
        """
        if batch.before is None:
            return batch
        number, cycle = batch.number_at(at_us), batch.cycle
        single = batch.single
        if single is None or single.number != batch.number + number:
            if cycle is None:
                single = self._single(batch, batch.before.copy(), number)
            else:
                single, batch.behind = cycle.look(number, batch.number)
                batch.single = single
        if positions is not None:
            for partition, position in batch.behind.items():
                if partition in positions:
                    positions[partition] = position
        return single

    def _single(self, series: Batch, positions: dict[TopicPartition, int], number: int) -> Batch:
        """Look ``number`` of a series, which keeps it. ``positions``: those before the series."""
        look_us = series.look_us + number * series.interval_us
        left = -1 if number else series.left
        order, curves = series.order, series.curves
        single = Batch(look_us, series.number + number, series.turn, left, series.poll_records, order, curves)
        if number:
            positions.update(zip(order, ends_at(curves, look_us - series.interval_us), strict=True))
        _ = self.fill(single, positions)
        series.single, series.behind = single, positions
        return single

    def sure(self, order: list[TopicPartition], curves: list[LogCurve], look_us: int, taken_us: int) -> Sure:
        """The rates stay the same until then. What had arrived at ``taken_us`` was taken then."""
        interval, settings, times = self._interval, self._settings, self._times
        if not interval.is_constant:
            return NOT_SURE
        interval_us = self.longest_interval_us
        records = work_us = most = most_us = 0
        until_us = -1
        #: Most logs grow alike, and then the work on them takes the same time.
        known: LogCurve | None = None
        change_us: int | None = None
        for at, curve in enumerate(curves):
            if curve is not known:
                most = curve.rate(look_us) * interval_us // RECORD + 1
                if most > settings.fetch_records:
                    return NOT_SURE
            if curve is not known:
                most_us = times.largest_us(most)
            records += most
            work_us += most_us
            if curve is not known or times.slow is not None:
                known, change_us = curve, curve.next_change_us(look_us)
            if times.slow is not None:
                change_us = self._before_slow(order[at], curve, taken_us, change_us)
            if change_us is not None and (until_us < 0 or change_us < until_us):
                until_us = change_us
        if records >= settings.run_records or work_us > interval_us or 0 <= until_us <= look_us:
            return NOT_SURE
        return Sure(until_us, records, work_us)

    def _before_slow(
        self, partition: TopicPartition, curve: LogCurve, taken_us: int, change_us: int | None
    ) -> int | None:
        """`change_us`, or when the next slow record arrives if that is earlier; it may have arrived."""
        slow = self._times.slow
        offset = None if slow is None else slow.next_offset(partition, curve.end(taken_us))
        arrived_us = None if offset is None else curve.arrived_us(offset)
        if arrived_us is None:
            return change_us
        return arrived_us if change_us is None else min(arrived_us, change_us)


def put_behind(positions: dict[TopicPartition, int], series: Batch, look_us: int) -> None:
    """Set the positions, of those partitions that there are, to those behind a look of a series that takes
    everything."""
    for partition, end in zip(series.order, ends_at(series.curves, look_us), strict=True):
        if partition in positions:
            positions[partition] = end


def _interval_us(poll_interval_us: int) -> int:
    """The time between two looks that take everything."""
    return _OFTEN_US if poll_interval_us < _SHORT_US else poll_interval_us


#: The search ends behind so many looks that have not come again: it takes memory, and a tenth of their time.
_LOOKS_AT_MOST: Final = 1_000


class CycleSearch:
    """Looks of an application that has all that it can do: from some look on they repeat.

    What a look takes depends on how far each partition lags behind its log, on whose turn it is, and on what
    is left of its fetch. If all of that is as it was some looks before, and neither rates nor times change,
    all that came since then comes again and again. A partition that lags behind by more than a fetch gives a
    whole fetch: how far it lags makes no difference as long as that holds.

    Remembers the looks since the last change. ``fetch_records``: the most that one fetch gives.
    """

    def __init__(self, fetch_records: int) -> None:
        #: A partition that lags behind by so much, in records times RECORD, gives a whole fetch.
        self._enough = (fetch_records + 1) * RECORD
        self._seen: dict[tuple[int, ...], int] = {}
        self._batches: list[Batch] = []
        self._lags: list[list[int]] = []

    def restart(self) -> None:
        """Something has changed: what was seen says nothing any more."""
        if self._batches or self._seen:
            self._seen.clear()
            self._batches, self._lags = [], []

    def closed_by(self, look: Batch, positions: Mapping[TopicPartition, int]) -> tuple[Cycle, int] | None:
        """The cycle that is closed as ``look`` comes, which has taken nothing yet, and how many of its looks
        come until it ends (0: it does not)."""
        batches = self._batches
        if len(batches) >= _LOOKS_AT_MOST:
            return None
        look_us = look.look_us
        grown = {curve: curve.grown(look_us) for curve in set(look.curves)}  # most logs grow alike
        lags = [
            grown[curve] - positions[partition] * RECORD
            for partition, curve in zip(look.order, look.curves, strict=True)
        ]
        enough = self._enough
        state = (look.turn, look.left, *[lag if lag < enough else enough for lag in lags])
        first = self._seen.get(state)
        if first is not None:
            cycle = self._cycle(first, look_us, lags)
            if cycle is not None:
                return cycle
        self._seen[state] = len(batches)
        self._lags.append(lags)
        return None

    def add(self, batch: Batch, positions: Mapping[TopicPartition, int]) -> None:
        """A look that `closed_by` was asked about, and the positions behind it."""
        if len(self._batches) < _LOOKS_AT_MOST:
            batch.behind = {partition: positions[partition] for partition in batch.order}
            self._batches.append(batch)

    def _cycle(self, first: int, look_us: int, lags: list[int]) -> tuple[Cycle, int] | None:
        """None if its looks are not alike, or if a partition soon gives less than a whole fetch."""
        looks = self._batches[first:]
        span_us = look_us - looks[0].look_us
        if span_us <= 0 or len({(look.took_all, look.is_long) for look in looks}) > 1:
            return None
        rounds = self._rounds(first, lags)
        if rounds is None:
            return None
        moved = dict.fromkeys(looks[0].behind, 0)
        for look in looks:
            for partition, _, count, _, _ in look.stretches:
                moved[partition] += count
        return Cycle(looks, span_us, moved), rounds * len(looks)

    def _rounds(self, first: int, lags: list[int]) -> int | None:
        """Return how often the looks from ``first`` on come again (0: for ever; None: not once).

        If a partition lags behind by more or less than then, there is more than a fetch at each look.
        """
        rounds = 0
        for at, (lag, before) in enumerate(zip(lags, self._lags[first], strict=True)):
            grown, enough = lag - before, self._enough
            if not grown:
                continue
            if lag + grown < enough:
                return None
            spare = min([seen[at] for seen in self._lags[first:]]) - enough
            if spare + grown < 0 or spare < 0:
                return None
            if grown < 0:
                left = spare // -grown
                rounds = min(rounds, left) if rounds else left
        return rounds

"""The application's loop of poll() and work: what it has in hand, how far it has come, when it polls again.

At a look the loop takes up to ``run_records`` of what has arrived, in the client's fetch order: it drains one
partition's fetch after the other, and a drained partition goes to the end of the line. The application gets
them in polls of max.poll.records and works on them. If a look took everything, the next one comes
poll_interval_ms after it or at the end of the work, whichever is later; else at the end of the work.

No clock and no I/O: the loop is computed when somebody asks, and only as far as that. While every look surely
takes everything and the work surely ends before the next one, looks are not computed one by one, and neither
are they as soon as they repeat (`CycleSearch`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RECORD, LogCurve, RecordLogs, ends_at, rates_at
from groupstorm.storms.world.batches import Batch
from groupstorm.storms.world.looks import NOT_SURE, CycleSearch, Looks, PollSettings, Sure, put_behind
from groupstorm.storms.world.record_times import RecordTimes

# What `_next_us` is if it is no time.
_NOT_BEGUN: Final = -1
_GOES_ON: Final = -2


class PollLoop:
    """The loop of one process. Times in microseconds; positions are offsets of the next record.

    ``steps``: compute every look, none by arithmetic (the oracle).
    """

    def __init__(
        self, logs: RecordLogs, settings: PollSettings, times: RecordTimes, steps: bool = False
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._times = times
        self._looks = Looks(settings, times)
        #: The longest that poll_interval_ms can be.
        self.longest_interval_us = self._looks.longest_interval_us
        #: Records that the process works on in 1,000 seconds, in the mean, if it does nothing else.
        self.capacity = RECORD * 1_000 // max(1, times.mean_us(1_000))
        self._steps = steps
        searches = not steps and self._looks.are_constant
        self._cycles = CycleSearch(settings.fetch_records) if searches else None
        #: Where the next look begins, partition by partition in order: behind everything that was handed out.
        self._positions: dict[TopicPartition, int] = {}
        self._owned_since: dict[TopicPartition, int] = {}
        self._held: set[TopicPartition] = set()
        #: The partitions that looks go through, and their logs; where in the line the next look begins, and
        #: what is left of that partition's fetch (-1: none has come yet).
        self._order: list[TopicPartition] = []
        self._curves: list[LogCurve] = []
        #: When a rate changes last, and what `_sure_until_us` says from then on; None: not asked yet.
        self._last_change_us = 0
        self._always_sure: Sure | None = None
        self._turn = 0
        self._left = -1
        self._number = 0
        #: The batches of the recent past and of the computed future.
        self._batches: list[Batch] = []
        #: When the loop looks next, if that is not computed yet.
        self._next_us = _NOT_BEGUN
        #: The process stands still until then.
        self._awake_us = 0
        #: When partitions came: looks before that say nothing about them.
        self._grown_us = 0

    # -- what the process owns -------------------------------------------------------------------

    def begin(self, now_us: int) -> None:
        """The application polls now, and goes on polling: does nothing if it has partitions to process."""
        if not self._order:
            self._change(now_us)
            self._look_soon(now_us)

    def own(self, partitions: Sequence[TopicPartition], positions: Sequence[int], now_us: int) -> None:
        """Process these from now on, beside those that the process has already."""
        self._change(now_us)
        self._grown_us = now_us
        idle = not self._order
        for partition, position in zip(partitions, positions, strict=True):
            self._positions[partition] = position
            self._owned_since[partition] = now_us
        self._positions = {partition: self._positions[partition] for partition in sorted(self._positions)}
        if idle and partitions:
            self._look_soon(now_us)
        self._line_up()

    def release(self, partitions: Iterable[TopicPartition], now_us: int) -> Collection[TopicPartition]:
        """Forget these. What was handed out of them and is not finished is dropped. Returns those that the
        process owned."""
        released = self._positions.keys() & partitions
        if released <= self._held:
            self._compute(now_us)  # no look takes of these
        else:
            self._change(now_us)
        for partition in released:
            del self._positions[partition], self._owned_since[partition]
        self._held -= released
        batches = self._batches
        if batches and batches[-1].is_closed:  # its last look forgets them, too
            series = batches[-1]
            batches.append(self._looks.last_look(series, now_us))
            series.is_closed, series.single, series.looks = False, None, series.looks - 1
        for batch in batches:
            batch.stretches = [each for each in batch.stretches if each[0] not in released]
        self._line_up()
        return released

    def hold(self, partitions: Collection[TopicPartition], now_us: int) -> tuple[int, ...]:
        """Keep these and process them no more. What was handed out of them and is not finished is dropped.

        Returns its positions on them, 0 where it does not own one.
        """
        taken = (self._positions.keys() & partitions) - self._held
        if taken:
            self._change(now_us)
            self._held |= taken
            if self._batches:
                self._positions |= self._batches[-1].cut(taken, now_us)
            self._line_up()
        positions = self._positions
        return tuple([positions.get(one, 0) for one in partitions])

    def go_on(self, partitions: Iterable[TopicPartition], now_us: int) -> None:
        """Process these again, which were held."""
        self._change(now_us)
        self._grown_us = now_us
        if not self._order:
            self._look_soon(now_us)
        self._held.difference_update(partitions)
        self._line_up()

    def stall(self, now_us: int, for_us: int, polls: bool) -> None:
        """The application stands still; ``polls``: it gets a batch for that time if it has none in hand."""
        self._change(now_us)
        self._awake_us = now_us + for_us
        last = self._batches[-1] if self._batches else None
        if last is not None and last.end_us > now_us:
            last.stall(now_us, for_us)
            self._next_us += for_us
        elif polls:
            long = self._batch(now_us)
            long.end_us = self._next_us = self._awake_us
            self._number += 1
            self._batches.append(long)
        elif self._next_us >= 0:
            self._next_us = max(self._next_us, self._awake_us)

    def _look_soon(self, now_us: int) -> None:
        """Look as soon as the application can poll."""
        self._next_us = max(now_us, self._awake_us, self._batches[-1].end_us if self._batches else 0)

    def _line_up(self) -> None:
        """The line of partitions has changed: the next look begins with the partition whose turn it was."""
        first = self._order[self._turn] if self._order else None
        held = self._held
        order = [one for one in self._positions if one not in held] if held else list(self._positions)
        if order == self._order:
            return
        self._turn = 0
        if first is not None:
            while self._turn < len(order) and order[self._turn] < first:
                self._turn += 1
            if self._turn == len(order):
                self._turn = 0
        if not order or order[self._turn] != first:
            self._left = -1
        self._order = order
        self._curves = self._logs.curves(order)
        self._last_change_us = max([curve.last_us for curve in self._curves], default=0)
        self._always_sure = None

    # -- what it has in hand ---------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All that the process owns, in order."""
        return tuple(self._positions)

    @property
    def processed_partitions(self) -> Sequence[TopicPartition]:
        """The partitions that the process owns and processes."""
        return self._order

    def __contains__(self, partition: object) -> bool:
        return partition in self._positions

    def held(self, partition: TopicPartition) -> bool:
        """Whether the process owns it and does not process it."""
        return partition in self._held

    def positions(self, at_us: int) -> dict[TopicPartition, int]:
        """Return the application's positions at ``at_us``, on all partitions that it owned then."""
        return self._at(at_us, Batch.done)

    def polled_positions(self, at_us: int) -> dict[TopicPartition, int]:
        """Its positions when it polled last, or as far as it is: what a client commits in the background."""
        at_work = self._settings.commits_at_work
        return self.positions(at_us) if at_work else self._at(at_us, Batch.polled, polled=True)

    def finished_positions(self, at_us: int) -> dict[TopicPartition, int]:
        """Its positions when it finished a batch last: what an application commits by hand."""
        return self._at(at_us, Batch.finished)

    def _at(
        self, at_us: int, records: Callable[[Batch, int], int], polled: bool = False
    ) -> dict[TopicPartition, int]:
        if 0 <= self._next_us < at_us:
            self._compute(at_us)
        positions = self._positions.copy()
        for batch in reversed(self._batches):
            if batch.look_us < at_us:
                inner = batch
                if batch.before is not None:
                    look_us = batch.light_look_us(at_us - 1)
                    if look_us and (polled or at_us - look_us >= batch.work_us):
                        put_behind(positions, batch, look_us - batch.interval_us if polled else look_us)
                        break
                    inner = self._looks.last_look(batch, at_us - 1, positions)
                inner.take_back(positions, records(inner, at_us))
                break
            if batch.before is None:
                batch.take_back(positions, 0)
            else:
                for partition, position in batch.before.items():
                    if partition in positions:
                        positions[partition] = position
        if self._grown_us > at_us:
            positions = {tp: offset for tp, offset in positions.items() if self._owned_since[tp] <= at_us}
        return positions

    def last_poll_us(self, now_us: int) -> int | None:
        """When the application polled last, now included; None if it has not begun."""
        self._compute(now_us + 1)
        for batch in reversed(self._batches):
            if batch.look_us <= now_us:
                if look_us := batch.light_look_us(now_us):
                    return look_us
                inner = self._looks.last_look(batch, now_us)
                records = inner.polled(now_us)
                return inner.finished_us(records) if records else inner.look_us
        return None

    def looks(self, now_us: int) -> int:
        """Count the application's looks at the logs, now included."""
        self._compute(now_us + 1)
        for batch in reversed(self._batches):
            if batch.look_us <= now_us:
                return batch.number + 1 + (0 if batch.before is None else batch.number_at(now_us))
        return 0

    @property
    def poll_records(self) -> int:
        """Records that one poll() returns at most."""
        return self._settings.poll_records

    def next_poll_us(self, now_us: int) -> int:
        """When the application polls next, now included. If it need not wait between polls, it is inside
        poll() while it has nothing to do."""
        return self._poll_from(now_us, inside=True)

    def poll_after_us(self, now_us: int) -> int:
        """When poll() is called next, after now."""
        return self._poll_from(now_us + 1, inside=False)

    def _poll_from(self, now_us: int, inside: bool) -> int:
        self._compute(now_us)
        look_us = self._next_us
        for batch in reversed(self._batches):
            if batch.look_us >= now_us:
                look_us = batch.look_us
                continue
            is_last = batch.before is None or batch.number_at(now_us - 1) + 1 == batch.looks
            if not (inside and self._looks.waits_in_poll) and (light_us := batch.light_look_us(now_us - 1)):
                if is_last:
                    break
                return light_us + batch.interval_us
            inner = self._looks.last_look(batch, now_us - 1)
            following = (inner.done(now_us - 1) // inner.poll_records + 1) * inner.poll_records
            if following < inner.records:
                return inner.finished_us(following)
            if inside and self._looks.waits_in_poll and inner.took_all:
                return max(now_us, inner.end_us, self._awake_us)
            if not is_last:
                return inner.next_us
            break
        return max(look_us, now_us)

    def keeps_up(self, now_us: int) -> bool:
        """Whether the last look took everything that had arrived, and the work on that is not long."""
        self._compute(now_us + 1)
        for batch in reversed(self._batches):
            if batch.look_us <= now_us:
                if not batch.took_all or batch.is_long:
                    return False
                if look_us := batch.light_look_us(now_us):
                    return look_us >= self._grown_us
                inner = self._looks.last_look(batch, now_us)
                return inner.look_us >= self._grown_us and not inner.is_long
        return not self._order

    def caught_up_us(self, now_us: int, until_us: int) -> int | None:
        """The first look from now on that takes everything; None if there is none before ``until_us``."""
        if self.keeps_up(now_us):
            return now_us
        self._compute(until_us)
        for batch in self._batches:
            if now_us <= batch.look_us < until_us and batch.took_all and not batch.is_long:
                return batch.look_us
        return None

    def log_ends(self, now_us: int) -> list[int]:
        """The ends of the logs of the partitions that the loop goes through."""
        return ends_at(self._curves, now_us)

    def rates(self, now_us: int) -> dict[TopicPartition, int]:
        """Records that arrive in 1,000 seconds, of each partition that the loop goes through."""
        return dict(zip(self._order, rates_at(self._curves, now_us), strict=True))

    # -- time passes -----------------------------------------------------------------------------

    def _compute(self, until_us: int) -> None:
        """Compute all looks before ``until_us``."""
        while 0 <= self._next_us < until_us:
            self._look()

    def forget(self, now_us: int) -> None:
        """Forget the batches that are too old to be asked for."""
        batches, old_us = self._batches, now_us - self._settings.keep_us
        while len(batches) > 1 and batches[1].look_us <= old_us:
            del batches[0]

    def _change(self, now_us: int) -> None:
        """Something happens now: looks from now on are computed anew. The one in hand becomes single."""
        self._compute(now_us)
        if self._cycles is not None:
            self._cycles.restart()
        batches = self._batches
        while batches and batches[-1].look_us >= now_us:
            batch = batches.pop()
            if batch.before is None:
                batch.take_back(self._positions, 0)
            else:
                self._positions.update(batch.before)
            self._turn, self._left, self._number = batch.turn, batch.left, batch.number
            self._next_us = batch.look_us
        if batches and batches[-1].before is not None and not batches[-1].is_closed:
            series = batches[-1]
            look_us = series.light_look_us(now_us - 1)
            if look_us and look_us + series.work_us <= now_us:
                self._close(series, look_us)
                self.forget(now_us)
                return
            in_hand = self._looks.last_look(series, now_us - 1, self._positions)
            series.single = None  # it stands for itself from now on, and may be changed
            before = in_hand.number - series.number
            if before:
                series.looks = before
                series.next_us = in_hand.look_us
                batches.append(in_hand)
            else:
                batches[-1] = in_hand
            if series.cycle is not None:
                self._turn, self._left = series.cycle.order_behind(before)
            self._number = in_hand.number + 1
            self._next_us = in_hand.next_us
        self.forget(now_us)

    def _close(self, series: Batch, look_us: int) -> None:
        """The look at ``look_us`` is the last one of a series; the work on it is done."""
        series.is_closed = True
        series.end_us = look_us + series.work_us
        series.looks = (look_us - series.look_us) // series.interval_us + 1
        self._number = series.number + series.looks
        self._next_us = series.next_us = look_us + series.interval_us
        self._positions.update(zip(series.order, ends_at(series.curves, look_us), strict=True))

    def _look(self) -> None:
        """The application looks at `_next_us` and takes a batch."""
        look_us, positions, cycles = self._next_us, self._positions, self._cycles
        batch = self._batch(look_us)
        sure = NOT_SURE if self._steps else self._sure(look_us, look_us)
        if look_us < self._last_change_us or sure.until_us:
            cycles = None
        if cycles is not None and self._go_round(cycles, batch):
            return
        if not self._order and sure.until_us:
            self._go_on_alike(batch, {}, sure)
            return
        before = {partition: positions[partition] for partition in self._order}
        self._turn, self._left = self._looks.fill(batch, positions)
        if sure.until_us and batch.took_all and batch.next_us == look_us + self.longest_interval_us:
            series = self._batch(look_us)
            series.turn, series.left = batch.turn, batch.left
            series.single = batch
            self._go_on_alike(series, before, sure)
            return
        self._number += 1
        self._next_us = batch.next_us
        if cycles is not None:
            cycles.add(batch, positions)
        self._batches.append(batch)

    def _go_on_alike(self, series: Batch, before: dict[TopicPartition, int], sure: Sure) -> None:
        """Let a batch stand for all looks from the present one on that surely take everything, too."""
        look_us, interval_us, positions = series.look_us, self.longest_interval_us, self._positions
        series.before = before
        series.behind = {partition: positions[partition] for partition in series.order}
        series.takes_lightly(sure.records, sure.work_us)
        series.end_us = look_us if series.single is None else series.single.end_us
        series.next_us = look_us + interval_us
        series.interval_us = interval_us
        series.looks = 0 if sure.until_us < 0 else -(-(sure.until_us - look_us) // interval_us)
        if series.looks:
            last_us = look_us + (series.looks - 1) * interval_us
            positions.update(zip(series.order, ends_at(series.curves, last_us), strict=True))
            self._number += series.looks
            self._next_us = series.next_us = last_us + interval_us
        else:
            self._next_us = _GOES_ON
        self._batches.append(series)

    def _go_round(self, cycles: CycleSearch, series: Batch) -> bool:
        """Let the batch stand for a series of looks if those since an earlier one come again."""
        found = cycles.closed_by(series, self._positions)
        if found is None:
            return False
        cycles.restart()
        cycle, series.looks = found
        series.cycle, looks = cycle, series.looks
        series.before = {partition: self._positions[partition] for partition in series.order}
        series.took_all = cycle.first.took_all
        self._next_us = _GOES_ON
        if looks:
            self._next_us = series.next_us = series.look_us + looks // len(cycle) * cycle.span_us
            self._positions |= cycle.behind(looks - 1)
            self._number += looks
        self._batches.append(series)
        return True

    def _batch(self, look_us: int) -> Batch:
        turn, left, records = self._turn, self._left, self._settings.poll_records
        return Batch(look_us, self._number, turn, left, records, self._order, self._curves)

    def sure_until_us(self, now_us: int) -> int:
        """Return until when every look surely takes everything, as `Sure` has it."""
        if now_us >= self._last_change_us and self._times.slow is None:
            return self._sure(now_us, now_us).until_us
        taken_us = now_us
        for batch in reversed(self._batches):
            if batch.look_us <= now_us:
                taken_us = batch.light_look_us(now_us) or self._looks.last_look(batch, now_us).look_us
                break
        return self._sure(now_us, taken_us).until_us

    def _sure(self, look_us: int, taken_us: int) -> Sure:
        """It depends on the time only as long as a rate or a slow record is to come."""
        if look_us < self._last_change_us or self._times.slow is not None:
            return self._looks.sure(self._order, self._curves, look_us, taken_us)
        if self._always_sure is None:
            self._always_sure = self._looks.sure(self._order, self._curves, look_us, taken_us)
        return self._always_sure

    def always_polls_within(self, limit_us: int) -> bool:
        """Whether two polls are surely at most ``limit_us`` apart, whatever the process owns: it has never
        stood still."""
        return not self._awake_us and self._looks.polls_within(limit_us, self._settings.poll_records)

    def regular_until_us(self, now_us: int, limit_us: int) -> int | None:
        """Return the time until which two polls surely are at most ``limit_us`` apart; None: for ever.

        It returns ``now_us`` if that is not sure: ask again after the next poll.
        """
        if self._looks.polls_within(limit_us, len(self._order)):
            return None
        if self.longest_interval_us > limit_us or not self.keeps_up(now_us):
            return now_us
        until_us = self.sure_until_us(now_us)
        return None if until_us < 0 else max(until_us, now_us)

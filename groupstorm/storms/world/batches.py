"""The batch that one look of a poll loop hands out: records, and the time when the work on them is done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import LogCurve

#: Partition, its first offset, how many records; from when until when the application works on them.
Stretch = tuple[TopicPartition, int, int, int, int]

#: Who works longer than this on what one look took does not keep up meanwhile.
_LONG_US: Final = 1_000_000


class Batch:
    """The records of one look, handed out in polls of ``poll_records``; the next look comes at ``next_us``.

    A batch may stand for a series of looks: then ``before`` has the positions before the first one, and
    ``looks`` says how many there are (0: no end). They are ``interval_us`` apart, and each takes all that has
    arrived, or they are those of ``cycle``, again and again. ``single`` is the look of the series that was
    asked for last, ``behind`` the positions behind it.
    If ``is_light``, each look behind the first one takes less than a poll returns, and works on it for
    ``work_us`` at most; without partitions the first one does, too. A series that ``is_closed`` has come to
    its end, and so has the work on it.
    ``order`` and ``curves`` are the partitions that it goes through, and their logs.
    """

    __slots__ = (
        "before",
        "behind",
        "curves",
        "cycle",
        "end_us",
        "interval_us",
        "is_closed",
        "is_light",
        "left",
        "look_us",
        "looks",
        "next_us",
        "number",
        "order",
        "poll_records",
        "single",
        "stretches",
        "took_all",
        "turn",
        "work_us",
    )

    def __init__(
        self,
        look_us: int,
        number: int,
        turn: int,
        left: int,
        poll_records: int,
        order: list[TopicPartition],
        curves: list[LogCurve],
    ) -> None:
        self.look_us = look_us
        self.number = number
        #: The fetch order before this look.
        self.turn = turn
        self.left = left
        self.poll_records = poll_records
        self.order = order
        self.curves = curves
        self.stretches: list[Stretch] = []
        self.end_us = look_us
        self.next_us = look_us
        self.took_all = True
        self.before: dict[TopicPartition, int] | None = None
        self.cycle: Cycle | None = None
        self.interval_us = 0
        self.looks = 1
        self.single: Batch | None = None
        self.behind: dict[TopicPartition, int] = {}
        self.is_light = self.is_closed = False
        self.work_us = 0

    def takes_lightly(self, records: int, work_us: int) -> None:
        """The batch stands for a series of looks that take everything, so many records at most."""
        self.is_light = records < self.poll_records and work_us <= _LONG_US
        self.work_us = work_us

    def number_at(self, at_us: int) -> int:
        """The number of the last look of a series at ``at_us`` or before."""
        elapsed_us, cycle = at_us - self.look_us, self.cycle
        number = elapsed_us // self.interval_us if cycle is None else cycle.number_at(elapsed_us)
        return min(number, self.looks - 1) if self.looks else number

    def light_look_us(self, at_us: int) -> int:
        """When the last look at ``at_us`` or before is, if it is light (0: ask for the look itself)."""
        if not self.is_light:
            return 0
        look_us, interval_us, looks = self.look_us, self.interval_us, self.looks
        number = (at_us - look_us) // interval_us  # as `number_at` does it: a light series has no cycle
        if looks and number >= looks:
            number = looks - 1
        return look_us + number * interval_us if number or not self.order else 0

    def done(self, at_us: int) -> int:
        """Records that the application has finished by ``at_us``."""
        done = 0
        for _, _, count, start_us, end_us in self.stretches:
            if end_us <= at_us:
                done += count
            elif start_us < at_us:
                done += count * (at_us - start_us) // (end_us - start_us)
        return done

    def polled(self, at_us: int) -> int:
        """Records that it had finished when it polled last, if that was within this batch."""
        return self.done(at_us) // self.poll_records * self.poll_records

    def finished(self, at_us: int) -> int:
        """Records of the polls that it had finished, the last one included as soon as that is done."""
        done = self.done(at_us)
        return done if done == self.records else done // self.poll_records * self.poll_records

    @property
    def is_long(self) -> bool:
        """Whether the work on what each look took is long. No look of a series without cycle has much."""
        look = self if self.cycle is None else self.cycle.first
        return look.before is None and look.end_us - look.look_us > _LONG_US

    @property
    def records(self) -> int:
        return sum([count for _, _, count, _, _ in self.stretches])

    def take_back(self, positions: dict[TopicPartition, int], done: int) -> None:
        """Move positions behind this batch back to those after its first ``done`` records."""
        for partition, first, count, _, _ in self.stretches:
            if partition in positions and done < count:
                reached = first + done if done > 0 else first
                if reached < positions[partition]:  # noqa: PLR1730  (storms come here for every batch)
                    positions[partition] = reached
            done -= count

    def finished_us(self, records: int) -> int:
        """When the application has finished so many records of this batch (at least one)."""
        for _, _, count, start_us, end_us in self.stretches:
            if records <= count:
                # the first microsecond at which `done` counts them
                return start_us - (-(end_us - start_us) * records // count)
            records -= count
        return self.end_us

    def cut(self, partitions: Collection[TopicPartition], at_us: int) -> dict[TopicPartition, int]:
        """Take the records of these partitions back that are not finished. Returns the first of each."""
        kept: list[Stretch] = []
        cut_at: dict[TopicPartition, int] = {}
        for stretch in self.stretches:
            of, first, count, start_us, end_us = stretch
            if end_us <= at_us or of not in partitions:
                kept.append(stretch)
                continue
            done = 0 if start_us >= at_us else count * (at_us - start_us) // (end_us - start_us)
            if done:
                kept.append((of, first, done, start_us, at_us))
            cut_at.setdefault(of, first + done)
        self.stretches = kept
        return cut_at

    def stall(self, at_us: int, for_us: int) -> None:
        """The application stands still at ``at_us`` and goes on later."""
        moved: list[Stretch] = []
        for stretch in self.stretches:
            partition, first, count, start_us, end_us = stretch
            if end_us <= at_us:
                moved.append(stretch)
            elif start_us >= at_us:
                moved.append((partition, first, count, start_us + for_us, end_us + for_us))
            else:
                done = count * (at_us - start_us) // (end_us - start_us)
                if done:
                    moved.append((partition, first, done, start_us, at_us))
                moved.append((partition, first + done, count - done, at_us + for_us, end_us + for_us))
        self.stretches = moved
        self.end_us += for_us
        self.next_us += for_us


class Cycle:
    """Looks that come again and again. ``moved``: the records that one round takes from each partition."""

    __slots__ = ("_looks", "_moved", "_offsets_us", "span_us")

    def __init__(self, looks: list[Batch], span_us: int, moved: dict[TopicPartition, int]) -> None:
        """``looks`` are those of the round before the series, which ended after ``span_us``."""
        self._looks = looks
        self._offsets_us = [look.look_us - looks[0].look_us for look in looks]
        self._moved = moved
        self.span_us = span_us

    def __len__(self) -> int:
        return len(self._looks)

    @property
    def first(self) -> Batch:
        return self._looks[0]

    def number_at(self, elapsed_us: int) -> int:
        """The number of the last look at ``elapsed_us`` since the first one of the series, which is 0."""
        rounds, rest_us = divmod(elapsed_us, self.span_us)
        return rounds * len(self._looks) + bisect_right(self._offsets_us, rest_us) - 1

    def look(self, number: int, first_number: int) -> tuple[Batch, dict[TopicPartition, int]]:
        """Look ``number`` of a series whose first one has ``first_number``, and the positions behind it."""
        rounds, at = divmod(number + len(self._looks), len(self._looks))
        model, moved, late_us = self._looks[at], self._moved, rounds * self.span_us
        look = Batch(
            model.look_us + late_us,
            first_number + number,
            model.turn,
            model.left,
            model.poll_records,
            model.order,
            model.curves,
        )
        look.stretches = [
            (partition, first + rounds * moved[partition], count, begun_us + late_us, done_us + late_us)
            for partition, first, count, begun_us, done_us in model.stretches
        ]
        look.end_us, look.next_us = model.end_us + late_us, model.next_us + late_us
        look.took_all = model.took_all
        return look, self.behind(number)

    def behind(self, number: int) -> dict[TopicPartition, int]:
        """The positions behind a look of the series."""
        rounds, at = divmod(number + len(self._looks), len(self._looks))
        moved = self._moved
        return {
            partition: position + rounds * moved[partition]
            for partition, position in self._looks[at].behind.items()
        }

    def order_behind(self, number: int) -> tuple[int, int]:
        """Whose turn it is behind a look, and what is left of that partition's fetch."""
        following = self._looks[(number + 1) % len(self._looks)]
        return following.turn, following.left

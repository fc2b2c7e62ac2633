"""What one look of a poll loop hands out: records of some partitions, and when the work on them is done."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.record_logs import LogCurve

#: Partition, its first offset, how many records; from when until when the application works on them.
Stretch = tuple[TopicPartition, int, int, int, int]


class Batch:
    """The records of one look, handed out in polls of ``poll_records``; the next look comes at ``next_us``.

    A batch may stand for a series of looks, ``interval_us`` apart, each of which takes all that has arrived:
    then ``before`` has the positions before the first one, and ``looks`` says how many there are (0: no end).
    ``single`` is the look of the series that was asked for last, ``behind`` the positions behind it.
    ``order`` and ``curves`` are the partitions that it goes through, and their logs.
    """

    __slots__ = (
        "before",
        "behind",
        "curves",
        "end_us",
        "interval_us",
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
        self.interval_us = 0
        self.looks = 1
        self.single: Batch | None = None
        self.behind: dict[TopicPartition, int] = {}

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

    @property
    def records(self) -> int:
        return sum([count for _, _, count, _, _ in self.stretches])

    def take_back(self, positions: dict[TopicPartition, int], done: int) -> None:
        """Move positions behind this batch back to those after its first ``done`` records."""
        for partition, first, count, _, _ in self.stretches:
            if partition in positions and done < count:
                positions[partition] = min(positions[partition], first + max(done, 0))
            done -= count

    def finished_us(self, records: int) -> int:
        """When the application has finished so many records of this batch (at least one)."""
        for _, _, count, start_us, end_us in self.stretches:
            if records <= count:
                # the first microsecond at which `done` counts them
                return start_us - (-(end_us - start_us) * records // count)
            records -= count
        return self.end_us

    def cut(self, partition: TopicPartition, at_us: int) -> int | None:
        """Take the records of ``partition`` back that are not finished. Returns the first of them."""
        kept: list[Stretch] = []
        cut_at: int | None = None
        for stretch in self.stretches:
            of, first, count, start_us, end_us = stretch
            if of != partition or end_us <= at_us:
                kept.append(stretch)
                continue
            done = 0 if start_us >= at_us else count * (at_us - start_us) // (end_us - start_us)
            if done:
                kept.append((of, first, done, start_us, at_us))
            if cut_at is None:
                cut_at = first + done
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

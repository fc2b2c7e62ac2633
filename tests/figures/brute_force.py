"""The figures of ownership and records by brute force: every microsecond of a short trace is looked at.

Written from `docs/figures.md`, without the rules of `groupstorm.storms.figures`; slow and plain on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from groupstorm.clients import events as member_events
from groupstorm.clients.events import MemberCrashed, PartitionsAssigned, PartitionsLost, PartitionsRevoked
from groupstorm.storms import events as world_events
from tests.figures.synthetic import TracedRow

ENDINGS = (PartitionsRevoked, PartitionsLost, MemberCrashed)
Ending = PartitionsRevoked | PartitionsLost | MemberCrashed


@dataclass
class Interval:
    """A member owns a partition; stretches are (from row, until row, from us, position)."""

    partition: str
    member: str
    from_row: int
    from_us: int
    assigned_callback_us: int
    start: int
    stretches: list[list[int]]
    until_row: int
    until_us: int
    ending_callback_us: int = 0
    end: int | None = None


OpenOnes = dict[tuple[str, str], Interval]
Gap = tuple[str, int, int, Interval | None, Interval | None]


class BruteForce:
    def __init__(self, rows: list[TracedRow]) -> None:
        self.rows = rows
        self.end_us = rows[-1][0]
        start = rows[0][2]
        assert isinstance(start, world_events.ScenarioStarted)
        self.record_rate, self.process_rate = start.record_rate, start.process_rate
        self.created = dict.fromkeys(start.partitions, (0, rows[0][0]))
        self.intervals: list[Interval] = []
        self._read()
        self.complete_row = self._first_complete_row()

    def _read(self) -> None:
        open_ones: dict[tuple[str, str], Interval] = {}
        for number, (now_us, _, event) in enumerate(self.rows):
            if isinstance(event, world_events.PartitionsCreated):
                self.created |= dict.fromkeys(event.partitions, (number, now_us))
            elif isinstance(event, PartitionsAssigned):
                self._assign(open_ones, number, now_us, event)
            elif isinstance(event, ENDINGS):
                self._end(open_ones, number, now_us, event)
            elif isinstance(event, member_events.MemberPaused):
                for name in event.partitions:
                    if (name, event.member) in open_ones:
                        open_ones[name, event.member].stretches[-1][1] = number
            elif isinstance(event, member_events.MemberResumed):
                for name, position in zip(event.partitions, event.positions, strict=True):
                    resumed = open_ones.get((name, event.member))
                    if resumed is not None and resumed.stretches[-1][1] < number:
                        resumed.stretches.append([number, len(self.rows), now_us, position])

    def _assign(self, open_ones: OpenOnes, number: int, now_us: int, event: PartitionsAssigned) -> None:
        for name, position in zip(event.partitions, event.positions, strict=True):
            if (name, event.member) in open_ones:
                continue
            stretch = [number, len(self.rows), now_us, position]
            interval = Interval(
                name,
                event.member,
                number,
                now_us,
                event.duration_us,
                position,
                [stretch],
                len(self.rows),
                self.end_us,
            )
            open_ones[name, event.member] = interval
            self.intervals.append(interval)

    @staticmethod
    def _end(open_ones: OpenOnes, number: int, now_us: int, event: Ending) -> None:
        for name, position in zip(event.partitions, event.positions, strict=True):
            ended = open_ones.pop((name, event.member), None)
            if ended is not None:
                ended.until_row, ended.until_us, ended.end = number, now_us, position
                ended.ending_callback_us = getattr(event, "duration_us", 0)
                ended.stretches[-1][1] = min(ended.stretches[-1][1], number)

    def of(self, partition: str) -> list[Interval]:
        return [interval for interval in self.intervals if interval.partition == partition]

    def _first_complete_row(self) -> int | None:
        for number in range(len(self.rows)):
            existing = [name for name, (row, _) in self.created.items() if row <= number]
            if all(any(i.from_row <= number < i.until_row for i in self.of(name)) for name in existing):
                return number
        return None

    def last_row_at(self, now_us: int) -> int:
        """The last row up to and including this microsecond."""
        return max(number for number, row in enumerate(self.rows) if row[0] <= now_us)

    def processing(self, partition: str, row: int) -> list[tuple[Interval, list[int]]]:
        return [(i, s) for i in self.of(partition) for s in i.stretches if s[0] <= row < s[1]]

    def gaps(self) -> list[Gap]:
        """(partition, from, until, old owner's interval, new owner's)."""
        assert self.complete_row is not None
        found: list[Gap] = []
        for name, (created_row, created_us) in self.created.items():
            intervals = sorted(self.of(name), key=lambda i: i.from_row)
            if created_row > self.complete_row:
                first = intervals[0] if intervals else None
                found.append((name, created_us, first.from_us if first else self.end_us, None, first))
            for interval in intervals:
                if interval.until_row <= self.complete_row or interval.until_row == len(self.rows):
                    continue
                if any(i.from_row < interval.until_row < i.until_row for i in intervals if i is not interval):
                    continue
                following = next((i for i in intervals if i.from_row > interval.until_row), None)
                until_us = following.from_us if following else self.end_us
                found.append((name, interval.until_us, until_us, interval, following))
        return [gap for gap in found if gap[2] > gap[1]]

    def nobody_us(self) -> int:
        assert self.complete_row is not None
        return sum(
            not any(self.processing(name, row) for name in self.created)
            for now_us in range(self.rows[self.complete_row][0], self.end_us)
            for row in (self.last_row_at(now_us),)
        )

    def dual_us(self) -> int:
        rows = [self.last_row_at(now_us) for now_us in range(self.end_us)]
        return sum(len(self.processing(name, row)) > 1 for row in rows for name in self.created)

    def paused_us(self) -> int:
        assert self.complete_row is not None
        paused = 0
        for _, from_us, until_us, old, new in self.gaps():
            if old and new and old.member == new.member:
                paused += until_us - from_us
            else:
                revoking = min(until_us - from_us, old.ending_callback_us if old else 0)
                paused += revoking
                paused += min(until_us - from_us - revoking, new.assigned_callback_us if new else 0)
        for now_us in range(self.rows[self.complete_row][0], self.end_us):
            row = self.last_row_at(now_us)
            for name in self.created:
                owned = any(i.from_row <= row < i.until_row for i in self.of(name))
                paused += owned and not self.processing(name, row)
        return paused

    def ranges(self) -> dict[str, list[range]]:
        """Per partition the positions that each interval covers, in the order of their starts."""
        found: dict[str, list[range]] = {name: [] for name in self.created}
        for interval in sorted(self.intervals, key=lambda i: i.from_row):
            end = interval.end
            if end is None:
                stretch = interval.stretches[-1]
                if stretch[1] == len(self.rows):
                    end = int(self._position(stretch, self.end_us))
                else:
                    event = self.rows[stretch[1]][2]
                    assert isinstance(event, member_events.MemberPaused)
                    end = event.positions[event.partitions.index(interval.partition)]
            found[interval.partition].append(range(interval.start, max(interval.start, end)))
        return found

    def _position(self, stretch: list[int], now_us: int) -> Fraction:
        log_end = Fraction(self.record_rate * now_us, 1_000_000)
        reached = stretch[3] + Fraction(self.process_rate * (now_us - stretch[2]), 1_000_000)
        return max(Fraction(stretch[3]), min(log_end, reached))

    def lag(self, row: int, now_us: int) -> Fraction:
        """The lag as of `row`, at a microsecond not before it."""
        total = Fraction(0)
        for name, (created_row, created_us) in self.created.items():
            if created_row > row:
                continue
            known = [s[3] for i in self.of(name) for s in i.stretches if s[0] <= row]
            for interval in self.of(name):
                for stretch in interval.stretches:
                    if stretch[1] <= row:
                        stopped = self.rows[stretch[1]][2]
                        assert isinstance(stopped, (*ENDINGS, member_events.MemberPaused))
                        known.append(stopped.positions[stopped.partitions.index(name)])
            moving = [self._position(stretch, now_us) for _, stretch in self.processing(name, row)]
            at_creation = Fraction(self.record_rate * created_us, 1_000_000)
            furthest = max([at_creation, *map(Fraction, known), *moving])
            total += Fraction(self.record_rate * now_us, 1_000_000) - furthest
        return total

    def lags(self, from_row: int) -> list[tuple[int, Fraction]]:
        """(time, lag) before and after the rows of each microsecond, from the instant of `from_row` on."""
        from_us = self.rows[from_row][0]
        values = [(from_us, self.lag(self.last_row_at(from_us), from_us))]
        for now_us in range(from_us + 1, self.end_us + 1):
            values.append((now_us, self.lag(self.last_row_at(now_us - 1), now_us)))
            values.append((now_us, self.lag(self.last_row_at(now_us), now_us)))
        return values

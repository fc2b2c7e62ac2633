"""The figures of ownership and records by brute force: every microsecond of a short trace is looked at.

Written from `docs/figures.md`, without the rules of `groupstorm.figures`; slow and plain on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.member import (
    MemberCrashed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from tests.figures.synthetic_rows import TracedRow

ENDINGS = (PartitionsRevoked, PartitionsLost, MemberCrashed)
#: Positions are counted in billionths of a record.
RECORD = 10**9

STOPPING = (*ENDINGS, member_events.MemberPaused, member_events.ProcessingRatesChanged)
Ending = PartitionsRevoked | PartitionsLost | MemberCrashed


@dataclass
class Interval:
    """A member owns a partition; stretches are (from row, until row, from us, position, rate)."""

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
        self.record_rate, self.process_rate = start.record_rate * 1000, start.process_rate * 1000
        self.created = dict.fromkeys(start.partitions, (0, rows[0][0]))
        self.intervals: list[Interval] = []
        self._read()
        #: The last row up to and including each microsecond.
        self.last_row = [0] * (self.end_us + 1)
        for number, (now_us, _, _) in enumerate(self.rows):
            self.last_row[now_us:] = [number] * (self.end_us + 1 - now_us)
        self.log_changes = self._find_log_changes()
        self.known = self._find_known()
        self.begin_row = self._find_begin_row()

    def _read(self) -> None:
        open_ones: dict[tuple[str, str], Interval] = {}
        for number, (now_us, _, event) in enumerate(self.rows):
            if isinstance(event, world_events.PartitionsCreated):
                self.created |= dict.fromkeys(event.partitions, (number, now_us))
            elif isinstance(event, PartitionsAssigned):
                self._assign(open_ones, number, now_us, event)
            elif isinstance(event, ENDINGS):
                self._end(open_ones, number, now_us, event)
            else:
                self._stop_or_go_on(open_ones, number, now_us, event)

    def _assign(self, open_ones: OpenOnes, number: int, now_us: int, event: PartitionsAssigned) -> None:
        for name, position in zip(event.partitions, event.positions, strict=True):
            if (name, event.member) in open_ones:
                continue
            stretch = [number, len(self.rows), now_us, position, self.process_rate]
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

    def _stop_or_go_on(self, open_ones: OpenOnes, number: int, now_us: int, event: object) -> None:
        if isinstance(event, member_events.MemberPaused):
            for name in event.partitions:
                if (name, event.member) in open_ones:
                    open_ones[name, event.member].stretches[-1][1] = number
        elif isinstance(event, member_events.MemberResumed):
            for name, position in zip(event.partitions, event.positions, strict=True):
                resumed = open_ones.get((name, event.member))
                if resumed is not None and resumed.stretches[-1][1] < number:
                    rate = resumed.stretches[-1][4]
                    resumed.stretches.append([number, len(self.rows), now_us, position, rate])
        elif isinstance(event, member_events.ProcessingRatesChanged):
            for name, position, rate in zip(event.partitions, event.positions, event.rates, strict=True):
                going_on = open_ones.get((name, event.member))
                if going_on is not None and going_on.stretches[-1][1] == len(self.rows):
                    going_on.stretches[-1][1] = number
                    going_on.stretches.append([number, len(self.rows), now_us, position, rate])

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

    def _find_begin_row(self) -> int | None:
        """From which row on partitions have to have owners."""
        for number, (_, _, event) in enumerate(self.rows):
            if isinstance(event, member_events.MemberStarted):
                return number
            existing = [name for name, (row, _) in self.created.items() if row <= number]
            if all(any(i.from_row <= number < i.until_row for i in self.of(name)) for name in existing):
                return number
        return None

    def last_row_at(self, now_us: int) -> int:
        """The last row up to and including this microsecond."""
        return self.last_row[now_us]

    def processing(self, partition: str, row: int) -> list[tuple[Interval, list[int]]]:
        return [(i, s) for i in self.of(partition) for s in i.stretches if s[0] <= row < s[1]]

    def gaps(self) -> list[Gap]:
        """(partition, from, until, old owner's interval, new owner's)."""
        assert self.begin_row is not None
        found: list[Gap] = []
        for name, (created_row, created_us) in self.created.items():
            intervals = sorted(self.of(name), key=lambda i: i.from_row)
            from_row = max(created_row, self.begin_row)
            if not any(i.from_row <= from_row < i.until_row for i in intervals):
                first = next((i for i in intervals if i.from_row > from_row), None)
                from_us = max(created_us, self.rows[self.begin_row][0])
                found.append((name, from_us, first.from_us if first else self.end_us, None, first))
            for interval in intervals:
                if interval.until_row <= self.begin_row or interval.until_row == len(self.rows):
                    continue
                if any(i.from_row < interval.until_row < i.until_row for i in intervals if i is not interval):
                    continue
                following = next((i for i in intervals if i.from_row > interval.until_row), None)
                until_us = following.from_us if following else self.end_us
                found.append((name, interval.until_us, until_us, interval, following))
        return [gap for gap in found if gap[2] > gap[1]]

    def nobody_us(self) -> int:
        assert self.begin_row is not None
        return sum(
            not any(self.processing(name, row) for name in self.created)
            for now_us in range(self.rows[self.begin_row][0], self.end_us)
            for row in (self.last_row_at(now_us),)
        )

    def dual_us(self) -> int:
        rows = [self.last_row_at(now_us) for now_us in range(self.end_us)]
        return sum(len(self.processing(name, row)) > 1 for row in rows for name in self.created)

    def paused_us(self) -> int:
        assert self.begin_row is not None
        paused = 0
        for _, from_us, until_us, old, new in self.gaps():
            if old and new and old.member == new.member:
                paused += until_us - from_us
            else:
                revoking = min(until_us - from_us, old.ending_callback_us if old else 0)
                paused += revoking
                paused += min(until_us - from_us - revoking, new.assigned_callback_us if new else 0)
        for now_us in range(self.rows[self.begin_row][0], self.end_us):
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
                    end = self._position(interval.partition, stretch, len(self.rows), self.end_us) // RECORD
                else:
                    event = self.rows[stretch[1]][2]
                    assert isinstance(event, member_events.MemberPaused)
                    end = event.positions[event.partitions.index(interval.partition)]
            found[interval.partition].append(range(interval.start, max(interval.start, end)))
        return found

    def first_counted(self, name: str) -> int:
        """The first position that counts as skipped if nobody processes it.

        That is where the log ended when the partition was created; or where its first owner began, if that is
        in the instant of the creation, or before the end that the log had when ownership began (if that
        was after the creation and before the first owner): then it had found a commit.
        """
        first = min(self.of(name), key=lambda interval: interval.from_row)
        created_row, created_us = self.created[name]
        if first.from_us == created_us:
            return first.start
        end = self._at_creation(name)
        row = self.begin_row
        if row is not None and created_row < row < first.from_row and self.rows[row][0] > created_us:
            end = self.log_end(name, row, self.rows[row][0])
        if first.start < end // RECORD:
            return first.start
        return min(first.start, self._at_creation(name) // RECORD)

    def skipped_lag(self, after_row: int, row: int) -> int:
        """The lag that went between these rows as somebody began beyond the furthest position of a partition
        that nobody processed."""
        skipped = 0
        for name in self.created:
            for begun, _, now_us, position, _ in (s for i in self.of(name) for s in i.stretches):
                if after_row < begun <= row and not self.processing(name, begun - 1):
                    end, furthest = self.log_end(name, begun, now_us), self.furthest(name, begun - 1, now_us)
                    skipped += max(0, min(end, position * RECORD) - furthest)
        return skipped

    # -- positions, in billionths of a record ------------------------------------------------------

    def _position(self, partition: str, stretch: list[int], row: int, now_us: int) -> int:
        reached = stretch[3] * RECORD + stretch[4] * (now_us - stretch[2])
        return max(stretch[3] * RECORD, min(self.log_end(partition, row, now_us), reached))

    def _find_log_changes(self) -> dict[str, list[tuple[int, int, int, int]]]:
        """Per partition (row, time, position, rate) of every row that changes its log."""
        found: dict[str, list[tuple[int, int, int, int]]] = {name: [] for name in self.created}
        for number, (now_us, _, event) in enumerate(self.rows):
            if isinstance(event, world_events.RecordRatesChanged):
                for name, position, rate in zip(event.partitions, event.positions, event.rates, strict=True):
                    found[name].append((number, now_us, position, rate))
        return found

    def _log(self, partition: str, row: int) -> tuple[int, int, int]:
        """Where the log ended at the last change of its rate, when that was, and its rate, as of `row`."""
        found = (0, 0, self.record_rate)
        for number, changed_us, position, rate in self.log_changes[partition]:
            if number <= row:
                found = (position, changed_us, rate)
        return found

    def log_rate(self, partition: str, row: int) -> int:
        return self._log(partition, row)[2]

    def log_end(self, partition: str, row: int, now_us: int) -> int:
        """By what is known after `row`."""
        position, since_us, rate = self._log(partition, row)
        return position * RECORD + rate * (now_us - since_us)

    def _at_creation(self, partition: str) -> int:
        """The end of its log when it was created, if no row of that instant says another one."""
        created_row, created_us = self.created[partition]
        first_owner = min((i.from_row for i in self.of(partition)), default=len(self.rows))
        found = self.log_end(partition, created_row, created_us)
        for number, now_us, position, _ in self.log_changes[partition]:
            if now_us == created_us and created_row < number < first_owner:
                found = position * RECORD
        return found

    def _find_known(self) -> dict[str, list[tuple[int, int]]]:
        """Per partition (row, position) of every row that says where somebody begins, stops or goes on."""
        found: dict[str, list[tuple[int, int]]] = {name: [] for name in self.created}
        for interval in self.intervals:
            for stretch in interval.stretches:
                found[interval.partition].append((stretch[0], stretch[3]))
                if stretch[1] < len(self.rows):
                    stopped = self.rows[stretch[1]][2]
                    assert isinstance(stopped, STOPPING)
                    position = stopped.positions[stopped.partitions.index(interval.partition)]
                    found[interval.partition].append((stretch[1], position))
        return found

    def furthest(self, name: str, row: int, now_us: int) -> int:
        """The furthest position as of `row`, at a microsecond not before it."""
        known = [position * RECORD for at_row, position in self.known[name] if at_row <= row]
        moving = [self._position(name, stretch, row, now_us) for _, stretch in self.processing(name, row)]
        return max([self._at_creation(name), *known, *moving])

    def lag(self, row: int, now_us: int) -> int:
        """The lag as of `row`, at a microsecond not before it."""
        return sum(
            max(0, self.log_end(name, row, now_us) - self.furthest(name, row, now_us))
            for name, (created_row, _) in self.created.items()
            if created_row <= row
        )

    def generations_without_progress(self) -> int:
        """The longest run of generations in which the furthest positions did not grow by a record in all."""
        stable = [
            number
            for number, (_, _, event) in enumerate(self.rows)
            if isinstance(event, coordinator_events.GroupStateChanged) and event.state == "Stable"
        ]
        reached = [self._processed(row, self.rows[row][0]) for row in (*stable, len(self.rows) - 1)]
        lags = [self.lag(row, self.rows[row][0]) for row in (*stable, len(self.rows) - 1)]
        longest = run = 0
        for number in range(1, len(reached)):
            stuck = reached[number] < max(reached[:number]) + RECORD and lags[number] >= RECORD
            run = run + 1 if stuck else 0
            longest = max(longest, run)
        return longest

    def _processed(self, row: int, now_us: int) -> int:
        """Over all partitions: the part of the log that was processed since its creation."""
        return sum(
            min(self.log_end(name, row, now_us), self.furthest(name, row, now_us)) - self._at_creation(name)
            for name, (created_row, _) in self.created.items()
            if created_row <= row
        )

    def oldest_us(self, name: str, from_us: int) -> int:
        """The largest age from then on, before and after the rows of each microsecond."""
        created_row, created_us = self.created[name]
        begin_us = max(from_us, created_us)
        #: The log's end after the rows of every microsecond.
        ends = [self.log_end(name, self.last_row[at_us], at_us) for at_us in range(self.end_us + 1)]

        def age(row: int, now_us: int) -> int:
            """Return the age of the record at the furthest position; 0 if it is not there yet."""
            waiting = self.furthest(name, row, now_us) + RECORD
            if self.log_end(name, row, now_us) < waiting:
                return 0
            before = (at_us for at_us in range(now_us - 1, -1, -1) if ends[at_us] < waiting)
            return now_us - next(before, -1) - 1

        ages = [age(max(created_row, self.last_row[begin_us]), begin_us)]
        for now_us in range(begin_us + 1, self.end_us + 1):
            ages.append(age(self.last_row[now_us - 1], now_us))
            ages.append(age(self.last_row[now_us], now_us))
        return max(ages)

    def lags(self, from_row: int, skipped: bool = False) -> list[tuple[int, int]]:
        """(time, lag) before and after the rows of each microsecond, from the instant of `from_row` on;
        `skipped`: and the lag that was skipped since then."""
        from_us = self.rows[from_row][0]
        instants = [(self.last_row_at(from_us), from_us)]
        for now_us in range(from_us + 1, self.end_us + 1):
            instants += [(self.last_row_at(now_us - 1), now_us), (self.last_row_at(now_us), now_us)]
        return [
            (now_us, self.lag(row, now_us) + (self.skipped_lag(from_row, row) if skipped else 0))
            for row, now_us in instants
        ]

"""The lag of all partitions together over time, its peak, and when it has recovered from a change.

The lag of one partition is the end of its log less the furthest position that was processed. Between
two rows of the trace that concern the partition it is piecewise linear: it grows by the log's rate while
nobody gets further, shrinks by what an owner processes beyond that, and is zero once the owner has caught
up. All values are integers, in billionths of a record at whole microseconds; where two lines cross between
two microseconds, the curve bends at both of them, so that its values at whole microseconds are exact.

The age of the oldest record that waits (`frontier`) follows from the same positions and is kept with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from groupstorm.history.frontier import CHANGING, Frontier
from groupstorm.history.records import NANO, Line, Owner

#: So many bends are kept for each partition before those are left out that will not come.
_BENDS_PER_PARTITION = 4


class LagCurve:
    """Follows the lag as rows come in, in the order of time; the past is forgotten.

    ``begin_peak`` says from when on the peak counts, ``mark`` names the change to recover from.
    """

    def __init__(self) -> None:
        self.frontiers: dict[str, Frontier] = {}
        self._changing: list[Frontier] = []
        self._now_us = 0
        self._value = 0
        self._slope = 0
        #: The ends of all logs, summed: base + rate * t; and what they held when they were created.
        self._logs_base = 0
        self._logs_rate = 0
        self._created = 0
        #: The records that were processed on deleted partitions, and the largest ages there.
        self._processed_before = 0
        self._oldest_before: dict[str, int] = {}
        self._before = 0  # the value before the rows of this instant
        #: When to look at partitions, no later than they bend, and the turn of their course: it may be over.
        self._bends: list[tuple[int, int, list[Frontier]]] = []
        self._turn = 0
        self._peak: int | None = None
        #: The largest value since `recent_peak` was called.
        self._recent_peak = 0
        #: From when on ages count; None: the peak does not count, either.
        self._ages_from_us: int | None = None
        self._marked_us: int | None = None
        self._marked_value = 0
        self._low_from_us = 0

    def create(self, partition: str, now_us: int, log: Line) -> Frontier:
        """The partition exists from now on; nobody has to process what its log holds already."""
        self._move_to(now_us)
        end = log.exact(now_us)
        frontier = Frontier(now_us, end, end, end, [log], log.base(), log.rate)
        self.frontiers[partition] = frontier
        self._logs_base += frontier.log_base
        self._logs_rate += log.rate
        self._created += frontier.furthest
        self._changing.append(frontier)
        return frontier

    def delete(self, partition: str, now_us: int) -> None:
        """The partition exists no more; nobody owns it. What was processed of it stays processed."""
        frontier = self.frontiers[partition]
        self._touch([frontier], now_us)
        self._processed_before += (
            frontier.log_base + frontier.log_rate * now_us - frontier.begun - frontier.lag(now_us)
        )
        self._logs_base -= frontier.log_base
        self._logs_rate -= frontier.log_rate
        self._created -= frontier.begun
        self._changing.remove(frontier)
        del self.frontiers[partition]
        self._oldest_before[partition] = max(frontier.oldest_us, self._oldest_before.get(partition, 0))

    def change_log(self, partition: str, log: Line) -> None:
        """The log goes on along another line."""
        frontier = self.frontiers[partition]
        self._touch([frontier], log.from_us)
        if frontier.created_us == log.from_us and not frontier.owners:
            self._created += log.position * NANO - frontier.furthest
            frontier.furthest = frontier.begun = frontier.known_from = log.position * NANO
        frontier.logs.append(log)
        base = log.base()
        self._logs_base += base - frontier.log_base
        self._logs_rate += log.rate - frontier.log_rate
        frontier.log_base, frontier.log_rate = base, log.rate

    def start(self, now_us: int, frontiers: list[Frontier], owners: list[Owner]) -> None:
        """Owners begin, or go on, to process these partitions, each along its line."""
        self._touch(frontiers, now_us)
        for frontier, owner in zip(frontiers, owners, strict=True):
            furthest = owner.position * NANO
            if furthest > frontier.furthest:
                lag = 0 if frontier.owners else frontier.lag(now_us)
                frontier.furthest = furthest
                if lag:  # what is skipped has not recovered
                    self._marked_value -= lag - frontier.lag(now_us)
            frontier.owners.append(owner)

    def stop(self, now_us: int, frontiers: list[Frontier], owners: list[Owner], positions: list[int]) -> None:
        """Owners that processed these partitions have stopped, each at a position."""
        self.reach(now_us, frontiers, positions)
        for frontier, owner in zip(frontiers, owners, strict=True):
            frontier.owners.remove(owner)

    def reach(self, now_us: int, frontiers: list[Frontier], positions: list[int]) -> None:
        """Owners of these partitions have come to these positions, and will go on along other lines."""
        self._touch(frontiers, now_us)
        for frontier, position in zip(frontiers, positions, strict=True):
            furthest = position * NANO
            if furthest > frontier.furthest:  # noqa: PLR1730  (as in `Frontier.lag`)
                frontier.furthest = furthest

    def processed_and_waiting(self, now_us: int) -> tuple[int, int]:
        """Over all partitions, as of the last row, in billionths of a record.

        How far they were processed since their creation, and the lag.
        """
        self._move_to(now_us)
        self._instant_over()
        processed = self._logs_base + self._logs_rate * now_us - self._created - self._value
        return self._processed_before + processed, self._value

    def recent_peak(self, now_us: int) -> int:
        """The largest lag since the last call, up to this instant, in billionths of a record."""
        self._move_to(now_us)
        self._instant_over()
        peak = max(self._recent_peak, self._value)
        self._recent_peak = self._value
        return peak

    def oldest_now_us(self, now_us: int, partitions: Iterable[str] | None = None) -> int:
        """The age of the oldest record that waits at this instant, in microseconds; 0 if none waits.

        ``partitions``: of these alone; those that do not exist are passed over.
        """
        self._move_to(now_us)
        self._instant_over()
        oldest = 0
        for name in self.frontiers if partitions is None else partitions:
            one = self.frontiers.get(name)
            if one is not None:
                oldest = max(oldest, one.age_now_us(now_us))
        return oldest

    def begin_peak(self, now_us: int) -> None:
        """From this instant on the peak counts, and so do the ages of records."""
        for frontier in self.frontiers.values():
            frontier.known_from = frontier.log_base + frontier.log_rate * now_us
        self._begin_ages(now_us)

    def mark(self, now_us: int) -> None:
        """The lag has to come back to the value that it had just before this instant's rows."""
        self._move_to(now_us)
        self._marked_us = self._low_from_us = now_us
        self._marked_value = self._before

    def begin_window(self, from_us: int) -> None:
        """The peak so far counts no more; there is no change yet to recover from."""
        self._move_to(from_us)
        self._peak = self._marked_us = None
        self._recent_peak = self._value
        self._see(self._value)
        if self._ages_from_us is not None:
            self._begin_ages(from_us)

    def growth(self, now_us: int) -> int:
        """By how much the lag grows from now on if nothing happens, in records per 1,000 seconds."""
        self._move_to(now_us)
        self._instant_over()
        return self._slope

    def finish(self, end_us: int) -> tuple[int | None, int | None]:
        """The peak in billionths of a record, and the recovery in microseconds; None where unknown."""
        self._move_to(end_us)
        self._instant_over()
        self._see(self._value)
        for frontier in self.frontiers.values():
            frontier.look_back(end_us, self._ages_from_us)
        if self._marked_us is None or self._value > self._marked_value:
            return self._peak, None
        return self._peak, self._low_from_us - self._marked_us

    def ages(self) -> dict[str, int] | None:
        """After the end: each partition's largest age in microseconds; None if the peak never counted."""
        if self._ages_from_us is None:
            return None
        found = {name: frontier.oldest_us for name, frontier in self.frontiers.items()}
        for name, oldest in self._oldest_before.items():
            found[name] = max(oldest, found.get(name, 0))
        return found

    # -- single partitions -----------------------------------------------------------------------

    def _touch(self, frontiers: list[Frontier], now_us: int) -> None:
        """Take the partitions out of the curve until this instant is over."""
        if now_us != self._now_us:
            self._move_to(now_us)
        changing, ages_from_us = self._changing, self._ages_from_us
        value = slope = 0
        for frontier in frontiers:
            if frontier.turn != CHANGING:
                frontier.turn = CHANGING
                changing.append(frontier)
                value += frontier.look_back(now_us, ages_from_us)
                slope += frontier.slope
        self._value -= value
        self._slope -= slope

    def _instant_over(self) -> None:
        """Put what the rows of this instant concern back into the curve."""
        now_us, value, slope = self._now_us, self._value, self._slope
        shrinking: list[Frontier] = []
        least, fastest = -1, 0
        for frontier in self._changing:
            frontier.turn = 0
            lag = frontier.go_on(now_us)
            value += lag
            grows = frontier.slope
            slope += grows
            if frontier.bends:
                self._look_at(frontier.bends[0][0], [frontier])
            elif grows < 0:
                shrinking.append(frontier)
                if lag < least or least < 0:
                    least = lag
                if grows < fastest:  # noqa: PLR1730  (as in `Frontier.look_back`)
                    fastest = grows
        if shrinking:  # mostly other rows concern them before they bend
            self._look_at(now_us + least // -fastest, shrinking)
        self._value, self._slope = value, slope
        self._changing.clear()

    def _begin_ages(self, now_us: int) -> None:
        self._ages_from_us = now_us
        self._oldest_before.clear()
        for frontier in self.frontiers.values():
            frontier.oldest_us = 0

    # -- the curve -------------------------------------------------------------------------------

    def _move_to(self, now_us: int) -> None:
        if now_us == self._now_us:
            return
        if self._changing:
            self._instant_over()
        bends = self._bends_until(now_us) if self._bends and self._bends[0][0] <= now_us else []
        self._run_through(bends, now_us)

    def _bends_until(self, now_us: int) -> list[tuple[int, int]]:
        """Take the bends of all partitions up to now: when each is, and by how much the slope changes."""
        found: list[tuple[int, int]] = []
        while self._bends and self._bends[0][0] <= now_us:
            _, turn, frontiers = heappop(self._bends)
            for frontier in frontiers:
                if frontier.turn != turn:
                    continue
                if not frontier.bends:  # it is time to foresee when it bends
                    frontier.foresee()
                left = frontier.bends
                while left and left[0][0] <= now_us:
                    found.append(left[0])
                    frontier.slope += left[0][1]
                    left = left[1:]
                frontier.bends = left
                if left:
                    self._look_at(left[0][0], [frontier])
        found.sort()
        return found

    def _run_through(self, bends: list[tuple[int, int]], now_us: int) -> None:
        """Follow the straight lines between these bends, in their order, up to now."""
        bends.append((now_us, 0))
        is_marked, marked, low_from_us = self._marked_us is not None, self._marked_value, self._low_from_us
        from_us, value, slope = self._now_us, self._value, self._slope
        peak = value
        for until_us, change in bends:
            end = value + slope * (until_us - from_us)
            if end > peak:  # noqa: PLR1730  (storms come here for every line: `max` takes longer)
                peak = end
            # the last line that lies above the marked value decides from when on the lag stays low
            if is_marked:
                if end > marked:
                    low_from_us = until_us
                elif value > marked:
                    low_from_us = from_us - (value - marked) // slope  # the slope is negative: rounds up
            from_us, value = until_us, end
            slope += change
        self._see(peak)
        self._low_from_us, self._now_us, self._slope = low_from_us, now_us, slope
        self._value = self._before = value

    def _look_at(self, time_us: int, frontiers: list[Frontier]) -> None:
        """At that time one of the partitions may bend."""
        self._turn += 1
        for frontier in frontiers:
            frontier.turn = self._turn
        heappush(self._bends, (time_us, self._turn, frontiers))
        if len(self._bends) > _BENDS_PER_PARTITION * len(self.frontiers) + _BENDS_PER_PARTITION:
            self._bends = [one for one in self._bends if any(other.turn == one[1] for other in one[2])]
            heapify(self._bends)

    def _see(self, value: int) -> None:
        if value > self._recent_peak:  # noqa: PLR1730  (as in `_run_through`)
            self._recent_peak = value
        if self._ages_from_us is not None and (self._peak is None or value > self._peak):
            self._peak = value

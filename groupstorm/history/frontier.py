"""One partition of a lag curve: its log, how far it was processed, how its lag goes on, and the age that its
oldest record reaches before anybody has processed it.

`docs/figures.md` defines the age: at a time t, t less the time at which the record at the furthest position
arrived. Between two rows that concern the partition the furthest position is piecewise linear, and so is
the time at which that record arrived. The largest age lies at an end of a piece; where two pieces meet
between two microseconds, both are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from groupstorm.history.records import NANO, Line, Owner

#: The distance from a position that may be the furthest one to the log's end, and the rate at which it grows.
Distance = tuple[int, int]

#: The turn of a partition that rows of the present instant concern.
CHANGING: Final = -1


@dataclass(slots=True, eq=False)
class Frontier:
    """One partition: its log, how far it was processed, and the lines of those who process it now.

    ``furthest`` is the furthest position that a row of the trace names, or the end of the log when the
    partition was created, in billionths of a record.
    """

    created_us: int
    furthest: int
    #: The end of its log when it was created.
    begun: int
    #: The same, or its end when ownership began, if that came later.
    known_from: int
    #: The lines of the log's end that records still lie on which nobody has processed; the last one is the
    #: present one, which is ``log_base + log_rate * t``.
    logs: list[Line]
    log_base: int
    log_rate: int
    owners: list[Owner] = field(default_factory=list)
    #: How fast its lag grows, and when and by how much that changes if nothing happens. A lag that shrinks
    #: does not do so for ever: without ``bends`` they are to be foreseen.
    slope: int = 0
    bends: tuple[tuple[int, int], ...] = ()
    #: The last row that concerned it, and the lag then.
    since_us: int = 0
    begin_lag: int = 0
    #: The lag grows by so much a microsecond since then, but not below zero. None: it is less simple.
    pace: int | None = None
    #: The curve's number for the course since then, if it bends. While it is `CHANGING`, it is not part of
    #: the curve.
    turn: int = CHANGING
    #: The largest age since ages count.
    oldest_us: int = 0

    def lag(self, now_us: int) -> int:
        """The log's end less the furthest position, in billionths of a record."""
        reached = self.furthest
        for owner in self.owners:
            at = owner.position * NANO + owner.rate * (now_us - owner.from_us)
            if at > reached:  # noqa: PLR1730  (storms come here for every line: `max` takes longer)
                reached = at
        lag = self.log_base + self.log_rate * now_us - reached
        return lag if lag > 0 else 0

    def age_now_us(self, now_us: int) -> int:
        """The age of the oldest record that waits at this instant, 0 if none waits."""
        lag = self.lag(now_us)
        if lag < NANO:
            return 0
        arrived = arrived_us(self.logs, self.log_base + self.log_rate * now_us - lag + NANO)
        return 0 if arrived is None else now_us - arrived

    def first_counted(self, position: int, now_us: int) -> int:
        """The first position that a first owner, which begins now and here, skips if nobody processes it.

        Whoever begins before the end that the log had when ownership began has found a commit, or reads from
        the log's beginning: it skips nothing. Whoever begins behind it skips all since the creation.
        """
        if self.created_us == now_us or position < self.known_from // NANO:
            return position
        return min(position, self.begun // NANO)

    def look_back(self, now_us: int, ages_from_us: int | None) -> int:
        """Take notice of the ages since its last row, if they count (from ``ages_from_us`` on), and forget
        processed logs. Returns the lag."""
        pace, begin_lag, since_us = self.pace, self.begin_lag, self.since_us
        if pace is None:
            return self._look_closely(now_us, ages_from_us)
        lag = begin_lag + pace * (now_us - since_us)
        if ages_from_us is not None:  # the age is largest at one of both ends, where it follows from the lag
            older = (self.oldest_us + 1) * self.log_rate + NANO
            if lag >= older or begin_lag >= older:
                seen_us = max(since_us, ages_from_us)
                for at_us, waiting in ((seen_us, begin_lag + pace * (seen_us - since_us)), (now_us, lag)):
                    if waiting >= NANO:
                        age_us = at_us - self.logs[0].from_us
                        if self.log_rate:
                            age_us = min(age_us, (waiting - NANO) // self.log_rate)
                        self.oldest_us = max(self.oldest_us, age_us)
        return lag if lag > 0 else 0

    def _look_closely(self, now_us: int, ages_from_us: int | None) -> int:
        """Do as `look_back`, where the lag is not a line that ends at zero."""
        logs, furthest = self.logs, self.furthest
        if ages_from_us is not None:
            lines = [(owner.base(), owner.rate) for owner in self.owners]
            seen_us = max(self.since_us, ages_from_us)
            self.oldest_us = oldest_us(self.oldest_us, logs, furthest, lines, seen_us, now_us)
        while len(logs) > 1 and furthest + NANO > logs[1].position * NANO:
            del logs[0]
        return self.lag(now_us)

    def go_on(self, now_us: int) -> int:
        """Say in ``slope`` and ``bends`` how the lag goes on if nothing happens; returns it."""
        slope, owners = self.log_rate, self.owners
        end = self.log_base + slope * now_us
        lag = end - self.furthest
        is_usual = lag >= 0
        self.since_us = now_us
        if self.bends:
            self.bends = ()
        if owners:
            first = owners[0]
            reached = first.position * NANO
            if first.from_us != now_us:
                reached += first.rate * (now_us - first.from_us)
            ahead, gets_away = end - reached, slope - first.rate
            is_only = len(owners) == 1
            if is_only and ahead <= 0 and gets_away <= 0:  # caught up, and as fast as the log
                self.slope = self.pace = self.begin_lag = 0
                return 0
            is_usual = is_only and 0 <= ahead <= lag
            lag, slope = (ahead, gets_away) if is_usual else (lag, slope)
        if not is_usual:
            distances = [(end - one.exact(now_us), self.log_rate - one.rate) for one in owners]
            self.slope, self.bends = course(((lag, slope), *distances), now_us)
            self.pace = None
            lag = self.begin_lag = max(0, min([lag, *[distance for distance, _ in distances]]))
            return lag
        self.begin_lag = lag
        self.slope = slope
        self.pace = slope if len(self.logs) == 1 else None
        if lag + slope < 0:  # the owner has caught up within a microsecond
            self.slope = -lag
            if lag:
                self.bends = ((now_us + 1, lag),)
        return lag

    def foresee(self) -> None:
        """Say when a lag that shrinks bends: it goes straight to the last microsecond before the owner has
        caught up, and to nothing within that."""
        whole_us, rest = divmod(self.begin_lag, -self.slope)
        bend_us = self.since_us + whole_us
        self.bends = ((bend_us, -rest - self.slope), *(((bend_us + 1, rest),) if rest else ()))


def course(distances: tuple[Distance, ...], now_us: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The course of a partition's lag if nothing happens: its slope now, and (time, change of slope).

    The lag is the least of the ``distances``, and never below zero.
    """
    knots = [0, *_crossings(distances)]
    knots.append(knots[-1] + 1)
    values = [max(0, min([distance + rate * knot for distance, rate in distances])) for knot in knots]
    slopes = [
        (after - before) // (end - begin)
        for (before, after), (begin, end) in zip(pairwise(values), pairwise(knots), strict=True)
    ]
    bends = tuple(
        (now_us + knot, after - before)
        for knot, (before, after) in zip(knots[1:-1], pairwise(slopes), strict=True)
        if after != before
    )
    return slopes[0], bends


def _crossings(distances: tuple[Distance, ...]) -> list[int]:
    """Whole microseconds from now around which the distances cross each other, or zero."""
    found: set[int] = set()
    for number, (distance, rate) in enumerate(distances):
        for other, other_rate in ((0, 0), *distances[:number]):
            if rate != other_rate:
                crossing = (other - distance) // (rate - other_rate)
                found.update(at for at in (crossing, crossing + 1) if at > 0)
    return sorted(found)


def arrived_us(logs: Sequence[Line], position: int) -> int | None:
    """The first microsecond from which on the log's end was not below ``position`` (billionths of a record).

    ``logs``: the lines of the log's end, each from its own time to that of the next. None: it never comes.
    """
    until_us: int | None = None
    for index in range(len(logs) - 1, -1, -1):
        log = logs[index]
        missing = position - log.position * NANO
        if missing > 0:
            if log.rate == 0:
                return until_us
            at_us = log.from_us - -missing // log.rate
            return at_us if until_us is None else min(at_us, until_us)
        until_us = log.from_us
    return until_us


def oldest_us(
    known_us: int,
    logs: Sequence[Line],
    furthest: int,
    owners: Sequence[tuple[int, int]],
    from_us: int,
    to_us: int,
) -> int:
    """The largest age, in microseconds, from ``from_us`` to ``to_us``, and at least ``known_us``.

    ``furthest``: the furthest position that a row of the trace names, in billionths of a record;
    ``owners``: the lines (base, rate) of those who process the partition all the time. No row changes the log
    in between.
    """
    arrived = arrived_us(logs, furthest + NANO)
    if arrived is None or to_us - arrived <= known_us:
        return known_us  # not even the record at ``furthest`` waits longer
    if not owners:
        return to_us - arrived
    oldest, log = known_us, logs[-1]
    for at_us in _instants(logs, furthest, owners, from_us, to_us):
        reached = furthest
        for base, rate in owners:
            reached = max(reached, base + rate * at_us)
        if log.exact(at_us) < reached + NANO:
            continue  # caught up
        arrived = arrived_us(logs, reached + NANO)
        if arrived is not None and at_us - arrived > oldest:
            oldest = at_us - arrived
    return oldest


def _instants(
    logs: Sequence[Line], furthest: int, owners: Sequence[tuple[int, int]], from_us: int, to_us: int
) -> Collection[int]:
    """Both ends, and the microseconds on both sides of each point at which the age may bend."""
    base, rate = owners[0]
    if len(owners) == 1 and len(logs) == 1 and base + rate * from_us >= furthest:
        return from_us, to_us  # the usual case: one who begins where the last one stopped
    instants = {from_us, to_us}
    for number, (base, rate) in enumerate(owners):
        begin = base + rate * from_us
        # (distance ahead of the owner, how fast the owner gains on it)
        ahead = [(furthest - begin, rate)]
        for other_base, other_rate in owners[:number]:
            ahead.append((other_base + other_rate * from_us - begin, rate - other_rate))
        for before, log in pairwise(logs):
            for bend in (before.exact(log.from_us), log.position * NANO):
                ahead.append((bend - NANO - begin, rate))
        for distance, gain in ahead:
            if gain:
                crossing = from_us + distance // gain
                instants.update(at for at in (crossing, crossing + 1) if from_us < at < to_us)
    return instants

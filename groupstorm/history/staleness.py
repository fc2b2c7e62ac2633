"""The age that the oldest record of a partition reaches before anybody has processed it.

`docs/figures.md` defines it: at a time t, t less the time at which the record at the furthest position
arrived. Between two rows that concern the partition the furthest position is piecewise linear, and so is
the time at which that record arrived. The largest age lies at an end of a piece; where two pieces meet
between two microseconds, both are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from groupstorm.history.record_model import NANO, Line


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

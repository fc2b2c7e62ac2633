"""The positions of real members over time, from samples.

A stint is the time from an assignment of a partition to its end. Between two samples of a stint the position
is linear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from groupstorm.storms.live.real_clients.observations import (
    Assigned,
    Closed,
    Committed,
    Crashed,
    Failed,
    Observation,
    Paused,
    Progressed,
    Released,
    Resumed,
    Written,
)
from groupstorm.storms.records.logs import RECORD


class Pace(NamedTuple):
    """From this sample on the member goes on from ``position`` by ``rate``."""

    partition: str
    position: int
    rate: int


@dataclass(slots=True)
class Stint:
    """One member on one partition; ``samples``: (time, position), both rising."""

    member: str
    partition: str
    samples: list[tuple[int, int]] = field(default_factory=list)

    def add(self, time_us: int, position: int) -> None:
        before_us, reached = self.samples[-1]
        if before_us == time_us:
            self.samples.pop()
        self.samples.append((time_us, max(position, reached)))

    @property
    def last(self) -> int:
        return self.samples[-1][1]


class Stints:
    """All stints of a run, from its observations in their order."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self.all: list[Stint] = []
        self._open: dict[tuple[str, str], Stint] = {}
        self._committed: dict[str, int] = {}
        seen_all = tuple(observations)
        self._written = [seen for seen in seen_all if isinstance(seen, Written)]
        for seen in seen_all:
            self._take(seen)

    def paces(self) -> dict[tuple[int, str], list[Pace]]:
        """(time, member) -> how the member goes on from then. One for each sample but a stint's last."""
        found: dict[tuple[int, str], list[Pace]] = defaultdict(list)
        for stint in self.all:
            for (time_us, position), (next_us, reached) in pairwise(stint.samples):
                rate = (reached - position) * RECORD // max(1, next_us - time_us)
                found[time_us, stint.member].append(Pace(stint.partition, position, rate))
        return dict(found)

    def _take(self, seen: Observation) -> None:
        if isinstance(seen, Committed):
            self._committed.update(seen.positions)
        elif isinstance(seen, Assigned):
            for partition in seen.partitions:
                self._begin(seen.time_us, seen.member, partition)
        elif isinstance(seen, Progressed):
            self._sample(seen.time_us, seen.member, seen.positions, seen.first)
        elif isinstance(seen, Released):
            self._sample(seen.time_us, seen.member, seen.positions, seen.first)
            self._end(seen.time_us, seen.member, seen.partitions)
        elif isinstance(seen, Paused | Resumed):
            self._stand(seen.time_us, seen.member)
        elif isinstance(seen, Crashed | Closed | Failed):
            self._end(seen.time_us, seen.member, [tp for name, tp in self._open if name == seen.member])

    def _begin(self, time_us: int, member: str, partition: str) -> None:
        """At the committed offset, or at the end of the log, until the member reports where it began."""
        stint = Stint(member, partition)
        start = self._committed.get(partition)
        stint.samples.append((time_us, self._log_end(time_us, partition) if start is None else start))
        self._open[member, partition] = stint
        self.all.append(stint)

    def _log_end(self, time_us: int, partition: str) -> int:
        """Between two reports of the logs' ends it is linear."""
        behind = bisect_right(self._written, time_us, key=lambda seen: seen.time_us)
        if behind == 0:
            return 0
        before = self._written[behind - 1]
        end = before.ends.get(partition, 0)
        if behind == len(self._written):
            return end
        after = self._written[behind]
        passed_us, whole_us = time_us - before.time_us, max(1, after.time_us - before.time_us)
        return end + (after.ends.get(partition, end) - end) * passed_us // whole_us

    def _sample(
        self, time_us: int, member: str, positions: Mapping[str, int], first: Mapping[str, int]
    ) -> None:
        for partition, offset in first.items():
            stint = self._open.get((member, partition))
            if stint is not None and len(stint.samples) == 1:
                stint.samples[0] = (stint.samples[0][0], offset)  # it is known now where the member began
        for partition, position in positions.items():
            stint = self._open.get((member, partition))
            if stint is not None:
                stint.add(time_us, position)

    def _stand(self, time_us: int, member: str) -> None:
        for (name, _), stint in self._open.items():
            if name == member:
                stint.add(time_us, stint.last)

    def _end(self, time_us: int, member: str, partitions: Iterable[str]) -> None:
        for partition in tuple(partitions):
            stint = self._open.pop((member, partition), None)
            if stint is not None:
                stint.add(time_us, stint.last)

"""The rows of rates: one whenever partitions get records at another rate, and those of a member's processing.

A row of processing has positions, and rates for the time until the next row. It is right at its instant. A
reader lets each position go on by its rate, but not beyond the log's end, so a member that keeps up needs no
second row. One that is behind gets one every ten seconds, and the rates are those that lead to the next
row's positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RATE_SECONDS, RECORD
from groupstorm.storms.records.positions import Records, names
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import mean_rate
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class Timetable(Protocol):
    """A clock that calls back; times in microseconds since the scenario began."""

    @property
    def now_us(self) -> int: ...

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None: ...

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None: ...


class Host(Protocol):
    """The world whose partitions get records."""

    settings: Settings
    group: str
    records: Records

    @property
    def clock(self) -> Timetable: ...

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    def trace(self, source: Source, event: TracedEvent) -> None: ...


class RecordRateRows:
    """Writes the rows of a run: partitions of which none speaks have the rate of `scenario_started`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[TopicPartition, int] = {}
        self._general = mean_rate(host.settings) * RATE_SECONDS
        self._next_us = -1

    def look(self, created: Collection[TopicPartition] = ()) -> None:
        """Write a row if partitions get records at another rate than was known; look again at each change.

        The logs of partitions that were ``created`` now are empty, whatever a row said before.
        """
        host, now_us = self._host, self._host.clock.now_us
        logs = host.records.logs
        changed: list[TopicPartition] = []
        for partition in host.partitions:
            rate = logs.rate(partition, now_us)
            known = self._known.get(partition, self._general)
            if rate != known or (partition in created and (rate or self._general)):
                self._known[partition] = rate
                changed.append(partition)
        if changed:
            of = tuple(changed)
            ends = tuple(logs.end(partition, now_us) for partition in of)
            rates = tuple(self._known[partition] for partition in of)
            host.trace(Source.WORLD, RecordRatesChanged(host.group, names(of), ends, rates))
        change_us = logs.next_change_us(now_us)
        if change_us is not None and change_us != self._next_us:
            self._next_us = change_us
            host.clock.at(change_us, self.look)


#: The interval between two rows about a member that is behind.
REVIEW_US: Final = 10_000_000

#: If polls are further apart than this, a member that keeps up is behind between two polls.
_SMOOTH_US: Final = 1_000_000

#: No rate is so far above that of the log; else products with times might exceed 64 bits.
_FASTER: Final = 1_000_000


#: Partitions, positions, rates.
EmitRow = Callable[[tuple[str, ...], tuple[int, ...], tuple[int, ...]], None]


class ProcessingRates:
    """Writes the rows of one process. ``loop`` is the process's."""

    def __init__(self, clock: Timetable, loop: PollLoop, emit: EmitRow) -> None:
        self._clock = clock
        self._loop = loop
        self._emit = emit
        self._review = 0
        #: The rates of the logs of which the last row says that the member keeps up with them.
        self._said: dict[TopicPartition, int] = {}

    def changed(self, began: bool) -> None:
        """The process owns other partitions, or goes on after a pause. ``began``: positions are new."""
        if began or self._loop.rates(self._clock.now_us).keys() != self._said.keys():
            self._said = {}
            self._write()

    def stop(self) -> None:
        """The process is gone, or stands still."""
        self._review += 1
        self._said = {}

    def finish(self) -> None:
        """The run is over: where the process stands if it is behind."""
        if not self._said:
            self._write()
        self._review += 1

    def _again(self, review: int) -> None:
        if review == self._review:
            self._write()

    def _write(self) -> None:
        loop, now_us = self._loop, self._clock.now_us
        self._review += 1
        loop.forget(now_us)
        arriving = loop.rates(now_us)
        if not arriving:
            return
        next_us: int | None = now_us + REVIEW_US
        assert next_us is not None
        caught_up_us = loop.caught_up_us(now_us, next_us) if loop.longest_interval_us <= _SMOOTH_US else None
        positions = loop.positions(now_us)
        if caught_up_us is None:
            later = loop.positions(next_us)
            rates = {tp: (later[tp] - positions[tp]) * RECORD // REVIEW_US for tp in arriving}
            self._said = {}
            self._row(positions, rates)
        else:
            if arriving != self._said:
                self._row(positions, self._keeping_up(positions, arriving, caught_up_us - now_us))
            self._said = arriving
            sure_until_us = loop.sure_until_us(now_us)
            if sure_until_us:
                next_us = None if sure_until_us < 0 else sure_until_us
        if next_us is not None:
            self._clock.at(next_us, self._again, self._review)

    def _keeping_up(
        self, positions: dict[TopicPartition, int], arriving: dict[TopicPartition, int], within_us: int
    ) -> dict[TopicPartition, int]:
        """Rates that reach the ends of the logs within this time and stay there."""
        loop, now_us = self._loop, self._clock.now_us
        spare = (loop.capacity - sum(arriving.values())) // len(arriving)
        least = {rate: max(min(spare, 9 * rate + _FASTER), 1_000) for rate in set(arriving.values())}
        rates: dict[TopicPartition, int] = {}
        for (partition, rate), end in zip(arriving.items(), loop.log_ends(now_us), strict=True):
            missing = end - positions[partition]
            needed = missing * RECORD // within_us if within_us else 0
            rates[partition] = rate + (needed if needed > least[rate] else least[rate])
        return rates

    def _row(self, positions: dict[TopicPartition, int], rates: dict[TopicPartition, int]) -> None:
        partitions = tuple(rates)
        self._emit(
            names(partitions),
            tuple([positions[partition] for partition in partitions]),
            tuple([rates[partition] for partition in partitions]),
        )

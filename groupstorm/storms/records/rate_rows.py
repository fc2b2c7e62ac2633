"""The rows of the logs: one whenever partitions get records at another rate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RATE_SECONDS
from groupstorm.storms.records.positions import Records, names
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import mean_rate
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class Alarm(Protocol):
    """A clock that calls back; times in microseconds since the scenario began."""

    @property
    def now_us(self) -> int: ...

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None: ...


class Host(Protocol):
    """The world whose partitions get records."""

    settings: Settings
    group: str
    records: Records

    @property
    def clock(self) -> Alarm: ...

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

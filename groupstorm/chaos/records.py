"""The numbered records of a run: as many as the scenario's rates say, until its steps are done."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.runs.scenario_host import Timetable
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import rates_of
from groupstorm.testing.ledger import Ledger

#: How often records are written.
INTERVAL_S = 0.1


class Host(Protocol):
    """The run whose partitions get records."""

    settings: Settings

    @property
    def clock(self) -> Timetable: ...

    @property
    def partitions(self) -> Sequence[TopicPartition]: ...


class NumberedRecords:
    """Writes the records through the ledger. ``ends``: the offset behind the last one of each partition."""

    def __init__(self, host: Host, ledger: Ledger) -> None:
        self._host = host
        self._ledger = ledger
        self._logs = RecordLogs(lambda tp: rates_of(host.settings, tp.topic, tp.partition))
        self._written: dict[TopicPartition, int] = defaultdict(int)
        self._is_over = False
        self.ends: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many records have been written."""
        return sum(self._written.values())

    async def write(self) -> None:
        """Write until `end`."""
        while not self._is_over:
            for partition, count in self._due().items():
                await asyncio.to_thread(self._append, partition, count)
            await asyncio.sleep(INTERVAL_S)

    def end(self) -> None:
        """Write no more."""
        self._is_over = True

    def _due(self) -> Mapping[TopicPartition, int]:
        now_us = self._host.clock.now_us
        due = {one: self._logs.end(one, now_us) - self._written[one] for one in self._host.partitions}
        return {one: count for one, count in due.items() if count > 0}

    def _append(self, partition: TopicPartition, count: int) -> None:
        places = self._ledger.produce(partition.topic, count, partition=partition.partition)
        self._written[partition] += count
        self.ends[f"{places[-1].topic}-{partition.partition}"] = places[-1].offset + 1

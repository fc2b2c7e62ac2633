"""An application that keeps state of its own for each partition: how much every customer has ordered.

    python examples/partition_state.py localhost:9092 orders /var/lib/totals

Start as many as you like, on a folder that they share. A partition's totals live in one process at a
time: loaded when the partition comes, saved when it goes, together with the offset up to which they
count, so that no order counts twice or never, however the process ends. A rebalance stops nothing
but the partitions that move.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from groupstorm.clients.consumer import (
    ConsumerRecord,
    CooperativeConsumer,
    RebalanceListener,
    TopicPartition,
)

SAVE_EVERY = 1_000
"""Records of a partition that are read again, at most, after the process was killed."""


@dataclass
class Totals:
    """Amounts by customer of one partition, of all records before ``offset``."""

    offset: int = 0
    amounts: Counter[str] = field(default_factory=Counter)
    unsaved: int = 0

    def add(self, record: ConsumerRecord) -> None:
        self.amounts[(record.key or b"").decode()] += int(record.value or 0)
        self.offset = record.offset + 1
        self.unsaved += 1


class Ledger(RebalanceListener):
    """The totals of the partitions that this process owns."""

    def __init__(self, folder: Path) -> None:
        self.consumer: CooperativeConsumer | None = None
        self._folder = folder
        self._totals: dict[TopicPartition, Totals] = {}

    @property
    def counted(self) -> int:
        """How many records the totals are made of."""
        return sum(totals.offset for totals in self._totals.values())

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        assert self.consumer is not None
        for partition in partitions:
            totals = await asyncio.to_thread(load, self._path(partition))
            self._totals[partition] = totals
            self.consumer.seek(partition, totals.offset)

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            await self._save(partition, self._totals.pop(partition))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """They may have another owner, who has begun from what was saved: ours is worth nothing."""
        for partition in partitions:
            del self._totals[partition]

    async def add(self, record: ConsumerRecord) -> None:
        totals = self._totals[record.topic_partition]
        totals.add(record)
        if totals.unsaved >= SAVE_EVERY:
            await self._save(record.topic_partition, totals)

    async def _save(self, partition: TopicPartition, totals: Totals) -> None:
        await asyncio.to_thread(save, self._path(partition), totals)
        totals.unsaved = 0

    def _path(self, partition: TopicPartition) -> Path:
        return self._folder / f"{partition}.json"


def load(path: Path) -> Totals:
    try:
        saved = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Totals()
    return Totals(saved["offset"], Counter(saved["amounts"]))


def save(path: Path, totals: Totals) -> None:
    """All of it or nothing: a file of another name, which then takes the place of the old one."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"offset": totals.offset, "amounts": totals.amounts}), "utf-8")
    partial.replace(path)


async def run(bootstrap_servers: str, topic: str, ledger: Ledger, stop: asyncio.Event) -> None:
    """Count until ``stop`` is set."""
    consumer = CooperativeConsumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        group_id="totals",
        listener=ledger,
        enable_auto_commit=False,  # the offsets stand beside the totals
        auto_offset_reset="earliest",
    )
    ledger.consumer = consumer

    async def close() -> None:
        await stop.wait()
        await consumer.close()

    async with consumer:
        closing = asyncio.create_task(close())
        try:
            async for record in consumer:
                await ledger.add(record)
        finally:
            closing.cancel()


async def main(bootstrap_servers: str, topic: str, folder: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    await run(bootstrap_servers, topic, Ledger(Path(folder)), stop)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))

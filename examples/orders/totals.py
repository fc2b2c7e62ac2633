"""A service that keeps, per customer, the total of all orders, with aiokafka and a store.

`FirstTotalsService` is how one writes it at first. Schedules found that its totals are wrong after partitions
have gone to another instance and come back; `TotalsService` is what became of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition


class Store:
    """Stands for a database: per partition the totals, and the offset behind the last order in them."""

    def __init__(self, latency_s: float = 0.05) -> None:
        self._latency_s = latency_s
        self._saved: dict[TopicPartition, tuple[int, Mapping[str, int]]] = {}

    async def load(self, partition: TopicPartition) -> tuple[int, Mapping[str, int]]:
        await asyncio.sleep(self._latency_s)
        return self._saved.get(partition, (0, {}))

    async def save(self, partition: TopicPartition, offset: int, totals: Mapping[str, int]) -> None:
        """Totals of fewer orders than are saved change nothing: they are those of a former owner."""
        await asyncio.sleep(self._latency_s)
        if offset > self._saved.get(partition, (0, {}))[0]:
            self._saved[partition] = offset, dict(totals)

    def totals(self) -> Counter[str]:
        """Over all partitions."""
        together: Counter[str] = Counter()
        for _, totals in self._saved.values():
            together.update(totals)
        return together


class FirstTotalsService(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka counts as untyped
    """Loads the totals of a partition once: after a rebalance most partitions are one's own again, and what
    is in memory need not be loaded. But another owner may have counted orders meanwhile."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str, store: Store) -> None:
        self._consumer = consumer
        self._topic = topic
        self._store = store
        self._totals: dict[TopicPartition, Counter[str]] = {}

    async def run(self) -> None:
        self._consumer.subscribe([self._topic], listener=self)
        await self._consumer.start()
        try:
            async for record in self._consumer:
                customer, _, amount = record.value.decode().partition(" ")
                partition = TopicPartition(record.topic, record.partition)
                totals = self._totals[partition]
                totals[customer] += int(amount)
                await self._store.save(partition, record.offset + 1, totals)
        finally:
            await self._consumer.stop()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        for partition in assigned:
            offset, totals = await self._store.load(partition)
            self._totals.setdefault(partition, Counter(totals))
            self._consumer.seek(partition, offset)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Every order is saved as soon as it is counted."""


class TotalsService(FirstTotalsService):
    """Drops the totals of partitions that go: their next owner counts on, and may be this instance later."""

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        for partition in revoked:
            self._totals.pop(partition, None)

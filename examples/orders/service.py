"""A service that reads orders and books them, several at a time, with aiokafka.

`FirstOrderService` is how one writes it at first. Its tests found that it loses orders whenever partitions
are taken away from it; `OrderService` is what became of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError

log = logging.getLogger(__name__)

#: Books one order; may take its time.
Book = Callable[[str], Awaitable[None]]


class FirstOrderService(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka counts as untyped
    """Loses orders: when partitions are revoked it commits how far it has *read*, which is further than it
    has booked, and gives up the orders in flight. The next owner begins behind them."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str, book: Book, at_once: int = 8) -> None:
        """``at_once``: so many orders are in flight at most."""
        self._consumer = consumer
        self._topic = topic
        self._book = book
        self._slots = asyncio.Semaphore(at_once)
        self._in_flight: dict[TopicPartition, dict[int, asyncio.Task[None]]] = defaultdict(dict)
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._consumer.subscribe([self._topic], listener=self)
        await self._consumer.start()
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        """Read no more, give up all partitions, leave the group."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.on_partitions_revoked(self._consumer.assignment())
        await self._consumer.stop()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        log.info("assigned: %s", assigned)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if revoked:
            await self._consumer.commit()
        for partition in revoked:
            for task in self._in_flight[partition].values():
                task.cancel()

    async def _read(self) -> None:
        while True:
            await self._slots.acquire()
            record = await self._consumer.getone()
            partition = TopicPartition(record.topic, record.partition)
            task = asyncio.create_task(self._handle(partition, record.offset, record.value.decode()))
            self._in_flight[partition][record.offset] = task

    async def _handle(self, partition: TopicPartition, offset: int, order: str) -> None:
        try:
            await self._book(order)
        finally:
            del self._in_flight[partition][offset]
            self._slots.release()


class OrderService(FirstOrderService):
    """Loses nothing: before partitions go it finishes what is in flight there, and it commits how far it has
    booked. An order may be booked twice, when a session ends in the middle of it."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str, book: Book, at_once: int = 8) -> None:
        super().__init__(consumer, topic, book, at_once)
        #: Offsets of orders that were read and are not booked; the offset behind the last one that was read.
        self._unbooked: dict[TopicPartition, set[int]] = defaultdict(set)
        self._next: dict[TopicPartition, int] = {}

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Partitions begin anew, whatever was read of them before."""
        await super().on_partitions_assigned(assigned)
        for partition in assigned:
            self._unbooked.pop(partition, None)
            self._next.pop(partition, None)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        tasks = [task for partition in revoked for task in self._in_flight[partition].values()]
        await asyncio.gather(*tasks, return_exceptions=True)
        offsets = {
            partition: min(self._unbooked[partition], default=self._next[partition])
            for partition in revoked
            if partition in self._next
        }
        if offsets:
            try:
                await self._consumer.commit(offsets)
            except CommitFailedError:
                # the session ended meanwhile: the next owner books these orders again
                log.warning("not committed: %s", offsets)

    async def _handle(self, partition: TopicPartition, offset: int, order: str) -> None:
        self._unbooked[partition].add(offset)
        self._next[partition] = offset + 1
        await super()._handle(partition, offset, order)
        self._unbooked[partition].discard(offset)

"""Applications for tests: they read with a consumer and record records, listener calls and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pytest

from groupstorm.clients.consumer import (
    ConsumerRecord,
    CooperativeConsumer,
    RebalanceListener,
    TopicPartition,
)
from groupstorm.trace.events import member as events

PATIENCE_S = 60.0
TOPIC = "orders"
GROUP = "billing"
PARTITIONS = 6

either_protocol = pytest.mark.parametrize("protocol", ["classic", "consumer"])

#: Members notice a round at once. Their sessions outlast what a busy machine may stand still for.
QUICK: dict[str, Any] = {
    "heartbeat_interval_ms": 30,
    "session_timeout_ms": 15_000,
    "retry_backoff_ms": 10,
    "fetch_max_wait_ms": 50,
    "auto_offset_reset": "earliest",
}
#: The options of `QUICK` that the broker has in the consumer protocol.
_OF_THE_BROKER = ("heartbeat_interval_ms", "session_timeout_ms")


def quick(**options: Any) -> dict[str, Any]:
    """``options`` over those of `QUICK`, of either group protocol."""
    names = _OF_THE_BROKER if options.get("group_protocol") == "consumer" else ()
    return {name: value for name, value in QUICK.items() if name not in names} | options


def partitions(*numbers: int, topic: str = TOPIC) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}


async def until(condition: Callable[[], bool], what: str = "") -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.002)
    except TimeoutError:
        pytest.fail(f"after {PATIENCE_S} s still not: {what or condition}")


class RecordingListener(RebalanceListener):
    """A listener that records its calls, (method, partitions)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []
        self.owned: set[TopicPartition] = set()
        self.before_return: Callable[[str, set[TopicPartition]], Any] | None = None

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        await self._note("assigned", partitions)

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        await self._note("revoked", partitions)

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        await self._note("lost", partitions)

    async def _note(self, method: str, partitions: Collection[TopicPartition]) -> None:
        self.calls.append((method, set(partitions)))
        if self.before_return is not None:
            await self.before_return(method, set(partitions))
        if method == "assigned":
            assert self.owned.isdisjoint(partitions)
            self.owned |= set(partitions)
        else:
            assert self.owned >= set(partitions)
            self.owned -= set(partitions)

    @property
    def changes(self) -> list[tuple[str, set[TopicPartition]]]:
        """The calls with at least one partition."""
        return [call for call in self.calls if call[1]]


class ConsumerApplication:
    """A consumer, read with ``async for`` by a task of its own until `stop`."""

    def __init__(self, address: str, name: str, topics: Sequence[str] = (TOPIC,), **options: Any) -> None:
        self.listener = RecordingListener()
        self.is_classic = options.get("group_protocol") != "consumer"
        self.emitted: list[tuple[int, events.Event]] = []
        self.records: list[ConsumerRecord] = []
        self.on_record: Callable[[ConsumerRecord], Any] | None = None
        self.consumer = CooperativeConsumer(
            *topics,
            bootstrap_servers=address,
            group_id=GROUP,
            listener=self.listener,
            on_event=lambda time_us, event: self.emitted.append((time_us, event)),
            **quick(**{"client_id": name, **options}),
        )
        self._reads: asyncio.Task[None] | None = None

    def start(self) -> ConsumerApplication:
        self._reads = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        async with self.consumer:
            async for record in self.consumer:
                self.records.append(record)
                if self.on_record is not None:
                    await self.on_record(record)

    async def stop(self, **how: Any) -> None:
        """Close the consumer. Raises the exception of the reading task."""
        await self.consumer.close(**how)
        if self._reads is not None:
            await self._reads

    @property
    def ended(self) -> bool:
        """Whether the reading task has ended."""
        return self._reads is not None and self._reads.done()

    async def give_up(self) -> None:
        """End the application at the end of the test."""
        await self.consumer.close()
        if self._reads is not None:
            self._reads.cancel()
            await asyncio.gather(self._reads, return_exceptions=True)

    @property
    def owned(self) -> set[TopicPartition]:
        """The partitions by the listener's calls."""
        return set(self.listener.owned)

    @property
    def offsets(self) -> dict[int, list[int]]:
        """The offsets that were read of each partition, in order."""
        read: dict[int, list[int]] = {}
        for record in self.records:
            read.setdefault(record.partition, []).append(record.offset)
        return read

    def of(self, kind: type) -> list[Any]:
        return [event for _, event in self.emitted if isinstance(event, kind)]

    @property
    def generation(self) -> int | None:
        """The generation of the last onPartitionsAssigned; None while the member has to join (again)."""
        found = None
        for _, event in self.emitted:
            if isinstance(event, events.PartitionsAssigned):
                found = event.generation
            elif isinstance(event, events.RejoinRequested):
                found = None
        return found


def is_shared_out(applications: Iterable[ConsumerApplication], count: int = PARTITIONS) -> bool:
    """Every partition has one owner, the shares are even, and all are in the same generation.

    A member of the consumer protocol is not told of an epoch in which its own partitions stay.
    """
    owned = [partition for one in applications for partition in one.owned]
    shares = [len(one.owned) for one in applications]
    generations = {one.generation for one in applications if one.is_classic}
    return (
        len(owned) == len(set(owned)) == count
        and max(shares) - min(shares) <= 1
        and len(generations) <= 1
        and None not in generations
        and all(one.owned == one.consumer.assignment for one in applications)
    )


async def shared_out(*applications: ConsumerApplication) -> tuple[ConsumerApplication, ...]:
    """Wait until they share all partitions."""
    await until(lambda: is_shared_out(applications))
    return applications

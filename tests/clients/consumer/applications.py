"""Applications around consumers, for tests: they read, and note what they were given and told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pytest

from groupstorm.clients import events
from groupstorm.clients.consumer import (
    ConsumerRecord,
    CooperativeConsumer,
    RebalanceListener,
    TopicPartition,
)
from groupstorm.clients.standing import MemberState

PATIENCE_S = 20.0
TOPIC = "orders"
GROUP = "billing"
PARTITIONS = 6

#: Rounds are noticed at once, and a member that is silent is missed soon.
QUICK: dict[str, Any] = {
    "heartbeat_interval_ms": 30,
    "session_timeout_ms": 2_000,
    "retry_backoff_ms": 10,
    "fetch_max_wait_ms": 50,
    "auto_offset_reset": "earliest",
}


def partitions(*numbers: int, topic: str = TOPIC) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}


async def until(condition: Callable[[], bool], what: str = "") -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.002)
    except TimeoutError:
        pytest.fail(f"after {PATIENCE_S} s still not: {what or condition}")


class Notes(RebalanceListener):
    """A listener that notes its calls, (method, partitions)."""

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
        """The calls that were about anything."""
        return [call for call in self.calls if call[1]]


class Application:
    """A consumer, read with ``async for`` by a task of its own until `stop`."""

    def __init__(self, address: str, name: str, topics: Sequence[str] = (TOPIC,), **options: Any) -> None:
        self.notes = Notes()
        self.told: list[tuple[int, events.Event]] = []
        self.records: list[ConsumerRecord] = []
        self.on_record: Callable[[ConsumerRecord], Any] | None = None
        self.consumer = CooperativeConsumer(
            *topics,
            bootstrap_servers=address,
            group_id=GROUP,
            listener=self.notes,
            on_event=lambda time_us, event: self.told.append((time_us, event)),
            **{**QUICK, "client_id": name, **options},
        )
        self._reads: asyncio.Task[None] | None = None

    def start(self) -> Application:
        self._reads = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        async with self.consumer:
            async for record in self.consumer:
                self.records.append(record)
                if self.on_record is not None:
                    await self.on_record(record)

    async def stop(self, **how: Any) -> None:
        """Raises what its reading has raised."""
        await self.consumer.close(**how)
        if self._reads is not None:
            await self._reads

    @property
    def ended(self) -> bool:
        """Its reading is over."""
        return self._reads is not None and self._reads.done()

    async def give_up(self) -> None:
        """The end of the test, whatever it is doing."""
        await self.consumer.close()
        if self._reads is not None:
            self._reads.cancel()
            await asyncio.gather(self._reads, return_exceptions=True)

    @property
    def owned(self) -> set[TopicPartition]:
        """As the listener was told."""
        return set(self.notes.owned)

    @property
    def offsets(self) -> dict[int, list[int]]:
        """What was read of each partition, in order."""
        read: dict[int, list[int]] = {}
        for record in self.records:
            read.setdefault(record.partition, []).append(record.offset)
        return read

    def of(self, kind: type) -> list[Any]:
        return [event for _, event in self.told if isinstance(event, kind)]

    @property
    def generation(self) -> int | None:
        """None while it joins, or has to."""
        membership = self.consumer._member.membership
        if membership.state is not MemberState.STABLE or membership.rejoin_needed:
            return None
        return membership.generation.id


def is_shared_out(applications: Iterable[Application], count: int = PARTITIONS) -> bool:
    """Every partition has one owner, the shares are even, and all are in the same generation."""
    owned = [partition for one in applications for partition in one.owned]
    shares = [len(one.owned) for one in applications]
    generations = {one.generation for one in applications}
    return (
        len(owned) == len(set(owned)) == count
        and max(shares) - min(shares) <= 1
        and len(generations) == 1
        and None not in generations
        and all(one.owned == one.consumer.assignment for one in applications)
    )

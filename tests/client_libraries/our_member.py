"""`CooperativeConsumer` as one of the members of `members.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from groupstorm.clients.consumer import CommitFailed, CooperativeConsumer, RebalanceListener, TopicPartition
from tests.client_libraries.members import CONSUMER, HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Member, Notes


class NotingListener(RebalanceListener):
    def __init__(self, notes: Notes, cooperative: bool) -> None:
        self._notes = notes
        self._cooperative = cooperative

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._notes.assigned(partitions, self._cooperative)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._notes.revoked(partitions)


class OurMember(Member):
    def _run(self) -> None:
        asyncio.run(self._consume())

    def _options(self) -> dict[str, Any]:
        if self._protocol == CONSUMER:
            return {"group_protocol": CONSUMER}
        return {
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
            "partition_assignment_strategy": self._assignor.split(","),
        }

    async def _consume(self) -> None:
        consumer = CooperativeConsumer(
            *self._topics,
            bootstrap_servers=self._address,
            group_id=self._group,
            group_instance_id=self._instance,
            listener=NotingListener(self.notes, self.cooperative),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **self._options(),
        )
        async with consumer:
            while not self._stopping.is_set():
                polled = await consumer.getmany(timeout_ms=50)
                for partition, records in polled.items():
                    read = ((one.offset, (one.value or b"").decode()) for one in records)
                    self.notes.read(partition.partition, read)
                if polled:
                    await _commit(consumer)


async def _commit(consumer: CooperativeConsumer) -> None:
    try:
        await consumer.commit()
    except CommitFailed:
        return  # the partition's next owner reads these records again

"""Offsets of a log by time, its beginning and its end, for the application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import FetchRefused
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.logs import ask_leader, by_leader
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error

#: Errors after which the client looks the leader up and asks again (OffsetFetcherUtils).
LEADER_MOVED = frozenset(
    {
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.LEADER_NOT_AVAILABLE,
        Error.REPLICA_NOT_AVAILABLE,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.OFFSET_NOT_AVAILABLE,
        Error.KAFKA_STORAGE_ERROR,
    }
)


class OffsetAndTimestamp(NamedTuple):
    """The first offset at or after a time, and the time of its record; both -1 if there is none."""

    offset: int
    timestamp: int


class LogOffsets:
    """Asks until every partition's leader has answered; the caller sets the time limit."""

    def __init__(self, member: WireConsumer, read_committed: bool) -> None:
        self._member = member
        self._read_committed = read_committed

    async def find(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Partition -> milliseconds, or `OffsetReset`'s. Raises FetchRefused."""
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        retries = Retries(self._member.config.retry_backoff_ms)
        while True:
            missing = {partition: at for partition, at in asked.items() if partition not in found}
            for node_id, led in by_leader(self._member.cluster, missing).items():
                try:
                    found.update(await self._ask(node_id, led))
                except ConnectionLost:
                    continue  # its partitions stay missing
            if found.keys() >= asked.keys():
                return found
            self._member.refresh_topics()
            await retries.pause()

    async def _ask(
        self, node_id: int, asked: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        timeout_ms = self._member.config.request_timeout_ms
        found = {}
        for partition, error, offset, timestamp in await ask_leader(
            self._member.cluster, node_id, asked, self._read_committed, timeout_ms
        ):
            if error is Error.NONE:
                found[partition] = OffsetAndTimestamp(offset, timestamp)
            elif error not in LEADER_MOVED:
                raise FetchRefused(partition, error.name)
        return found

"""Offsets of a log by time, its beginning and its end: ListOffsets, sent to the partitions' leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.errors import FetchRefused
from groupstorm.clients.wire.backoff import backoff_ms
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.offsets import LIST_OFFSETS, list_offsets
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

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: ClusterClient,
        read_committed: bool,
        refresh_topics: Callable[[], None],
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._read_committed = read_committed
        self._refresh_topics = refresh_topics

    async def find(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Partition -> milliseconds, or `OffsetReset`'s. Raises FetchRefused."""
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        attempts = 0
        while missing := {partition: at for partition, at in asked.items() if partition not in found}:
            if attempts:
                self._refresh_topics()
                await asyncio.sleep(backoff_ms(attempts - 1, self._config.retry_backoff_ms) / 1000)
            attempts += 1
            for node_id, partitions in self._led(missing).items():
                try:
                    found.update(await self._ask(node_id, partitions))
                except ConnectionLost:
                    continue  # its partitions stay missing
        return found

    def _led(self, asked: Mapping[TopicPartition, int]) -> dict[int, dict[TopicPartition, int]]:
        led: dict[int, dict[TopicPartition, int]] = {}
        for partition, at in asked.items():
            leader = self._cluster.leader(partition)
            if leader is not None:
                led.setdefault(leader.node_id, {})[partition] = at
        return led

    async def _ask(
        self, node_id: int, asked: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        build = list_offsets(self._cluster, asked, self._read_committed)
        answer = await self._cluster.ask_node(node_id, LIST_OFFSETS, build, self._config.request_timeout_ms)
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                partition, error = TopicPartition(topic.name, one.partition_index), Error(one.error_code)
                if error is Error.NONE:
                    found[partition] = OffsetAndTimestamp(one.offset, one.timestamp)
                elif error not in LEADER_MOVED:
                    raise FetchRefused(partition, error.name)
        return found

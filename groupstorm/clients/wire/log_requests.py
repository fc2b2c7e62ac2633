"""Requests to the leaders of partitions: offsets of their logs (ListOffsets) and records (Fetch)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import Build, ClientApi, RequestTypes
from groupstorm.clients.wire.positions import Position, by_topic
from groupstorm.coordinator.errors import Error

LIST_OFFSETS = ClientApi(2, "ListOffsets", 4, 7)
#: Topics by name: from version 13 on they are asked for by id (KIP-516).
FETCH = ClientApi(1, "Fetch", 4, 12)

_CONSUMER = -1  # the replica id of a client that is no broker
#: No fetch session (KIP-227): every request names all of its partitions.
_NO_SESSION, _FINAL_EPOCH = 0, -1


class OffsetReset(IntEnum):
    """auto.offset.reset, as ListOffsets names the two ends of a log."""

    LATEST = -1
    EARLIEST = -2


class ListedOffset(NamedTuple):
    """A leader's answer for one partition: the first offset at or after the time, and its record's time."""

    partition: TopicPartition
    error: Error
    offset: int
    timestamp: int


def list_offsets(cluster: ClusterClient, asked: Mapping[TopicPartition, int], read_committed: bool) -> Build:
    """A ListOffsets request: partition -> time in milliseconds, or what `OffsetReset` names."""

    def partition(types: RequestTypes, topic: str, number: int) -> Any:
        return types.make(
            "ListOffsetsPartition",
            partition_index=number,
            current_leader_epoch=_leader_epoch(cluster, TopicPartition(topic, number)),
            timestamp=asked[TopicPartition(topic, number)],
        )

    def build(types: RequestTypes) -> Any:
        topics = tuple(
            types.make(
                "ListOffsetsTopic",
                name=topic,
                partitions=tuple(partition(types, topic, number) for number in numbers),
            )
            for topic, numbers in by_topic(asked).items()
        )
        return types.make(
            types.root.__name__, replica_id=_CONSUMER, isolation_level=int(read_committed), topics=topics
        )

    return build


async def ask_leader(
    cluster: ClusterClient,
    node_id: int,
    asked: Mapping[TopicPartition, int],
    read_committed: bool,
    timeout_ms: int,
) -> Iterator[ListedOffset]:
    """Ask the leader of these partitions. Raises ConnectionLost."""
    build = list_offsets(cluster, asked, read_committed)
    answer = await cluster.ask_node(node_id, LIST_OFFSETS, build, timeout_ms)
    return (
        ListedOffset(
            TopicPartition(topic.name, one.partition_index), Error(one.error_code), one.offset, one.timestamp
        )
        for topic in answer.topics
        for one in topic.partitions
    )


def by_leader(
    cluster: ClusterClient, asked: Mapping[TopicPartition, int]
) -> dict[int, dict[TopicPartition, int]]:
    """The part of ``asked`` that each broker leads; partitions without a leader are left out."""
    led: dict[int, dict[TopicPartition, int]] = {}
    for partition, at in asked.items():
        leader = cluster.leader(partition)
        if leader is not None:
            led.setdefault(leader.node_id, {})[partition] = at
    return led


def _leader_epoch(cluster: ClusterClient, partition: TopicPartition) -> int:
    leader = cluster.leader(partition)
    return -1 if leader is None else leader.epoch


class FetchSizes(NamedTuple):
    """The size of a broker's answer, and the longest wait for ``min_bytes``."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    max_partition_bytes: int


def fetch_request(
    cluster: ClusterClient,
    plan: Mapping[TopicPartition, Position],
    sizes: FetchSizes,
    read_committed: bool,
) -> Build:
    """A Fetch request for these partitions, each from its position on."""
    by_topic: dict[str, dict[int, Position]] = {}
    for (topic, number), position in plan.items():
        by_topic.setdefault(topic, {})[number] = position

    def partitions(types: RequestTypes, topic: str, positions: Mapping[int, Position]) -> tuple[Any, ...]:
        return tuple(
            types.make(
                "FetchPartition",
                partition=number,
                current_leader_epoch=_leader_epoch(cluster, TopicPartition(topic, number)),
                fetch_offset=position.offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=sizes.max_partition_bytes,
            )
            for number, position in positions.items()
        )

    def build(types: RequestTypes) -> Any:
        topics = tuple(
            types.make("FetchTopic", topic=topic, partitions=partitions(types, topic, positions))
            for topic, positions in by_topic.items()
        )
        return types.make(
            types.root.__name__,
            cluster_id=None,
            replica_id=_CONSUMER,
            max_wait=datetime.timedelta(milliseconds=sizes.max_wait_ms),
            min_bytes=sizes.min_bytes,
            max_bytes=sizes.max_bytes,
            isolation_level=int(read_committed),
            session_id=_NO_SESSION,
            session_epoch=_FINAL_EPOCH,
            topics=topics,
            forgotten_topics_data=(),
            rack_id="",
        )

    return build

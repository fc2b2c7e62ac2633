"""Offsets of a log by time, its beginning and its end: ListOffsets, sent to the partitions' leaders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import Build, ClientApi, RequestTypes
from groupstorm.clients.wire.positions import by_topic
from groupstorm.coordinator.errors import Error

LIST_OFFSETS = ClientApi(2, "ListOffsets", 4, 7)

_CONSUMER = -1  # the replica id of a client that is no broker


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
        leader = cluster.leader(TopicPartition(topic, number))
        return types.make(
            "ListOffsetsPartition",
            partition_index=number,
            current_leader_epoch=-1 if leader is None else leader.epoch,
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
    """What the leader of these partitions answers. Raises ConnectionLost."""
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

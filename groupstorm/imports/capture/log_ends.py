"""Asks the leaders of a group's partitions where their logs end."""

from __future__ import annotations

from collections.abc import Collection

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.log_requests import LIST_OFFSETS, OffsetReset, list_offsets
from groupstorm.coordinator.errors import Error


async def log_ends(cluster: ClusterClient, names: Collection[str]) -> dict[str, int]:
    """Partition, as Kafka prints it -> end of its log; without those that no leader tells.

    Raises ConnectionLost.
    """
    partitions = [_partition(name) for name in sorted(names)]
    if any(cluster.leader(partition) is None for partition in partitions):
        await cluster.refresh({partition.topic for partition in partitions})
    led: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = cluster.leader(partition)
        if leader is not None:
            led.setdefault(leader.node_id, []).append(partition)
    ends: dict[str, int] = {}
    for node_id, asked in led.items():
        build = list_offsets(cluster, dict.fromkeys(asked, int(OffsetReset.LATEST)), read_committed=False)
        response = await cluster.ask_node(node_id, LIST_OFFSETS, build, cluster.request_timeout_ms)
        ends |= {
            f"{topic.name}-{partition.partition_index}": partition.offset
            for topic in response.topics
            for partition in topic.partitions
            if Error(partition.error_code) is Error.NONE
        }
    return ends


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))

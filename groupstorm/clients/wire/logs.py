"""The logs of topics, which the leaders of partitions hold: requests for offsets (ListOffsets) and records
(Fetch), and for tests and tools all records of a log, and appending to it.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import Build, ClientApi, ConnectionLost, fields
from groupstorm.clients.wire.positions import Position, by_topic
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError

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
    topics = [
        {
            "name": topic,
            "partitions": [
                {
                    "partition_index": number,
                    "current_leader_epoch": _leader_epoch(cluster, TopicPartition(topic, number)),
                    "timestamp": asked[TopicPartition(topic, number)],
                }
                for number in numbers
            ],
        }
        for topic, numbers in by_topic(asked).items()
    ]
    return fields(replica_id=_CONSUMER, isolation_level=int(read_committed), topics=topics)


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
    by_topic: dict[str, list[dict[str, int]]] = {}
    for partition, position in plan.items():
        asked = {
            "partition": partition.partition,
            "current_leader_epoch": _leader_epoch(cluster, partition),
            "fetch_offset": position.offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": sizes.max_partition_bytes,
        }
        by_topic.setdefault(partition.topic, []).append(asked)
    return fields(
        cluster_id=None,
        replica_id=_CONSUMER,
        max_wait=datetime.timedelta(milliseconds=sizes.max_wait_ms),
        min_bytes=sizes.min_bytes,
        max_bytes=sizes.max_bytes,
        isolation_level=int(read_committed),
        session_id=_NO_SESSION,
        session_epoch=_FINAL_EPOCH,
        topics=[{"topic": topic, "partitions": partitions} for topic, partitions in by_topic.items()],
        forgotten_topics_data=(),
        rack_id="",
    )


PRODUCE = ClientApi(0, "Produce", 3, 12)

_ALL = -1
#: A leader that refuses to be one is asked so often, for about ten seconds.
_ATTEMPTS, _RETRY_MS = 12, 100
_TIMEOUT = datetime.timedelta(seconds=30)
#: A fetch waits so long for records that are there: replication may hold them back for a moment.
_MAX_WAIT_MS = 500
_SIZES = FetchSizes(
    min_bytes=1, max_bytes=50_000_000, max_wait_ms=_MAX_WAIT_MS, max_partition_bytes=50_000_000
)


class FetchedBatches(NamedTuple):
    """The batches of one fetch. ``aborted``: producer id and first offset of each aborted transaction."""

    data: bytes
    aborted: tuple[tuple[int, int], ...]


async def log_ends(
    cluster: ClusterClient, topics: Collection[str], read_committed: bool = False
) -> dict[TopicPartition, tuple[int, int]]:
    """The first offset of each partition of the topics that exist, and the offset of its next record.

    Raises ConnectionLost, and InputError if a leader refuses.
    """
    if not topics:
        return {}
    await cluster.refresh(topics)
    partitions = [
        TopicPartition(topic, number) for topic in topics for number in range(cluster.topics.get(topic, 0))
    ]
    begins = await _offsets(cluster, partitions, OffsetReset.EARLIEST, read_committed)
    ends = await _offsets(cluster, partitions, OffsetReset.LATEST, read_committed)
    return {one: (begins[one], ends[one]) for one in partitions}


async def _offsets(
    cluster: ClusterClient, partitions: Collection[TopicPartition], at: OffsetReset, read_committed: bool
) -> dict[TopicPartition, int]:
    for partition in partitions:
        _ = _leader(cluster, partition)  # raises ConnectionLost if it has none
    found = {}
    for node_id, asked in by_leader(cluster, dict.fromkeys(partitions, int(at))).items():
        listed = await ask_leader(cluster, node_id, asked, read_committed, cluster.request_timeout_ms)
        for partition, error, offset, _ in listed:
            _check(partition, error)
            found[partition] = offset
    return found


async def fetch_batches(
    cluster: ClusterClient, partition: TopicPartition, offset: int, read_committed: bool
) -> FetchedBatches:
    """Fetch once from the partition's leader, from ``offset`` on.

    Raises ConnectionLost, and InputError if it refuses.
    """
    build = fetch_request(cluster, {partition: Position(offset)}, _SIZES, read_committed)
    answer = await cluster.ask_node(
        _leader(cluster, partition), FETCH, build, cluster.request_timeout_ms + _MAX_WAIT_MS
    )
    _check(partition, getattr(answer, "error_code", Error.NONE))
    ((data,),) = ([*topic.partitions] for topic in answer.responses)
    _check(partition, data.error_code)
    aborted = tuple((one.producer_id, one.first_offset) for one in data.aborted_transactions or ())
    return FetchedBatches(bytes(data.records or b""), aborted)


async def append_batch(cluster: ClusterClient, partition: TopicPartition, batch: bytes) -> int:
    """Append a record batch; return the offset of its first record.

    A new topic's leader may be known to others before it knows itself: it is asked again for a while. Raises
    ConnectionLost, and InputError if the leader refuses it.
    """
    data = {"index": partition.partition, "records": batch}
    build = fields(
        transactional_id=None,
        acks=_ALL,
        timeout=_TIMEOUT,
        topic_data=[{"name": partition.topic, "partition_data": [data]}],
    )
    retries = Retries(_RETRY_MS)
    for _ in range(_ATTEMPTS):
        leader = _leader(cluster, partition)
        answer = await cluster.ask_node(leader, PRODUCE, build, cluster.request_timeout_ms)
        ((found,),) = ([*one.partition_responses] for one in answer.responses)
        if Error(found.error_code) is not Error.NOT_LEADER_OR_FOLLOWER:
            break
        await retries.pause()
        await cluster.refresh([partition.topic])
    _check(partition, found.error_code)
    offset: int = found.base_offset
    return offset


def _leader(cluster: ClusterClient, partition: TopicPartition) -> int:
    leader = cluster.leader(partition)
    if leader is None:
        raise ConnectionLost(f"{partition.topic}-{partition.partition} has no leader")
    return leader.node_id


def _check(partition: TopicPartition, code: int) -> None:
    if Error(code) is not Error.NONE:
        raise InputError(f"{partition.topic}-{partition.partition}: the cluster says {Error(code).name}")

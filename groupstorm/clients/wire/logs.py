"""The logs of topics, for tests and tools: their ends, all that they hold, and appending to them."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ClientApi, ConnectionLost, RequestTypes
from groupstorm.clients.wire.log_requests import FETCH, FetchSizes, OffsetReset, ask_leader, fetch_request
from groupstorm.clients.wire.positions import Position
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError

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
    cluster: ClusterClient, partitions: Iterable[TopicPartition], at: OffsetReset, read_committed: bool
) -> dict[TopicPartition, int]:
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for partition in partitions:
        by_leader.setdefault(_leader(cluster, partition), {})[partition] = int(at)
    found = {}
    for node_id, asked in by_leader.items():
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
    topic, number = partition

    def build(types: RequestTypes) -> Any:
        data = types.make("PartitionProduceData", index=number, records=batch)
        return types.make(
            types.root.__name__,
            transactional_id=None,
            acks=_ALL,
            timeout=_TIMEOUT,
            topic_data=(types.make("TopicProduceData", name=topic, partition_data=(data,)),),
        )

    retries = Retries(_RETRY_MS)
    for _ in range(_ATTEMPTS):
        leader = _leader(cluster, partition)
        answer = await cluster.ask_node(leader, PRODUCE, build, cluster.request_timeout_ms)
        ((found,),) = ([*one.partition_responses] for one in answer.responses)
        if Error(found.error_code) is not Error.NOT_LEADER_OR_FOLLOWER:
            break
        await retries.pause()
        await cluster.refresh([topic])
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

"""The consumer's requests to the leaders of its partitions: offsets by time, and fetches of records.

aiokafka's own fetcher is not used: it belongs to one assignment and drops its fetched records with the next.
Here a rebalance touches only the partitions that come or go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import ConsumerError, FetchRefused, OffsetOutOfRange
from groupstorm.clients.consumer.records import AbortedRecords, Decoding, FetchBuffer, FetchedRecords
from groupstorm.clients.wire.cluster import LeaderConnections
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.logs import FETCH, FetchSizes, OffsetReset, ask_leader, by_leader, fetch_request
from groupstorm.clients.wire.positions import Position
from groupstorm.clients.wire.waiting import ChangeNotifier, Retries
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


async def find_offsets(
    member: WireConsumer, asked: Mapping[TopicPartition, int], read_committed: bool
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Partition -> milliseconds, or `OffsetReset`'s: ask until every partition's leader has answered.

    The caller sets the time limit. Raises FetchRefused.
    """
    cluster, timeout_ms = member.cluster, member.config.request_timeout_ms
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    retries = Retries(member.config.retry_backoff_ms)
    while True:
        missing = {partition: at for partition, at in asked.items() if partition not in found}
        for node_id, led in by_leader(cluster, missing).items():
            try:
                listed = await ask_leader(cluster, node_id, led, read_committed, timeout_ms)
            except ConnectionLost:
                continue  # its partitions stay missing
            for partition, error, offset, timestamp in listed:
                if error is Error.NONE:
                    found[partition] = OffsetAndTimestamp(offset, timestamp)
                elif error not in LEADER_MOVED:
                    raise FetchRefused(partition, error.name)
        if found.keys() >= asked.keys():
            return found
        member.refresh_topics()
        await retries.pause()


_Plan = dict[TopicPartition, Position]


class FetchSettings(NamedTuple):
    """Kafka's options of a fetch. ``reset``: auto.offset.reset, None for none."""

    decoding: Decoding
    reset: OffsetReset | None
    sizes: FetchSizes


class Fetcher:
    """Fills the `FetchBuffer`.

    ``on_records`` is called when there may be records to give out, ``on_problem`` with an error for poll() to
    raise.
    """

    def __init__(
        self,
        member: WireConsumer,
        settings: FetchSettings,
        buffer: FetchBuffer,
        on_records: Callable[[], None],
        on_problem: Callable[[ConsumerError], None],
    ) -> None:
        self._member = member
        self._config = member.config
        self._cluster = member.cluster
        self._settings = settings
        self._buffer = buffer
        self._on_records = on_records
        self._on_problem = on_problem
        self._changes = ChangeNotifier()
        self._busy: set[int] = set()
        self._read_committed = settings.decoding.read_committed
        self._connections = LeaderConnections(member.cluster)

    def wake(self) -> None:
        """Look again for partitions to fetch."""
        self._changes.notify()

    async def run(self) -> None:
        """Fetch until the task is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for node_id, plan in self._plans().items():
                        self._busy.add(node_id)
                        group.create_task(self._fetch(node_id, plan))
                    await self._changes.wait()
        finally:
            self._connections.abort()

    # -- parts -----------------------------------------------------------------------------------

    def _plans(self) -> dict[int, _Plan]:
        """The partitions to ask each broker for, of the brokers without a pending fetch."""
        plans: dict[int, _Plan] = {}
        for partition, position in self._buffer.to_fetch():
            leader = self._cluster.leader(partition)
            if leader is None:
                self._member.refresh_topics()
            elif leader.node_id not in self._busy:
                plans.setdefault(leader.node_id, {})[partition] = position
        return plans

    async def _fetch(self, node_id: int, plan: _Plan) -> None:
        settled = False
        try:
            connection = await self._connections.to(node_id)
            timeout_ms = self._config.request_timeout_ms + self._settings.sizes.max_wait_ms
            build = fetch_request(self._cluster, plan, self._settings.sizes, self._read_committed)
            answer = await connection.ask(FETCH, FETCH.highest, build, timeout_ms)
            settled = await self._take(answer, plan)
        except ConnectionLost:
            pass  # the broker may be gone: the next plan asks the new leader
        if not settled:
            self._member.refresh_topics()
            await asyncio.sleep(self._config.retry_backoff_ms / 1000)
        self._busy.discard(node_id)
        self._changes.notify()

    async def _take(self, answer: Any, plan: _Plan) -> bool:
        """Take the records of a response. Returns whether the next fetch may follow at once."""
        settled = Error(getattr(answer, "error_code", Error.NONE)) is Error.NONE
        for topic in answer.responses:
            for data in topic.partitions:
                partition = TopicPartition(topic.topic, data.partition_index)
                if partition in plan:
                    settled &= await self._take_partition(partition, plan[partition].offset, data)
        self._on_records()
        return settled

    async def _take_partition(self, partition: TopicPartition, offset: int, data: Any) -> bool:
        error = Error(data.error_code)
        if error is Error.NONE:
            if data.records:
                aborted = [
                    AbortedRecords(one.producer_id, one.first_offset)
                    for one in data.aborted_transactions or ()
                ]
                records = FetchedRecords(
                    partition, offset, bytes(data.records), aborted, self._settings.decoding
                )
                self._buffer.fetched(partition, records)
            return True
        if error is Error.OFFSET_OUT_OF_RANGE:
            return await self._reset(partition, offset)
        if error not in LEADER_MOVED and error is not Error.UNKNOWN_SERVER_ERROR:
            self._on_problem(FetchRefused(partition, error.name))
        return False

    async def _reset(self, partition: TopicPartition, refused: int) -> bool:
        """The offset is outside the log, which was cut or lost its end: apply auto.offset.reset."""
        position = self._buffer.position(partition)
        if position is None or position.offset != refused:
            return True
        reset = self._settings.reset
        if reset is None:
            self._on_problem(OffsetOutOfRange(partition, refused))
            return False
        try:
            found = await find_offsets(self._member, {partition: int(reset)}, self._read_committed)
        except FetchRefused as problem:
            self._on_problem(problem)
            return False
        self._buffer.reset(partition, refused, found[partition].offset)
        return True

"""Where to begin on partitions without a position: the committed offset, else auto.offset.reset.

Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded, OffsetFetcher.resetPositionsIfNeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.refusals import COORDINATOR_UNKNOWN
from groupstorm.clients.wire.backoff import backoff_ms
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.clients.wire.connection import Api, Build, ConnectionLost, RequestTypes
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.positions import NO_POSITION, Position, Positions, by_topic
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetch, OffsetFetchResponse

LIST_OFFSETS = Api(2, "ListOffsets", 4, 7)
OFFSET_FETCH_VERSION = 9

_CONSUMER = -1  # the replica id of a client that is no broker

#: Errors of OffsetFetch after which it is asked again (RetriableException).
OFFSET_FETCH_RETRIED = frozenset(
    {
        *COORDINATOR_UNKNOWN,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.UNSTABLE_OFFSET_COMMIT,
    }
)


class OffsetReset(IntEnum):
    """auto.offset.reset, as ListOffsets names the two ends of a log."""

    LATEST = -1
    EARLIEST = -2


def list_offsets(cluster: Cluster, asked: Mapping[TopicPartition, int], read_committed: bool) -> Build:
    """A ListOffsets request: partition -> time in milliseconds, or what `OffsetReset` names."""

    def build(types: RequestTypes) -> Any:
        topics = tuple(
            types.make(
                "ListOffsetsTopic",
                name=topic,
                partitions=tuple(
                    types.make(
                        "ListOffsetsPartition",
                        partition_index=number,
                        current_leader_epoch=_leader_epoch(cluster, TopicPartition(topic, number)),
                        timestamp=asked[TopicPartition(topic, number)],
                    )
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(asked).items()
        )
        return types.make(
            types.root.__name__, replica_id=_CONSUMER, isolation_level=int(read_committed), topics=topics
        )

    return build


def _leader_epoch(cluster: Cluster, partition: TopicPartition) -> int:
    leader = cluster.leader(partition)
    return -1 if leader is None else leader.epoch


class OffsetLookup:
    """Finds positions for what `Positions` says is missing."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        link: CoordinatorLink,
        positions: Positions,
        reset: OffsetReset | None,
        log_end: Callable[[TopicPartition, int], int],
        on_coordinator_unknown: Callable[[], None],
        read_committed: bool = False,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._link = link
        self._positions = positions
        self._reset = reset
        self._log_end = log_end
        self._on_coordinator_unknown = on_coordinator_unknown
        self._read_committed = read_committed
        #: auto.offset.reset is none: the partitions that have no committed offset, for poll() to throw.
        self.without_offset: tuple[TopicPartition, ...] = ()

    async def find(self) -> Error:
        """Until every owned partition has a position; NONE, or the error that poll() would throw."""
        attempts = 0
        while missing := self._positions.missing():
            error = await self._fetch_committed(missing)
            if error is Error.NONE and self._reset is None:
                self.without_offset = tuple(self._positions.missing())
                return error
            if error is Error.NONE:
                await self._find_ends()
            elif error in OFFSET_FETCH_RETRIED:
                await self._back_off(attempts)
                attempts += 1
            else:
                return error
        return Error.NONE

    async def _fetch_committed(self, missing: list[TopicPartition]) -> Error:
        error = await self._link.find()
        if error is not Error.NONE:
            return error
        config = self._config
        request = OffsetFetch(config.group_id, by_topic(missing), OFFSET_FETCH_VERSION, require_stable=True)
        answer = await self._link.ask(request, config.request_timeout_ms)
        if isinstance(answer, Disconnected):
            return Error.COORDINATOR_NOT_AVAILABLE
        assert isinstance(answer, OffsetFetchResponse)
        if answer.error in COORDINATOR_UNKNOWN:
            self._on_coordinator_unknown()
        return answer.error if answer.error is not Error.NONE else self._take(answer.partitions)

    def _take(self, partitions: Iterable[tuple[str, int, CommittedOffset, Error]]) -> Error:
        worst = Error.NONE
        for topic, number, committed, error in partitions:
            partition = TopicPartition(topic, number)
            if error is not Error.NONE:
                worst = error
            elif committed.offset != NO_POSITION:
                self._positions.committed(partition, committed.offset)
                self._positions.begin(partition, Position(committed.offset, committed.leader_epoch))
        return worst

    async def _find_ends(self) -> None:
        """Of the partitions without committed offset: ask their leaders until all have told one."""
        attempts = 0
        while missing := self._positions.missing():
            led: dict[int, list[TopicPartition]] = {}
            for partition in missing:
                leader = self._cluster.leader(partition)
                if leader is not None:
                    led.setdefault(leader.node_id, []).append(partition)
            try:
                for node_id, partitions in led.items():
                    self._take_ends(await self._ask_leader(node_id, partitions))
                if not self._positions.missing():
                    return
                # with all that is known: the leader compares the topics of its whole group
                await self._cluster.refresh({*self._cluster.topics, *by_topic(missing)})
            except ConnectionLost:
                pass  # asked again below
            await self._back_off(attempts)
            attempts += 1

    async def _ask_leader(self, node_id: int, partitions: list[TopicPartition]) -> Any:
        assert self._reset is not None
        asked = dict.fromkeys(partitions, int(self._reset))
        build = list_offsets(self._cluster, asked, self._read_committed)
        return await self._cluster.ask_node(node_id, LIST_OFFSETS, build, self._config.request_timeout_ms)

    async def _back_off(self, attempts: int) -> None:
        await asyncio.sleep(backoff_ms(attempts, self._config.retry_backoff_ms) / 1000)

    def _take_ends(self, answer: Any) -> None:
        for topic in answer.topics:
            for partition in topic.partitions:
                if Error(partition.error_code) is Error.NONE:
                    # Without the epoch that came along: it is no record's (OffsetFetcherUtils, 4.3).
                    found = TopicPartition(topic.name, partition.partition_index)
                    self._positions.begin(found, Position(self._log_end(found, partition.offset)))

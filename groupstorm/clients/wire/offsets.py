"""The first position of a partition: its committed offset, or else auto.offset.reset.

Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded, OffsetFetcher.resetPositionsIfNeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.error_tables import COORDINATOR_UNKNOWN
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.requests import offset_fetch
from groupstorm.clients.wire.backoff import backoff_ms
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import Build, ClientApi, ConnectionLost, RequestTypes
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.member_status import MemberStatus
from groupstorm.clients.wire.positions import NO_POSITION, Position, Positions, by_topic
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetchResponse

LIST_OFFSETS = ClientApi(2, "ListOffsets", 4, 7)

_CONSUMER = -1  # the replica id of a client that is no broker

#: Errors of OffsetFetch after which the client asks again (RetriableException). A member of the consumer
#: protocol asks again with its new epoch, or hears from its next heartbeat that it is out of the group.
OFFSET_FETCH_RETRIED = frozenset(
    {
        *COORDINATOR_UNKNOWN,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.UNSTABLE_OFFSET_COMMIT,
        Error.STALE_MEMBER_EPOCH,
        Error.UNKNOWN_MEMBER_ID,
    }
)


class OffsetReset(IntEnum):
    """auto.offset.reset, as ListOffsets names the two ends of a log."""

    LATEST = -1
    EARLIEST = -2


def list_offsets(cluster: ClusterClient, asked: Mapping[TopicPartition, int], read_committed: bool) -> Build:
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


def _leader_epoch(cluster: ClusterClient, partition: TopicPartition) -> int:
    leader = cluster.leader(partition)
    return -1 if leader is None else leader.epoch


class OffsetDefaults(NamedTuple):
    """Where to begin without a committed offset; see `ApplicationBehaviour`."""

    auto_offset_reset: OffsetReset | None
    log_end: Callable[[TopicPartition, int], int]
    read_committed: bool


class OffsetLookup:
    """Finds a position for each owned partition that has none (`Positions.missing`)."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: ClusterClient,
        link: CoordinatorLink,
        positions: Positions,
        defaults: OffsetDefaults,
        on_coordinator_unknown: Callable[[], None],
        membership: MemberStatus,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._link = link
        self._positions = positions
        self._reset, self._log_end, self._read_committed = defaults
        self._on_coordinator_unknown = on_coordinator_unknown
        self._membership = membership
        #: The partitions without committed offset if auto.offset.reset is none: poll() throws.
        self.without_offset: tuple[TopicPartition, ...] = ()

    async def find(self) -> Error:
        """Search until every owned partition has a position. Returns NONE or the error that poll() throws."""
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
        request = offset_fetch(config, by_topic(missing), self._membership.generation)
        response = await self._link.ask(request, config.request_timeout_ms)
        if isinstance(response, Disconnected):
            return Error.COORDINATOR_NOT_AVAILABLE
        assert isinstance(response, OffsetFetchResponse)
        if response.error in COORDINATOR_UNKNOWN:
            self._on_coordinator_unknown()
        return response.error if response.error is not Error.NONE else self._take(response.partitions)

    def _take(self, partitions: Iterable[tuple[str, int, CommittedOffset, Error]]) -> Error:
        worst = Error.NONE
        for topic, number, committed, error in partitions:
            partition = TopicPartition(topic, number)
            if error is not Error.NONE:
                worst = error
            elif committed.offset != NO_POSITION:
                self._positions.committed(partition, committed.offset)
                self._positions.begin_at(partition, Position(committed.offset, committed.leader_epoch))
        return worst

    async def _find_ends(self) -> None:
        """Ask the leaders of partitions without committed offset until every one has answered."""
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
                # all known topics: the group's leader compares the topics of its whole group
                await self._cluster.refresh({*self._cluster.topics, *by_topic(missing)})
            except ConnectionLost:
                pass  # the next attempt asks again
            await self._back_off(attempts)
            attempts += 1

    async def _ask_leader(self, node_id: int, partitions: list[TopicPartition]) -> Any:
        assert self._reset is not None
        asked = dict.fromkeys(partitions, int(self._reset))
        build = list_offsets(self._cluster, asked, self._read_committed)
        return await self._cluster.ask_node(node_id, LIST_OFFSETS, build, self._config.request_timeout_ms)

    async def _back_off(self, attempts: int) -> None:
        await asyncio.sleep(backoff_ms(attempts, self._config.retry_backoff_ms) / 1000)

    def _take_ends(self, response: Any) -> None:
        for topic in response.topics:
            for partition in topic.partitions:
                if Error(partition.error_code) is Error.NONE:
                    # Without the epoch of the response: it is not that of a record (OffsetFetcherUtils, 4.3).
                    found = TopicPartition(topic.name, partition.partition_index)
                    self._positions.begin_at(found, Position(self._log_end(found, partition.offset)))

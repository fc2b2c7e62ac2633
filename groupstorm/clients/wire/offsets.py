"""The first position of a partition: its committed offset, or else auto.offset.reset.

Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded, OffsetFetcher.resetPositionsIfNeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.error_tables import COORDINATOR_UNKNOWN
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.requests import offset_fetch
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.log_requests import OffsetReset, ask_leader, by_leader
from groupstorm.clients.wire.parts import ConsumerParts, MemberStatus
from groupstorm.clients.wire.positions import NO_POSITION, Position, by_topic
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetchResponse

#: Errors of OffsetFetch after which the client asks again (RetriableException). A member of the consumer
#: protocol asks again with its new epoch, or learns from its next heartbeat that it is out of the group.
OFFSET_FETCH_RETRIED = frozenset(
    {
        *COORDINATOR_UNKNOWN,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.UNSTABLE_OFFSET_COMMIT,
        Error.STALE_MEMBER_EPOCH,
        Error.UNKNOWN_MEMBER_ID,
    }
)


class OffsetLookup:
    """Finds a position for each owned partition that has none (`Positions.missing`).

    The search runs beside the membership: a consumer that joins again does not wait for it. ``on_found`` gets
    NONE, or the error that poll() has to throw.
    """

    def __init__(
        self,
        parts: ConsumerParts,
        membership: MemberStatus,
        on_coordinator_unknown: Callable[[], None],
        on_found: Callable[[Error], None],
    ) -> None:
        self._parts = parts
        self._config = parts.config
        self._positions = parts.positions
        self._membership = membership
        self._on_coordinator_unknown = on_coordinator_unknown
        self._on_found = on_found
        self._task: asyncio.Task[None] | None = None
        #: The partitions without committed offset if auto.offset.reset is none: poll() throws.
        self.without_offset: tuple[TopicPartition, ...] = ()

    def start(self) -> None:
        """Search, if an owned partition has no position and no search is running."""
        if self._task is None and self._positions.missing():
            self._task = self._parts.spawn(self._run())

    def stop(self) -> None:
        """An assignment makes the running search obsolete."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _run(self) -> None:
        error = await self._find()
        self._task = None
        self._on_found(error)

    async def _find(self) -> Error:
        """Search until every owned partition has a position. Returns NONE or the error that poll() throws."""
        reset = self._parts.application.auto_offset_reset
        retries = Retries(self._config.retry_backoff_ms)
        while missing := self._positions.missing():
            error = await self._fetch_committed(missing)
            if error is Error.NONE and reset is None:
                self.without_offset = tuple(self._positions.missing())
                return error
            if error is Error.NONE and reset is not None:
                await self._find_ends(reset)
            elif error in OFFSET_FETCH_RETRIED:
                await retries.pause()
            else:
                return error
        return Error.NONE

    async def _fetch_committed(self, missing: list[TopicPartition]) -> Error:
        error = await self._parts.link.find()
        if error is not Error.NONE:
            return error
        request = offset_fetch(self._config, by_topic(missing), self._membership.generation)
        response = await self._parts.link.ask(request, self._config.request_timeout_ms)
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

    async def _find_ends(self, reset: OffsetReset) -> None:
        """Ask the leaders of partitions without committed offset until every one has answered."""
        cluster, application = self._parts.cluster, self._parts.application
        retries = Retries(self._config.retry_backoff_ms)
        while missing := self._positions.missing():
            try:
                for node_id, asked in by_leader(cluster, dict.fromkeys(missing, int(reset))).items():
                    for partition, error, offset, _ in await ask_leader(
                        cluster, node_id, asked, application.read_committed, self._config.request_timeout_ms
                    ):
                        if error is Error.NONE:
                            # without the response's epoch: it is not a record's (OffsetFetcherUtils, 4.3)
                            self._positions.begin_at(
                                partition, Position(application.log_end(partition, offset))
                            )
                if not self._positions.missing():
                    return
                # all known topics: the group's leader compares the topics of its whole group
                await cluster.refresh({*cluster.topics, *by_topic(missing)})
            except ConnectionLost:
                pass  # the next attempt asks again
            await retries.pause()

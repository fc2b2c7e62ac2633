"""The offsets that a member commits and fetches: its commits, and the first position of a partition.

Commits are made before a rebalance, on close(), and every auto.commit.interval.ms. The first position is the
committed offset, or else what auto.offset.reset says.

Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded, OffsetFetcher.resetPositionsIfNeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.error_tables import COMMIT_RETRIED, COORDINATOR_UNKNOWN
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.requests import offset_commit, offset_fetch
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.logs import OffsetReset, ask_leader, by_leader
from groupstorm.clients.wire.parts import ConsumerParts, MemberStatus
from groupstorm.clients.wire.positions import NO_POSITION, Position, by_topic
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommitResponse, OffsetFetchResponse

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


#: Topic -> partition -> offset.
CommittedOffsets: TypeAlias = Mapping[str, Mapping[int, CommittedOffset]]


class Commits:
    """One consumer's commits, and the time of its next auto-commit."""

    def __init__(self, parts: ConsumerParts, membership: MemberStatus) -> None:
        self._parts = parts
        self._config = parts.config
        self._membership = membership
        #: When the next auto-commit is due, in the clock's microseconds; None without auto-commit.
        self.next_us: int | None = None
        self.reset()

    def reset(self) -> None:
        """Start the interval anew: an assignment has arrived, or a commit has been sent."""
        if self._config.enable_auto_commit:
            self.next_us = self._parts.clock() + self._config.auto_commit_interval_ms * 1000

    @property
    def due(self) -> bool:
        return self.next_us is not None and self._parts.clock() >= self.next_us

    async def commit(self, offsets: CommittedOffsets | None = None) -> Error | Disconnected:
        """Commit ``offsets``, by default every known position; NONE if there are none.

        The membership takes the error of the response.
        """
        if not self._membership.may_commit:
            return Error.NONE
        positions = self._parts.positions.to_commit() if offsets is None else offsets
        return await self.commit_as(self._membership.generation, positions)

    async def commit_as(self, sent: Generation, offsets: CommittedOffsets) -> Error | Disconnected:
        """Commit ``offsets`` in the generation ``sent``. The membership takes the error of the response."""
        if not offsets:
            return Error.NONE
        request = offset_commit(self._config, sent, offsets)
        response = await self._parts.link.ask(request, self._config.request_timeout_ms)
        if isinstance(response, Disconnected):
            return response
        assert isinstance(response, OffsetCommitResponse)
        first = Error.NONE
        for topic, partition, error in response.partitions:
            if error is Error.NONE:
                offset = request.offsets[topic][partition].offset
                self._parts.positions.committed(TopicPartition(topic, partition), offset)
            elif first is Error.NONE:
                first = error
        self._membership.commit_answered(first, sent)
        return first

    async def commit_in_background(self) -> None:
        """Auto-commit. After a retriable error the next one is due after retry.backoff.ms."""
        response = await self.commit()
        if isinstance(response, Disconnected) or response in COMMIT_RETRIED:
            self.next_us = self._parts.clock() + self._config.retry_backoff_ms * 1000

"""Commits that the application asks for, and committed offsets (commitSync, committed)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import (
    CommitFailed,
    ConsumerFailed,
    OffsetsRefused,
    RebalanceInProgress,
    time_limit,
)
from groupstorm.clients.error_tables import COMMIT_RETRIED
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.requests import offset_fetch
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.offsets import OFFSET_FETCH_RETRIED
from groupstorm.clients.wire.positions import NO_POSITION, by_topic
from groupstorm.clients.wire.waiting import ChangeNotifier
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetchResponse


class OffsetCommitter:
    """``timeout_ms``: default.api.timeout.ms. ``changes`` wakes when the membership may have changed."""

    def __init__(self, member: WireConsumer, changes: ChangeNotifier, timeout_ms: int) -> None:
        self._member = member
        self._changes = changes
        self._timeout_ms = timeout_ms

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Raises CommitFailed, RebalanceInProgress, ConsumerFailed, ConsumerTimeout.

        While the member is joining, the commit waits for the new generation: the member owns its partitions
        until its listener is called.
        """
        by_name: dict[str, dict[int, CommittedOffset]] = {}
        for (topic, number), offset in offsets.items():
            by_name.setdefault(topic, {})[number] = offset
        async with time_limit(self._timeout_ms, "no commit within"):
            while not await self._commit_once(by_name):
                await self._back_off()

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The committed offsets; None for a partition without one. Raises OffsetsRefused, ConsumerTimeout."""
        asked = tuple(partitions)
        async with time_limit(self._timeout_ms, "no committed offsets within"):
            while (found := await self._fetch_once(asked)) is None:
                await self._back_off()
        return {partition: found.get(partition) for partition in asked}

    # -- parts -----------------------------------------------------------------------------------

    async def _back_off(self) -> None:
        await asyncio.sleep(self._member.config.retry_backoff_ms / 1000)

    async def _commit_once(self, offsets: Mapping[str, Mapping[int, CommittedOffset]]) -> bool:
        membership = self._member.membership
        while membership.is_joining and membership.failure is None:
            if self._member.closing:
                # a member that closes does not end its round
                raise RebalanceInProgress(Error.REBALANCE_IN_PROGRESS.name)
            await self._changes.wait()
        if membership.failure is not None:
            raise ConsumerFailed(membership.failure)
        if not membership.may_commit:
            raise CommitFailed(Error.UNKNOWN_MEMBER_ID.name)
        answer = await self._member.commit(offsets)
        if isinstance(answer, Disconnected) or answer in COMMIT_RETRIED:
            return False
        if answer is Error.REBALANCE_IN_PROGRESS:
            raise RebalanceInProgress(answer.name)
        if answer is Error.FENCED_INSTANCE_ID:
            raise ConsumerFailed(answer.name)
        if answer is not Error.NONE:
            raise CommitFailed(answer.name)
        return True

    async def _fetch_once(
        self, asked: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset] | None:
        request = offset_fetch(self._member.config, by_topic(asked), self._member.membership.generation)
        answer = await self._member.ask_coordinator(request)
        if isinstance(answer, Disconnected):
            return None
        if isinstance(answer, Error):
            raise OffsetsRefused(answer.name)
        assert isinstance(answer, OffsetFetchResponse)
        errors = [answer.error, *(error for _, _, _, error in answer.partitions)]
        worst = next((error for error in errors if error is not Error.NONE), Error.NONE)
        if worst in OFFSET_FETCH_RETRIED:
            return None
        if worst is not Error.NONE:
            raise OffsetsRefused(worst.name)
        return {
            TopicPartition(topic, number): committed
            for topic, number, committed, _ in answer.partitions
            if committed.offset != NO_POSITION
        }

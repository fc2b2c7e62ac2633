"""Commits of positions: before a rebalance, on close(), and every auto.commit.interval.ms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.error_tables import COMMIT_RETRIED
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.requests import offset_commit
from groupstorm.clients.wire.parts import ConsumerParts, MemberStatus
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommitResponse

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

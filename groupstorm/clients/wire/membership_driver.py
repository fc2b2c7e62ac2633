"""The base of the drivers of both group protocols: commits, positions, listener calls, topic metadata."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from groupstorm.clients.wire.offsets import Commits, OffsetLookup
from groupstorm.clients.wire.owned_partitions import OwnedPartitions
from groupstorm.clients.wire.parts import ConsumerParts, MemberStatus
from groupstorm.clients.wire.polling import ApplicationPolling
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.coordinator.errors import Error


class MembershipDriver(ABC):
    """Carries out what one ``membership`` asks for. A task of the consumer runs `run`, and then `leave`.

    ``work`` awaits the imagined work of a listener, in microseconds.
    """

    polling: ApplicationPolling

    def __init__(
        self, parts: ConsumerParts, membership: MemberStatus, work: Callable[[int], Awaitable[None]]
    ) -> None:
        self.parts = parts
        self.membership = membership
        self.watch = TopicWatch(parts.cluster, membership, self.changed)
        self.commits = Commits(parts, membership)
        self.offsets = OffsetLookup(parts, membership, self.coordinator_moved, self._positions_found)
        self.partitions = OwnedPartitions(parts, membership, work)
        parts.link.on_found, parts.link.on_lost = self.coordinator_found, self.coordinator_lost

    @abstractmethod
    async def run(self) -> None:
        """From the first poll() until a fatal error ends the membership. Raises PollThrew."""

    @abstractmethod
    async def leave(self, leave_group: bool | None) -> None:
        """Consumer.close(); ``leave_group`` replaces `ConsumerConfig.leave_group_on_close` if it is given.

        If it is cancelled, `abandon` follows.
        """

    @abstractmethod
    async def abandon(self) -> None:
        """close() was not done in time."""

    @abstractmethod
    def changed(self) -> None:
        """A response has arrived: every part looks at the membership again."""

    @abstractmethod
    def coordinator_found(self) -> None:
        """The connection to the coordinator is open."""

    @abstractmethod
    def coordinator_lost(self) -> None:
        """The connection to the coordinator is gone."""

    @abstractmethod
    def coordinator_moved(self) -> None:
        """A response says that the broker is not the coordinator."""

    @abstractmethod
    def fail(self, error: Error) -> None:
        """The next poll() has to throw ``error``."""

    def _positions_found(self, error: Error) -> None:
        """The search for positions has ended."""
        if error is not Error.NONE:
            self.fail(error)
        self.partitions.positions_found()
        self.changed()

    def commit_soon(self) -> None:
        """Auto-commit, in a task."""
        _ = self.parts.spawn(self._commit_in_background())

    async def _commit_in_background(self) -> None:
        await self.commits.commit_in_background()
        self.changed()

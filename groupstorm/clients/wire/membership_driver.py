"""What the drivers of both group protocols have: commits, positions, listener calls, topic metadata."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol

from groupstorm.clients.wire.commits import Commits
from groupstorm.clients.wire.member_status import MemberStatus
from groupstorm.clients.wire.offsets import OffsetDefaults, OffsetLookup
from groupstorm.clients.wire.parts import ConsumerParts
from groupstorm.clients.wire.position_search import PositionSearch
from groupstorm.clients.wire.rebalance_callbacks import RebalanceCallbacks
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.coordinator.errors import Error


class PollThrew(Exception):
    """poll() has thrown an error, by Kafka's name: the application closes its consumer."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class ApplicationPolling(Protocol):
    """The application's side of poll(): it polls all the time, except between `leave` and `enter`."""

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics of the last subscribe()."""
        ...

    @property
    def has_work(self) -> bool:
        """Whether the next poll() does more than return records."""
        ...

    def leave(self) -> None:
        """The application works on a batch and does not poll; what is under way ends first."""
        ...

    def enter(self) -> None:
        """The application polls again."""
        ...

    def polled(self) -> None:
        """poll() was called, had nothing to do, and has returned the next batch."""
        ...

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """subscribe() with other topics."""
        ...


class MembershipDriver(ABC):
    """Carries out what one membership asks for. A task of the consumer runs `run`, and then `leave`.

    ``work`` awaits the imagined work of a listener, in microseconds.
    """

    polling: ApplicationPolling

    def __init__(
        self, parts: ConsumerParts, membership: MemberStatus, work: Callable[[int], Awaitable[None]]
    ) -> None:
        config, application, link, positions = parts.config, parts.application, parts.link, parts.positions
        self.parts = parts
        self.watch = TopicWatch(config, parts.cluster, membership, self.changed)
        self.commits = Commits(config, membership, link, positions, parts.clock)
        self.offsets = OffsetLookup(
            config,
            parts.cluster,
            link,
            positions,
            OffsetDefaults(application.auto_offset_reset, application.log_end, application.read_committed),
            self.coordinator_moved,
            membership,
        )
        self.search = PositionSearch(self.offsets, positions, parts.spawn, self.positions_found)
        self.callbacks = RebalanceCallbacks(membership, positions, application, work, parts.emitter)

    @property
    @abstractmethod
    def membership(self) -> MemberStatus: ...

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

    def positions_found(self, error: Error) -> None:
        """The search for positions has ended."""
        if error is not Error.NONE:
            self.fail(error)
        self.callbacks.positions_found()
        self.changed()

    def commit_soon(self) -> None:
        """Auto-commit, in a task."""
        _ = self.parts.spawn(self._commit_in_background())

    async def _commit_in_background(self) -> None:
        await self.commits.commit_in_background()
        self.changed()

"""The application's calls of poll(): a base, and what a call does with a member of either group protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from groupstorm.clients.causes import RejoinCause
from groupstorm.clients.membership import Membership
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.offsets import Commits
from groupstorm.clients.wire.parts import ConsumerParts
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.clients.wire.waiting import WakeEvent, sleep_us
from groupstorm.coordinator.errors import Error


class PollThrew(Exception):
    """poll() has thrown an error, by Kafka's name: the application closes its consumer."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class ApplicationPolling(ABC):
    """The application polls all the time, except between `leave` and `enter`."""

    def __init__(self, parts: ConsumerParts) -> None:
        #: The topics of the last subscribe().
        self.subscription = parts.config.topics
        self._parts = parts
        self._wake_event = WakeEvent(parts.clock)
        self._polls = True
        #: Whether a task waits until poll() has something to do.
        self._waits = False

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether the next poll() does more than return records."""

    @abstractmethod
    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """subscribe() with other topics."""

    def leave(self) -> None:
        """The application works on a batch and does not poll; what is under way ends first."""
        self._polls = False

    def enter(self) -> None:
        """The application polls again."""
        self._polls = True
        self._wake_event.wake()

    @abstractmethod
    def polled(self) -> None:
        """poll() was called, had nothing to do, and has returned the next batch."""

    def wake(self) -> None:
        """poll() may have something to do."""
        self._wake_event.wake()


class ClassicPolling(ApplicationPolling):
    """The calls between two rounds (ConsumerCoordinator.poll)."""

    def __init__(
        self,
        parts: ConsumerParts,
        membership: Membership,
        watch: TopicWatch,
        heartbeats: Heartbeats,
        commits: Commits,
        commit_soon: Callable[[], None],
    ) -> None:
        """``commit_soon`` starts a commit in the background."""
        super().__init__(parts)
        #: The error of a background task, for the next poll() to throw.
        self.failed: Error | None = None
        self._membership = membership
        self._watch = watch
        self._heartbeats = heartbeats
        self._commits = commits
        self._commit_soon = commit_soon

    def leave(self) -> None:
        super().leave()
        self.polled()

    def enter(self) -> None:
        self._heartbeats.timers.entered_poll()
        super().enter()

    def polled(self) -> None:
        if self._waits:
            self._heartbeats.left_poll()

    @property
    def has_work(self) -> bool:
        return self._waits and (self._is_due() or self._commits.due or self._fatal() is not None)

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """poll() joins again, after a running round."""
        self.subscription = topics
        if self._waits:
            self._take_subscription()
            self.wake()
            self._parts.application.on_change()

    async def until_due(self) -> None:
        """Wait until the member has to join and, if the library joins inside poll(), the application polls.

        Raises PollThrew.
        """
        self._take_subscription()
        self._waits = True
        joins_at_poll = self._membership.config.profile.rejoins_at_poll
        try:
            if not self._polls:
                self.leave()
            while not (
                self._is_due() and (self._polls or not (joins_at_poll or self._membership.awaits_poll))
            ):
                await self._wake_event.wait(self._commits.next_us if self._polls else None)
                await self._parts.running.wait()
                if self._polls:
                    self._poll_once()
            if joins_at_poll:
                await sleep_us(self._parts.application.poll_wait_us())
                while self._is_away():
                    await self._wake_event.wait(None)
        finally:
            self._waits = False

    def _is_due(self) -> bool:
        return self._membership.rejoin_needed or self._membership.failure is not None

    def _is_away(self) -> bool:
        return not self._polls

    def _fatal(self) -> Error | None:
        return self._heartbeats.fatal or self.failed

    def _poll_once(self) -> None:
        """The rest of poll(): throw the error of a background task, start an auto-commit."""
        fatal = self._fatal()
        if fatal is not None:
            raise PollThrew(fatal.name)
        if self._commits.due:
            self._commits.reset()
            self._commit_soon()

    def _take_subscription(self) -> None:
        membership = self._membership
        if membership.config.topics != self.subscription:
            membership.config = replace(membership.config, topics=self.subscription)
            membership.subscribed = self.subscription
            self._watch.refresh_soon()
            membership.request_rejoin(RejoinCause.SUBSCRIPTION_CHANGED)


class GroupPolling(ApplicationPolling):
    """The calls with the consumer protocol (AsyncKafkaConsumer.poll).

    ``on_enter`` is called when poll() begins. ``is_due`` says whether poll() has to run the listener, to
    commit or to throw. ``on_subscribe`` takes the topics of a subscribe().
    """

    def __init__(
        self,
        parts: ConsumerParts,
        on_enter: Callable[[], None],
        is_due: Callable[[], bool],
        on_subscribe: Callable[[tuple[str, ...]], None],
    ) -> None:
        super().__init__(parts)
        self._on_enter = on_enter
        self._is_due = is_due
        self._on_subscribe = on_subscribe
        self._entered = 0

    @property
    def has_work(self) -> bool:
        return self._waits and self._is_due()

    def enter(self) -> None:
        self._entered += 1
        self._on_enter()
        super().enter()

    def polled(self) -> None:
        """Nothing: a call that returns at once follows another one by a few milliseconds."""

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """The next heartbeat tells the broker; a member that has not joined yet joins with these topics."""
        self.subscription = topics
        self._on_subscribe(topics)

    async def until_due(self, until_us: int | None) -> None:
        """Wait for `wake` or until ``until_us``, and until the application is inside poll()."""
        self._waits = True
        try:
            await self._wake_event.wait(until_us if self._polls else None)
            while not self._polls:
                await self._wake_event.wait(None)
        finally:
            self._waits = False

    async def until_next_call(self) -> None:
        """poll() has thrown: wait until the application calls it again."""
        entered = self._entered
        while self._entered == entered:
            await self._wake_event.wait(None)

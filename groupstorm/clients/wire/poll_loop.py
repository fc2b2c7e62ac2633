"""The application's calls of poll() between two rounds (ConsumerCoordinator.poll)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from groupstorm.clients.causes import RejoinCause
from groupstorm.clients.membership import Membership
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.commits import Commits
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.membership_driver import PollThrew
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.clients.wire.wake_event import WakeEvent
from groupstorm.coordinator.errors import Error


class PollLoop:
    """The application polls all the time, except between `leave` and `enter`.

    While ``running`` is not set the process is paused. ``commit_soon`` starts a commit in the background.
    """

    def __init__(
        self,
        membership: Membership,
        watch: TopicWatch,
        heartbeats: Heartbeats,
        commits: Commits,
        application: ApplicationBehaviour,
        clock: Callable[[], int],
        running: asyncio.Event,
        commit_soon: Callable[[], None],
    ) -> None:
        #: The topics of the last subscribe(). The membership has those of its last JoinGroup.
        self.subscription = membership.config.topics
        #: The error of a background task, for the next poll() to throw.
        self.failed: Error | None = None
        self._membership = membership
        self._watch = watch
        self._heartbeats = heartbeats
        self._commits = commits
        self._application = application
        self._running = running
        self._commit_soon = commit_soon
        self._wake_event = WakeEvent(clock)
        self._polls = True
        self._waits = False

    def leave(self) -> None:
        """The application works on a batch and does not poll; a running round ends first."""
        self._polls = False
        self.polled()

    def enter(self) -> None:
        """The application polls again."""
        self._polls = True
        self._heartbeats.timers.entered_poll()
        self._wake_event.wake()

    def polled(self) -> None:
        """poll() was called, had nothing to do, and has returned the next batch."""
        if self._waits:
            self._heartbeats.left_poll()

    def wake(self) -> None:
        """A response has arrived: poll() may have something to do."""
        self._wake_event.wake()

    @property
    def has_work(self) -> bool:
        """Whether the next poll() has to join, to commit or to throw."""
        return self._waits and (self._is_due() or self._commits.due or self._fatal() is not None)

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """subscribe() with other topics: poll() joins again, after a running round."""
        self.subscription = topics
        if self._waits:
            self._take_subscription()
            self._wake_event.wake()
            self._application.on_change()

    def _joins_without_poll(self) -> bool:
        membership = self._membership
        return not (membership.config.profile.rejoins_at_poll or membership.awaits_poll)

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
                await self._running.wait()
                if self._polls:
                    self._poll_once()
            if joins_at_poll:
                await sleep_us(self._application.poll_wait_us())
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


async def sleep_us(duration_us: int) -> None:
    """Sleep; not at all for 0."""
    if duration_us:
        await asyncio.sleep(duration_us / 1_000_000)

"""The application's calls of poll(), as far as they are no part of a round (ConsumerCoordinator.poll)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from groupstorm.clients.causes import RejoinCause
from groupstorm.clients.membership import Membership
from groupstorm.clients.wire.application import Application
from groupstorm.clients.wire.commits import Commits
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.clients.wire.waking import Waking
from groupstorm.coordinator.errors import Error


class PollThrew(Exception):
    """A fatal error that the membership does not know of: the application closes its consumer."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.name)
        self.error = error


class PollLoop:
    """The application polls all the time, except between `leave` and `enter`.

    While ``running`` is not set the process stands still; ``commit_soon`` starts a commit in the background.
    """

    def __init__(
        self,
        membership: Membership,
        watch: TopicWatch,
        heartbeats: Heartbeats,
        commits: Commits,
        application: Application,
        clock: Callable[[], int],
        running: asyncio.Event,
        commit_soon: Callable[[], None],
    ) -> None:
        #: The topics that are wanted; those that were joined with are the membership's.
        self.subscription = membership.config.topics
        #: What went wrong beside poll(), for the next one to throw.
        self.failed: Error | None = None
        self._membership = membership
        self._watch = watch
        self._heartbeats = heartbeats
        self._commits = commits
        self._application = application
        self._running = running
        self._commit_soon = commit_soon
        self._waking = Waking(clock)
        self._polls = True
        self._waits = False

    def leave(self) -> None:
        """The application works on a batch and does not poll; a round that is under way ends first."""
        self._polls = False
        self.polled()

    def enter(self) -> None:
        """It polls again."""
        self._polls = True
        self._heartbeats.timers.entered_poll()
        self._waking.wake()

    def polled(self) -> None:
        """poll() has been called, had nothing to do, and has given the application its next batch."""
        if self._waits:
            self._heartbeats.left_poll()

    def wake(self) -> None:
        """Something has been answered: there may be something to do."""
        self._waking.wake()

    @property
    def has_work(self) -> bool:
        """Whether poll() has something to do that waits for the application to call it."""
        return self._waits and (self._is_due() or self._commits.due or self._fatal() is not None)

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """subscribe() with other topics: poll() joins again, after the round that is under way."""
        self.subscription = topics
        if self._waits:
            self._take_subscription()
            self._waking.wake()
            self._application.on_change()

    async def until_due(self) -> None:
        """Until there is a round to begin, and the application polls, as far as the client waits for that.

        Raises PollThrew.
        """
        self._take_subscription()
        self._waits = True
        joins_at_poll = self._membership.config.profile.rejoins_at_poll
        try:
            if not self._polls:
                self.leave()
            while not (self._is_due() and (self._polls or not joins_at_poll)):
                await self._waking.wait(self._commits.next_us if self._polls else None)
                await self._running.wait()
                if self._polls:
                    self._poll_once()
            if joins_at_poll:
                await sleep_us(self._application.poll_wait_us())
                while self._is_away():
                    await self._waking.wait(None)
        finally:
            self._waits = False

    def _is_due(self) -> bool:
        return self._membership.rejoin_needed or self._membership.failure is not None

    def _is_away(self) -> bool:
        return not self._polls

    def _fatal(self) -> Error | None:
        return self._heartbeats.fatal or self.failed

    def _poll_once(self) -> None:
        """What else poll() does: throw what went wrong beside it, commit."""
        fatal = self._fatal()
        if fatal is not None:
            raise PollThrew(fatal)
        if self._commits.due:
            self._commits.reset()
            self._commit_soon()

    def _take_subscription(self) -> None:
        membership = self._membership
        if membership.config.topics != self.subscription:
            membership.config = replace(membership.config, topics=self.subscription)
            self._watch.refresh_soon()
            membership.request_rejoin(RejoinCause.SUBSCRIPTION_CHANGED)


async def sleep_us(duration_us: int) -> None:
    """Sleep; not at all for 0."""
    if duration_us:
        await asyncio.sleep(duration_us / 1_000_000)

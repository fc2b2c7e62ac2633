"""When the application of one process polls, and what its client does if a poll() comes too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from groupstorm.storms.world.clock import Clock, Kind, order_of
from groupstorm.storms.world.disturbances import DisturbedProcess

#: A client that counts whole milliseconds may take a poll() for late so much earlier.
_CLOCK_US: Final = 2_000


class ApplicationPolls:
    """The polls of one process that matter: those that begin a rejoin, and those that come too late.

    In exact mode every poll() is an event.
    """

    def __init__(self, clock: Clock, process: DisturbedProcess) -> None:
        self._clock = clock
        self._process = process
        self._config = process.config
        self._membership = process.membership
        self._pauses = process.pauses
        self._periodic_requests = process.periodic_requests
        self._loop = process.work.loop
        self._order = order_of(Kind.POLL, process.index)
        #: A poll() that begins a rejoin is scheduled.
        self._is_due = False
        self._watch = 0
        self._every = False

    @property
    def passed_us(self) -> int:
        """The last instant at which the application has polled if it was to."""
        return self._clock.passed_us(self._order)

    # -- the next poll() -------------------------------------------------------------------------

    def nudge(self) -> None:
        """A rejoin may have become necessary: the application notices at its next poll()."""
        process, membership = self._process, self._membership
        if not process.alive or not process.waits_for_poll or self._is_due:
            return
        if membership.rejoin_needed or membership.failure is not None:
            self._periodic_requests.stop_commits()
            self._is_due = True
            self._poll_at(self.next_us(), self._poll, process.step)

    def next_us(self) -> int:
        """When the application is inside poll() next; now, for a client that does not wait for it."""
        now_us = self._clock.now_us
        if self._config.profile.rejoins_at_poll or self._membership.awaits_poll:
            return max(self._loop.next_poll_us(now_us), self._pauses.until_us)
        return max(now_us, self._pauses.paused_until_us)

    def _poll(self, step: int) -> None:
        self._is_due = False
        process = self._process
        if step != process.step:
            self.nudge()  # it was due for what is over
        elif process.alive and self._clock.now_us < (next_us := self.next_us()):
            self._is_due = True
            self._poll_at(next_us, self._poll, step)
        else:
            process.completed(step, None)

    def simulate_each(self) -> None:
        """Exact mode: from now on every poll() is an event."""
        if not self._every:
            self._every = True
            self._poll_by_poll()

    def _poll_by_poll(self) -> None:
        if self._process.alive:
            now_us, loop = self._clock.now_us, self._loop
            loop.forget(now_us)
            self._process.polled()
            self._poll_at(loop.poll_after_us(now_us), self._poll_by_poll)

    def _poll_at(self, time_us: int, poll: Callable[..., None], *arguments: int) -> None:
        """Behind all else of that instant but the coordinator's timers: see `PollLoop`."""
        self._clock.in_order(time_us, self._order, poll, arguments)

    # -- max.poll.interval.ms --------------------------------------------------------------------

    def watch(self) -> None:
        """Follow the application's polls if one may come later than max.poll.interval.ms allows."""
        self._watch += 1
        if not self._config.profile.has_max_poll_interval:
            return
        if not self._loop.always_polls_within(self._process.poll_deadline_us(0) - _CLOCK_US):
            self._follow(self._watch)

    def _follow(self, watch: int) -> None:
        """Find the poll() that comes too late: look again when the next one that may is known."""
        if watch != self._watch or not self._process.alive:
            return
        now_us, loop = self._clock.now_us, self._loop
        last_us = loop.last_poll_us(now_us)
        if last_us is None:
            return
        next_us = loop.poll_after_us(now_us)
        late_us = self._process.poll_deadline_us(last_us)
        if late_us < next_us and late_us >= now_us:
            self._clock.at(late_us, self._too_late, watch)
        elif (again_us := loop.regular_until_us(now_us, late_us - last_us)) is not None:
            self._clock.at(max(again_us, next_us), self._follow, watch)

    def _too_late(self, watch: int) -> None:
        """No poll() came in time. A process that stands still finds that out when it goes on, unless its
        application polls at that instant."""
        if watch != self._watch or not self._process.alive:
            return
        now_us, loop = self._clock.now_us, self._loop
        if now_us < self._pauses.paused_until_us:
            self._clock.at(self._pauses.paused_until_us, self._too_late, watch)
            return
        if loop.last_poll_us(now_us) == now_us:
            self._follow(watch)
            return
        self._clock.at(loop.poll_after_us(now_us), self._follow, watch)
        self._leave()

    def interrupted_for(self, duration_us: int) -> None:
        """The operation that is under way keeps the application away from poll() for so long."""
        if not duration_us or not self._config.profile.has_max_poll_interval:
            return
        now_us = self._clock.now_us
        late_us = self._process.poll_deadline_us(now_us)
        if now_us + duration_us > late_us:
            self._clock.at(late_us, self._interrupted_too_long, self._process.step)

    def _interrupted_too_long(self, step: int) -> None:
        if step == self._process.step:
            self._leave()

    def _leave(self) -> None:
        """max.poll.interval.ms has passed: the heartbeat thread, if it runs, leaves the group; that of a
        static member falls silent."""
        process, membership = self._process, self._membership
        if not process.alive or not membership.heartbeating:
            return
        leave = membership.poll_timed_out()
        self._periodic_requests.follow_membership()
        if leave is not None:
            process.connection.send(leave, self._config.request_timeout_ms, lambda _: None)
        self.nudge()

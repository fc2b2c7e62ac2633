"""Rebalances that a thread asks for: when its assignment says so, or when its standbys have caught up."""

from __future__ import annotations

from groupstorm.assignors.streams.draft import wants_rebalance
from groupstorm.assignors.userdata.streams_assignment import AssignmentInfo
from groupstorm.clients.causes import RejoinCause
from groupstorm.clients.member_session import MemberState
from groupstorm.clients.streams.assignor import FollowUp
from groupstorm.clients.streams.tasks import TaskManager
from groupstorm.history.tasks import PROBING
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.trace.events import streams as events


class FollowUps:
    """The next rebalance that one thread will ask for, if any: every assignment brings another schedule."""

    __slots__ = ("_application", "_consumer", "_given_up", "_next", "_tasks", "_watched")

    def __init__(
        self, application: StreamsApplication, consumer: VirtualConsumer, tasks: TaskManager
    ) -> None:
        self._application = application
        self._consumer = consumer
        self._tasks = tasks
        self._next: FollowUp | None = None
        self._watched: set[int] = set()
        self._given_up = False

    def schedule(self, info: AssignmentInfo, follow_up: FollowUp | None) -> None:
        """Take over what a new assignment says. A thread asks once the time is past (StreamThread)."""
        self.drop()
        if follow_up is None or (self._given_up and follow_up.cause in PROBING):
            return
        application, clock = self._application, self._application.clock
        self._next = follow_up
        application.following_up.add(self)
        wait_us = None
        if follow_up.at_ms is None:
            listed = application.topology.numbers(info.watch)
            self._watched = listed or set(self._tasks.standbys)
        else:
            due_us = max(clock.now_us, (follow_up.at_ms + 1) * 1000 if follow_up.at_ms else 0)
            wait_us = due_us - clock.now_us
            clock.at(due_us, self._ask, follow_up)
        application.emit(
            events.FollowUpScheduled(application.group, self._consumer.name, wait_us, follow_up.cause)
        )

    def drop(self) -> None:
        """The thread asks for nothing any more."""
        self._next = None
        self._watched = set()
        self._application.following_up.discard(self)

    def give_up(self) -> None:
        """Probe no more, whatever assignments say: the run is to end."""
        self._given_up = True
        self.drop()

    def check_watched(self) -> None:
        """KIP-441's draft: ask for a rebalance if the standbys that the thread was told to watch have caught
        up."""
        if self._next is None or not self._watched or self._consumer.membership.rejoin_needed:
            return
        gaps = self._tasks.gaps(self._application.clock.now_us)
        if wants_rebalance(gaps, self._watched & gaps.keys(), self._application.near_zero):
            self._ask(self._next)

    def _ask(self, follow_up: FollowUp) -> None:
        """enforceRebalance, at the next poll(). A rebalance that is under way brings another schedule."""
        application, consumer = self._application, self._consumer
        if self._next is not follow_up or consumer.membership.state is not MemberState.STABLE:
            return
        self.drop()
        application.emit(events.FollowUpDue(application.group, consumer.name, follow_up.cause))
        application.invariants.asked(consumer.name)
        consumer.membership.request_rejoin(RejoinCause.FOLLOW_UP)
        consumer.nudge()

"""Rebalances that a thread asks for by itself: as its assignment says, or when standbys have caught up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupstorm.assignors.streams.draft import wants_rebalance
from groupstorm.assignors.userdata.streams_assignment import AssignmentInfo
from groupstorm.clients.causes import RejoinCause
from groupstorm.clients.standing import MemberState
from groupstorm.clients.streams import events
from groupstorm.clients.streams.assignor import FollowUp
from groupstorm.storms.figures.tasks import PROBING

if TYPE_CHECKING:
    from groupstorm.storms.streams.thread import StreamThread
    from groupstorm.storms.streams.world import StreamsWorld


class FollowUps:
    """The next rebalance that one thread will ask for, if any: every assignment brings another schedule."""

    __slots__ = ("_ceased", "_next", "_thread", "_watched", "_world")

    def __init__(self, world: StreamsWorld, thread: StreamThread) -> None:
        self._world = world
        self._thread = thread
        self._next: FollowUp | None = None
        self._watched: set[int] = set()
        self._ceased = False

    def schedule(self, info: AssignmentInfo, follow_up: FollowUp | None) -> None:
        """What a new assignment asks for. A thread asks once the time is past (StreamThread)."""
        self.drop()
        if follow_up is None or (self._ceased and follow_up.cause in PROBING):
            return
        thread, now_us = self._thread, self._world.clock.now_us
        self._next = follow_up
        self._world.following_up.add(thread)
        wait_us = None
        if follow_up.at_ms is None:
            listed = self._world.topology.numbers(info.watch)
            self._watched = listed or set(thread.tasks.standbys)
        else:
            due_us = max(now_us, (follow_up.at_ms + 1) * 1000 if follow_up.at_ms else 0)
            wait_us = due_us - now_us
            self._world.clock.at(due_us, self._ask, follow_up)
        thread.tell(events.FollowUpScheduled(self._world.group, thread.name, wait_us, follow_up.cause))

    def drop(self) -> None:
        """Nothing is asked for any more."""
        self._next = None
        self._watched = set()
        self._world.following_up.discard(self._thread)

    def cease(self) -> None:
        """Probe no more, whatever assignments say: the run is to end."""
        self._ceased = True
        self.drop()

    def look_after_watched(self) -> None:
        """KIP-441's draft: have the standbys caught up that the thread was told to watch?"""
        if self._next is None or not self._watched or self._thread.membership.rejoin_needed:
            return
        gaps = self._thread.tasks.gaps(self._world.clock.now_us)
        if wants_rebalance(gaps, self._watched & gaps.keys(), self._world.near_zero):
            self._ask(self._next)

    def _ask(self, follow_up: FollowUp) -> None:
        """enforceRebalance, at the next poll(). A rebalance that is under way brings another schedule."""
        thread = self._thread
        if self._next is not follow_up or thread.membership.state is not MemberState.STABLE:
            return
        self.drop()
        thread.tell(events.FollowUpDue(self._world.group, thread.name, follow_up.cause))
        self._world.streams_checkers.asked(thread.name)
        thread.membership.request_rejoin(RejoinCause.FOLLOW_UP)
        thread.nudge()

"""Members whose periodic requests are computed, and what ends that for all of them or for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState


class Computed(Protocol):
    """Requests of one member that are computed."""

    def wake(self) -> None:
        """Send them from now on, and leave `RestingMembers`."""
        ...


#: By member id.
Requests = dict[str, Computed]


class RestingMembers:
    """The members whose requests change nothing until something happens to the group, which wakes them.

    ``heartbeats`` and ``commits``: the requests that rest. ``by_hand``: the calls that end
    commits by hand, which are computed all the time until the coordinator refuses them.
    """

    def __init__(self) -> None:
        self.heartbeats: Requests = {}
        self.commits: Requests = {}
        self.by_hand: dict[str, Callable[[], None]] = {}

    def wake_all(self) -> None:
        """Every request may be answered differently from now on, or its response may have to wait."""
        self.wake_heartbeats()
        for commits in tuple(self.commits.values()):
            commits.wake()

    def wake_heartbeats(self) -> None:
        """Every heartbeat may be answered differently from now on."""
        for heartbeats in tuple(self.heartbeats.values()):
            heartbeats.wake()

    def group_changed(self, event: events.Event) -> None:
        """Wake those whose requests the coordinator may answer differently, beside those that a write wakes.

        While a round is open it accepts the commits of the generation before.
        """
        if isinstance(event, events.GroupStateChanged):
            self.wake_heartbeats()
            if event.state == GroupState.COMPLETING_REBALANCE:
                self.wake_all()
                for stop in tuple(self.by_hand.values()):
                    stop()  # the member has not joined: its generation is over
        elif isinstance(event, events.MemberRemoved):
            self._gone(event.member_id)
        elif isinstance(event, events.MemberReplaced):
            self._gone(event.previous_member_id)

    def _gone(self, member_id: str) -> None:
        for requests in (self.heartbeats, self.commits):
            if member_id in requests:
                requests[member_id].wake()
        if member_id in self.by_hand:
            self.by_hand[member_id]()

"""Members whose periodic requests are computed, and what ends that for all of them or for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState

#: The states in which a heartbeat learns of the round, or brings a consumer group further. Commits of the
#: generation before are accepted.
_MOVING = frozenset({GroupState.PREPARING_REBALANCE, "Assigning", "Reconciling"})


class Requests(Protocol):
    """The periodic requests of one process."""

    def wake(self) -> None:
        """Send them from now on."""
        ...

    def wake_heartbeats(self) -> None:
        """Send heartbeats from now on."""
        ...


class RestingMembers:
    """The members whose requests change nothing until something happens to the group, which wakes them.

    Commits by hand are computed all the time, until the coordinator refuses them.

    ``is_possible``: the group does not move.
    """

    __slots__ = ("_by_member_id", "_committing", "is_possible")

    def __init__(self) -> None:
        self._by_member_id: dict[str, Requests] = {}
        #: Member id -> the call that ends its commits by hand: the coordinator refuses them from then on.
        self._committing: dict[str, Callable[[], None]] = {}
        self.is_possible = True

    def add(self, member_id: str, requests: Requests) -> None:
        self._by_member_id[member_id] = requests

    def remove(self, member_id: str) -> None:
        self._by_member_id.pop(member_id, None)

    def add_committing(self, member_id: str, stop: Callable[[], None]) -> None:
        self._committing[member_id] = stop

    def remove_committing(self, member_id: str) -> None:
        self._committing.pop(member_id, None)

    def wake_all(self) -> None:
        """Every request may be answered differently from now on, or its response may have to wait."""
        for requests in tuple(self._by_member_id.values()):
            requests.wake()

    def wake_heartbeats(self) -> None:
        """Every heartbeat may be answered differently from now on."""
        for requests in tuple(self._by_member_id.values()):
            requests.wake_heartbeats()

    def group_changed(self, event: events.Event) -> None:
        """Wake those whose requests the coordinator may answer differently."""
        if isinstance(event, events.GroupStateChanged):
            is_over = event.state == GroupState.COMPLETING_REBALANCE
            self.is_possible = not is_over and event.state not in _MOVING
            if is_over:
                self.wake_all()
                for stop in tuple(self._committing.values()):
                    stop()  # the member has not joined: its generation is over
            elif not self.is_possible:
                self.wake_heartbeats()
        elif isinstance(event, events.MemberReconciled):
            self._wake(event.member_id)
        elif isinstance(event, events.MemberRemoved):
            self._gone(event.member_id)
        elif isinstance(event, events.MemberReplaced):
            self._gone(event.previous_member_id)

    def _gone(self, member_id: str) -> None:
        self._wake(member_id)
        if member_id in self._committing:
            self._committing[member_id]()

    def _wake(self, member_id: str) -> None:
        requests = self._by_member_id.get(member_id)
        if requests is not None:
            requests.wake()

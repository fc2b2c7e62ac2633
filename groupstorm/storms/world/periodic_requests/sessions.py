"""Sessions whose heartbeats are computed: what the coordinator learns when one is about to end.

`SessionArbiter` is asked by the coordinator, and makes requests real when the group changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.storms.world.instants import ORDER_BITS
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState

_REBALANCING = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE})

#: The states of a consumer group in which heartbeats bring it further.
_MOVING = frozenset({"Assigning", "Reconciling"})


class Requests(Protocol):
    """The periodic requests of one process, as sessions see them."""

    session_timeout_ms: int

    @property
    def alive(self) -> bool: ...

    def last_contact_ms(self, deadline_ms: int) -> int | None: ...

    def silent_since(self) -> int | None: ...

    def make_next_real(self, generation_over: bool) -> None: ...

    def epoch_changes(self) -> None: ...

    def write_holds_responses(self) -> None: ...


class RequestingProcess(Protocol):
    """A process that sends periodic requests."""

    @property
    def periodic_requests(self) -> Requests: ...


class SessionArbiter:
    """The sessions of all members. ``processes`` are those that run, by name."""

    __slots__ = ("_asked", "_ending", "_processes", "by_member_id")

    def __init__(self, processes: Mapping[str, RequestingProcess]) -> None:
        self._processes = processes
        #: The requests of every member that has sent any under this id.
        self.by_member_id: dict[str, Requests] = {}
        #: A deadline, and the members whose sessions end then.
        self._ending: tuple[int, list[str]] = (-1, [])
        #: Those of them that the coordinator has asked about: a member with a parked JoinGroup has no timer.
        self._asked: set[str] = set()

    def last_contact_ms(self, _group: str, member_id: str, deadline_ms: int) -> int | None:
        """The coordinator asks: when did a request of this member last arrive (`LastContact`)?

        Sessions that end at one millisecond end in the order in which the members fell silent.
        """
        requests = self.by_member_id.get(member_id)
        if requests is None:
            return None
        session_ms = requests.session_timeout_ms
        last_ms = requests.last_contact_ms(deadline_ms)
        if last_ms == IN_TOUCH or (last_ms is not None and last_ms + session_ms > deadline_ms):
            return last_ms
        if self._ending[0] != deadline_ms:
            self._ending = (deadline_ms, self._sessions_ending_at(deadline_ms))
            self._asked.clear()
        ending = self._ending[1]
        if member_id in ending and self._waits_for_others(member_id, ending):
            return deadline_ms - session_ms  # ask again behind the others
        ending[:] = [other for other in ending if other != member_id]
        return None

    def _waits_for_others(self, member_id: str, ending: list[str]) -> bool:
        """Whether a member that fell silent earlier has a timer, too: only if the coordinator asked about it
        before it asks about this one for the second time."""
        earlier = ending[: ending.index(member_id)]
        if member_id not in self._asked:
            self._asked.add(member_id)
            return bool(earlier)
        return any(other in self._asked for other in earlier)

    def _sessions_ending_at(self, deadline_ms: int) -> list[str]:
        """Members whose sessions end at this millisecond; first the one that has been silent longest."""
        ending = []
        for member_id, requests in self.by_member_id.items():
            contact = requests.silent_since()
            if contact is None:
                continue
            if (contact >> ORDER_BITS) // 1000 + requests.session_timeout_ms == deadline_ms:
                ending.append((contact, member_id))
        return [member_id for _, member_id in sorted(ending)]

    def group_changed(self, event: events.Event) -> None:
        """The coordinator may answer heartbeats differently from now on: the next ones become real."""
        if isinstance(event, events.GroupStateChanged):
            if event.state in _REBALANCING or event.state in _MOVING:
                generation_over = event.state == GroupState.COMPLETING_REBALANCE
                for process in tuple(self._processes.values()):
                    process.periodic_requests.make_next_real(generation_over)
        elif isinstance(event, events.MemberReconciled):
            if (requests := self.by_member_id.get(event.member_id)) is not None:
                requests.epoch_changes()
        elif isinstance(event, events.MemberRemoved):
            self._member_gone(event.member_id)
        elif isinstance(event, events.MemberReplaced):
            self._member_gone(event.previous_member_id)

    def write_holds_responses(self) -> None:
        """The coordinator has begun a write that takes long or fails: the responses to what arrives wait."""
        for process in tuple(self._processes.values()):
            process.periodic_requests.write_holds_responses()

    def _member_gone(self, member_id: str) -> None:
        requests = self.by_member_id.pop(member_id, None)
        if requests is not None and requests.alive:
            requests.make_next_real(generation_over=True)

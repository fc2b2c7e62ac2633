"""The coordinator's events of one consumer group (KIP-848), inferred from its members' heartbeats. Sans-IO.

As `inferred_coordinator`, which has the classic protocol; every member of the group has to be ours. The
events are those of the emulated coordinator, with these differences:

* an event comes when a member receives the response, so one network delay later;
* the group epoch is the highest member epoch: nobody sees it before a member gets there;
* a target counts every member, because only the coordinator knows whose partitions change;
* a member that waits for partitions of others looks stable; its group is reconciling until every partition of
  its topics is assigned;
* a member whose process has died is removed when the group epoch counts up without another cause.

Responses to two members may arrive in another order than the coordinator sent them. If a member receives a
partition that another one is giving up, with a heartbeat whose response is not here yet, the coordinator has
that heartbeat: what it says comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from groupstorm.clients.consumer_group.membership import JOINS, LEAVES
from groupstorm.clients.consumer_group.reactions import FENCING
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    Request,
    Response,
)
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause

_EMPTY, _ASSIGNING, _RECONCILING, _STABLE = "Empty", "Assigning", "Reconciling", "Stable"
_UNREVOKED = "UNREVOKED_PARTITIONS"
_MEMBER_STABLE = "STABLE"

_Owned = frozenset[tuple[UUID, int]]


@dataclass(slots=True)
class _Member:
    client_id: str
    instance: str | None
    epoch: int = 0
    #: What the member has told that it owns, and what the coordinator has assigned to it.
    owned: _Owned = frozenset()
    assigned: _Owned = frozenset()
    told: events.MemberReconciled | None = None

    @property
    def revoking(self) -> _Owned:
        return self.owned - self.assigned


class InferredConsumerGroup:
    """The coordinator of one group. ``emit`` takes the events.

    ``topic_names``: topic id -> name; ``topics``: name -> number of partitions, of the group's topics.
    """

    def __init__(
        self,
        group: str,
        emit: Callable[[events.Event], None],
        topic_names: Callable[[], Mapping[UUID, str]],
        topics: Callable[[], Mapping[str, int]],
    ) -> None:
        self.state = _EMPTY
        self.epoch = 0
        self._group = group
        self._emit = emit
        self._topic_names = topic_names
        self._topics = topics
        self._members: dict[str, _Member] = {}
        self._target_epoch = 0
        #: Clients whose process has died, and how many members have joined since the last epoch.
        self._gone: set[str] = set()
        self._joined = 0
        #: Member id -> its heartbeat that has no response yet.
        self._sent: dict[str, ConsumerGroupHeartbeat] = {}

    def member_gone(self, client_id: str) -> None:
        """The process has died: its session goes on for a while."""
        self._gone.add(client_id)

    def request_sent(self, request: Request) -> None:
        """A member sends ``request``."""
        if isinstance(request, ConsumerGroupHeartbeat):
            self._sent[request.member_id] = request

    def response_received(self, request: Request, response: Response | Disconnected) -> None:
        """A member received the response to ``request``, or lost its connection."""
        if not isinstance(request, ConsumerGroupHeartbeat):
            return
        self._sent.pop(request.member_id, None)
        if not isinstance(response, ConsumerGroupHeartbeatResponse):
            if request.member_epoch == LEAVES:
                self.member_gone(request.client_id)  # the coordinator has received it, or the session ends
            return
        cause = Cause.HEARTBEAT
        if response.error in FENCING and request.member_id in self._members:
            self._remove(request.member_id, Cause.SESSION_EXPIRED)
        elif response.error is Error.NONE:
            if request.member_epoch == LEAVES:
                self._left(request.member_id)
                cause = Cause.LEFT
            elif request.member_epoch >= JOINS:
                self._heartbeat(request, response)
        self._follow(cause)

    # -- parts -----------------------------------------------------------------------------------

    def _heartbeat(self, request: ConsumerGroupHeartbeat, response: ConsumerGroupHeartbeatResponse) -> None:
        member = self._members.get(request.member_id)
        if member is None:
            member = self._join(request)
        if request.owned is not None:
            member.owned = _pairs(dict(request.owned))
        member.epoch = response.member_epoch
        if response.assignment is not None:
            member.assigned = _pairs(response.assignment)
            self._take_from_others(request.member_id, member.assigned)
        self._reached(response.member_epoch)
        self._tell(request.member_id, member)

    def _take_from_others(self, member_id: str, partitions: _Owned) -> None:
        """The coordinator has the heartbeats by which others have given these partitions up."""
        for other_id, sent in tuple(self._sent.items()):
            other = self._members.get(other_id)
            if other is None or other_id == member_id or not partitions & (other.owned | other.assigned):
                continue
            if sent.member_epoch == LEAVES:
                self._left(other_id)
            elif sent.owned is not None:
                other.owned = _pairs(dict(sent.owned))
                self._tell(other_id, other)

    def _join(self, request: ConsumerGroupHeartbeat) -> _Member:
        instance, member_id = request.group_instance_id, request.member_id
        self._gone.discard(request.client_id)
        who = (self._group, request.client_id, member_id)
        known = [one for one, each in self._members.items() if instance and each.instance == instance]
        if known and instance is not None:
            member = self._members[member_id] = self._members.pop(known[0])
            member.client_id, member.owned, member.told = request.client_id, frozenset(), None
            self._emit(events.MemberReplaced(*who, known[0], instance, self.epoch))
            return member
        self._joined += 1
        member = self._members[member_id] = _Member(request.client_id, instance)
        cause = Cause.NEW_MEMBER if instance is None else Cause.STATIC_MEMBER
        self._emit(events.MemberAdded(*who, instance, self.epoch + 1, cause))
        return member

    def _left(self, member_id: str) -> None:
        if member_id in self._members:
            self.epoch += 1
            self._remove(member_id, Cause.LEFT)
            self._emit(events.GroupEpochBumped(self._group, self.epoch))

    def _reached(self, epoch: int) -> None:
        """A member has reached ``epoch``: its target is there."""
        if epoch <= self._target_epoch:
            return
        unexplained = epoch - self.epoch - self._joined
        self._joined = max(0, -unexplained)
        if epoch > self.epoch:
            self.epoch = epoch
            if unexplained > 0:
                for member_id in [one for one, each in self._members.items() if each.client_id in self._gone]:
                    self._remove(member_id, Cause.SESSION_EXPIRED)
                self._gone.clear()
            self._emit(events.GroupEpochBumped(self._group, epoch))
        self._target_epoch = epoch
        self._emit(events.TargetAssigned(self._group, epoch, len(self._members)))

    def _remove(self, member_id: str, cause: Cause) -> None:
        member = self._members.pop(member_id)
        who = (self._group, member.client_id, member_id, member.instance)
        self._emit(events.MemberRemoved(*who, self.epoch, cause))

    def _tell(self, member_id: str, member: _Member) -> None:
        progress = events.MemberReconciled(
            self._group,
            member.client_id,
            member_id,
            member.epoch,
            _UNREVOKED if member.revoking else _MEMBER_STABLE,
            self._listed(member.assigned),
            self._listed(member.revoking),
        )
        if progress != member.told:
            member.told = progress
            self._emit(progress)

    def _follow(self, cause: Cause) -> None:
        """The state of the group follows from its members."""
        members = self._members.values()
        if not members:
            state = _EMPTY
        elif self._target_epoch < self.epoch:
            state = _ASSIGNING
        elif all(member.epoch == self.epoch and not member.revoking for member in members) and sum(
            len(member.assigned) for member in members
        ) == sum(self._topics().values()):
            state = _STABLE
        else:
            state = _RECONCILING
        if state != self.state:
            before, self.state = self.state, state
            rest = (self.epoch, cause, None, None, None, len(members))
            self._emit(events.GroupStateChanged(self._group, before, state, *rest))

    def _listed(self, partitions: _Owned) -> tuple[str, ...]:
        names = self._topic_names()
        named = sorted((names[topic], number) for topic, number in partitions if topic in names)
        return tuple([f"{name}-{number}" for name, number in named])


def _pairs(partitions: Mapping[UUID, tuple[int, ...]]) -> _Owned:
    return frozenset((topic, number) for topic, numbers in partitions.items() for number in numbers)

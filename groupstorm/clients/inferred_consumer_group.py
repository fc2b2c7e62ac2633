"""The coordinator's events of one consumer group (KIP-848), inferred from its members' heartbeats. Sans-IO.

As `inferred_coordinator`, which has the classic protocol; every member of the group has to be ours. The
events are those of the emulated coordinator, with these differences:

* an event comes when a member receives the response, so one network delay later;
* the group epoch is the highest member epoch: nobody sees it before a member gets there;
* a target counts every member, because only the coordinator knows whose partitions change;
* a member that waits for partitions of others looks stable; its group is reconciling until every partition of
  its topics is assigned;
* a member whose process has died is removed when the group epoch counts up without another cause;
* a member that stands still is removed when the group epoch counts up so, or another one gets its partitions.

Responses to two members may arrive in another order than the coordinator sent them. If a member receives a
partition that another one is giving up, with a heartbeat whose response is not here yet, the coordinator has
that heartbeat: what it says comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from groupstorm.clients.consumer_group.membership import JOINS, LEAVES
from groupstorm.clients.error_tables import FENCING
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

Owned = frozenset[tuple[UUID, int]]


@dataclass(slots=True)
class InferredMember:
    """``classic``: it speaks the classic protocol, in a group that was upgraded."""

    client_id: str
    instance: str | None
    classic: bool = False
    epoch: int = 0
    #: The partitions that the member says it owns, and those that the coordinator has assigned to it.
    owned: Owned = frozenset()
    assigned: Owned = frozenset()
    told: events.MemberReconciled | None = None

    @property
    def revoking(self) -> Owned:
        return frozenset() if self.classic else self.owned - self.assigned

    def holds(self, partitions: Owned) -> bool:
        """Whether the coordinator can give none of these to others: it has not heard that they are free."""
        return not partitions.isdisjoint(self.owned | self.assigned)


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
        self.members: dict[str, InferredMember] = {}
        self._group = group
        self._emit = emit
        self._topic_names = topic_names
        self._topics = topics
        self._target_epoch = 0
        #: Clients whose process has died, and how many members have joined since the last epoch.
        self._gone: set[str] = set()
        self._joined = 0
        #: Member id -> what it owns, as its request that has no response yet tells; None: it leaves.
        self._sent: dict[str, Owned | None] = {}

    def upgrade(self, state: str, generation: int, members: Mapping[str, InferredMember]) -> None:
        """The group was a classic one: its generation becomes every epoch, its members stay."""
        self.state, self.epoch, self._target_epoch = state, generation, generation
        for member_id, member in members.items():
            member.classic, member.epoch = True, generation
            self.members[member_id] = member

    def member_gone(self, client_id: str) -> None:
        """The process has died: its session goes on for a while."""
        self._gone.add(client_id)

    # -- requests of the new protocol --------------------------------------------------------------

    def request_sent(self, request: Request) -> None:
        """A member sends ``request``."""
        if isinstance(request, ConsumerGroupHeartbeat):
            if request.member_epoch == LEAVES:
                self._sent[request.member_id] = None
            elif request.owned is not None:
                self.tells(request.member_id, _pairs(dict(request.owned)))

    def response_received(self, request: Request, response: Response | Disconnected) -> None:
        """A member received the response to ``request``, or lost its connection."""
        if not isinstance(request, ConsumerGroupHeartbeat):
            return
        if not isinstance(response, ConsumerGroupHeartbeatResponse):
            # the coordinator may have received what the request says
            if request.member_epoch == LEAVES:
                self.member_gone(request.client_id)
                self.answered(request.member_id)
        elif response.error in FENCING:
            self.fenced(request.member_id)
        elif response.error is Error.NONE and request.member_epoch == LEAVES:
            self.left(request.member_id)
        elif response.error is Error.NONE and request.member_epoch >= JOINS:
            member = self.known(request.member_id, request.client_id, request.group_instance_id)
            if request.owned is not None:
                member.owned = _pairs(dict(request.owned))
            given = None if response.assignment is None else _pairs(response.assignment)
            self.reached(request.member_id, response.member_epoch, given)
        else:
            self.answered(request.member_id)

    # -- what members of either protocol do --------------------------------------------------------

    def tells(self, member_id: str, owned: Owned) -> None:
        """A request is on its way that says what the member owns."""
        self._sent[member_id] = owned

    def answered(self, member_id: str) -> None:
        """A response came that changes nothing."""
        self._sent.pop(member_id, None)

    def known(
        self, member_id: str, client_id: str, instance: str | None, classic: bool = False
    ) -> InferredMember:
        """The member, which joins if the group does not have it."""
        self._gone.discard(client_id)
        member = self.members.get(member_id)
        return self._join(member_id, client_id, instance, classic) if member is None else member

    def reached(self, member_id: str, epoch: int, given: Owned | None) -> None:
        """The member knows its epoch, and what it is given if that has changed."""
        self.answered(member_id)
        member = self.members[member_id]
        member.epoch = epoch
        silent: list[str] = []
        if given is not None:
            member.assigned = given
            self._take_from_others(member_id, given)
            silent = [one for one, each in self.members.items() if one != member_id and each.holds(given)]
            self._gone.update(self.members[one].client_id for one in silent)
        self._bump(epoch)
        for one in silent:
            if one in self.members:
                self._gone.discard(self.members[one].client_id)
                self.remove(one, Cause.SESSION_EXPIRED)
        self._tell(member_id, member)
        self._follow(Cause.HEARTBEAT)

    def left(self, member_id: str) -> None:
        """The member has left."""
        self.answered(member_id)
        if member_id in self.members:
            self.epoch += 1
            self.remove(member_id, Cause.LEFT)
            self._emit(events.GroupEpochBumped(self._group, self.epoch))
        self._follow(Cause.LEFT)

    def fenced(self, member_id: str) -> None:
        """The coordinator does not have the member any more."""
        self.answered(member_id)
        if member_id in self.members:
            self.remove(member_id, Cause.SESSION_EXPIRED)
        self._follow(Cause.HEARTBEAT)

    def remove(self, member_id: str, cause: Cause) -> None:
        """The member is out of the group; its epoch does not follow from that alone."""
        member = self.members.pop(member_id)
        who = (self._group, member.client_id, member_id, member.instance)
        self._emit(events.MemberRemoved(*who, self.epoch, cause))

    # -- parts -----------------------------------------------------------------------------------

    def _take_from_others(self, member_id: str, partitions: Owned) -> None:
        """The coordinator has the requests by which others have given these partitions up."""
        for other_id, owned in tuple(self._sent.items()):
            other = self.members.get(other_id)
            if other is None or other_id == member_id or not other.holds(partitions):
                continue
            if owned is None:
                self.left(other_id)
                continue
            other.owned = owned
            if other.classic:
                other.assigned &= owned
            self._tell(other_id, other)

    def _join(self, member_id: str, client_id: str, instance: str | None, classic: bool) -> InferredMember:
        who = (self._group, client_id, member_id)
        replaced = [one for one, each in self.members.items() if instance and each.instance == instance]
        if replaced and instance is not None:
            member = self.members[member_id] = self.members.pop(replaced[0])
            member.client_id, member.owned, member.told = client_id, frozenset(), None
            member.classic = classic
            self._emit(events.MemberReplaced(*who, replaced[0], instance, self.epoch))
            return member
        self._joined += 1
        member = self.members[member_id] = InferredMember(client_id, instance, classic)
        cause = Cause.NEW_MEMBER if instance is None else Cause.STATIC_MEMBER
        self._emit(events.MemberAdded(*who, instance, self.epoch + 1, cause))
        return member

    def _bump(self, epoch: int) -> None:
        """A member has reached ``epoch``: its target is there."""
        if epoch <= self._target_epoch:
            return
        unexplained = epoch - self.epoch - self._joined
        self._joined = max(0, -unexplained)
        if epoch > self.epoch:
            self.epoch = epoch
            if unexplained > 0:
                for member_id in [one for one, each in self.members.items() if each.client_id in self._gone]:
                    self.remove(member_id, Cause.SESSION_EXPIRED)
                self._gone.clear()
            self._emit(events.GroupEpochBumped(self._group, epoch))
        self._target_epoch = epoch
        self._emit(events.TargetAssigned(self._group, epoch, len(self.members)))

    def _tell(self, member_id: str, member: InferredMember) -> None:
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
        members = self.members.values()
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

    def _listed(self, partitions: Owned) -> tuple[str, ...]:
        names = self._topic_names()
        named = sorted((names[topic], number) for topic, number in partitions if topic in names)
        return tuple([f"{name}-{number}" for name, number in named])


def _pairs(partitions: Mapping[UUID, tuple[int, ...]]) -> Owned:
    return frozenset((topic, number) for topic, numbers in partitions.items() for number in numbers)

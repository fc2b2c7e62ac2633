"""The coordinator's events of one group, inferred from the members' requests and responses. Sans-IO.

A real broker does not report what its coordinator does. If all members of a group are ours, the responses
that they receive say nearly everything: when a generation begins, who leads it, who is in it. The events are
those of the emulated coordinator, with four differences:

* an event comes when a member receives the response, so one network delay later;
* a member whose session has expired is removed when it is told so, or when the next generation begins;
* the cause of a round is known only if a member's request explains it;
* the join phase of an empty group counts as its initial delay, also if that is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping

from groupstorm.assignors.userdata import TopicPartition, UserDataError, decode_assignment
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


class ClassicResponses(ABC):
    """Tells the responses of the classic protocol apart. ``emit`` takes the events in their order."""

    def __init__(self, group: str, emit: Callable[[events.Event], None]) -> None:
        self._group = group
        self._emit = emit

    def _classic_received(
        self, request: messages.Request, response: messages.Response | Disconnected
    ) -> None:
        if isinstance(request, messages.JoinGroup) and isinstance(response, messages.JoinGroupResponse):
            self._join_received(request, response)
            who = (self._group, request.client_id, response.member_id)
            self._emit(events.JoinAnswered(*who, response.generation, _name(response.error)))
        elif isinstance(request, messages.SyncGroup) and isinstance(response, messages.SyncGroupResponse):
            client_id, partitions = self._sync_received(request, response)
            who = (self._group, client_id, request.member_id)
            self._emit(events.SyncAnswered(*who, request.generation, _name(response.error), partitions))
        elif isinstance(request, messages.Heartbeat) and isinstance(response, messages.HeartbeatResponse):
            self._heartbeat_received(request, response.error)
        elif isinstance(response, messages.LeaveGroupResponse) and response.error is Error.NONE:
            for member in response.members:
                if member.error is Error.NONE:
                    self._member_left(member.member_id)

    @abstractmethod
    def _join_received(self, request: messages.JoinGroup, response: messages.JoinGroupResponse) -> None: ...

    @abstractmethod
    def _sync_received(
        self, request: messages.SyncGroup, response: messages.SyncGroupResponse
    ) -> tuple[str, tuple[str, ...] | None]:
        """Returns the member's client id and its partitions; None if it has no assignment."""

    @abstractmethod
    def _heartbeat_received(self, request: messages.Heartbeat, error: Error) -> None: ...

    @abstractmethod
    def _member_left(self, member_id: str) -> None: ...


class InferredCoordinator(ClassicResponses):
    """The coordinator of one group."""

    def __init__(self, group: str, emit: Callable[[events.Event], None]) -> None:
        super().__init__(group, emit)
        self.state = EMPTY
        self.generation = 0
        self._leader: str | None = None
        self._from_empty = False
        #: The members of the group: member id -> client id, and group.instance.id -> member id.
        self.members: dict[str, str] = {}
        self._static: dict[str, str] = {}
        self._joining: dict[str, messages.JoinGroup] = {}

    @property
    def instances(self) -> dict[str, str]:
        """Static members: member id -> group.instance.id."""
        return {member_id: instance for instance, member_id in self._static.items()}

    def downgrade(
        self, state: str, generation: int, members: Mapping[str, str], instances: Mapping[str, str]
    ) -> None:
        """The group was a consumer group in ``state``: its epoch becomes the generation, its classic members
        stay, and it is Stable.

        ``members``: member id -> client id; ``instances``: group.instance.id -> member id.
        """
        self.state, self.generation = STABLE, generation
        self.members.update(members)
        self._static.update(instances)
        if state != STABLE.value:
            rest = (generation, Cause.DOWNGRADED.value, None, None, None, len(members))
            self._emit(events.GroupStateChanged(self._group, state, STABLE.value, *rest))

    def prepare(self, cause: Cause) -> None:
        """A round begins that no request has opened."""
        self._change_state(PREPARING, cause, None)

    def request_sent(self, request: messages.Request) -> None:
        """A member sends ``request``."""
        if isinstance(request, messages.JoinGroup):
            self._joining[request.client_id] = request
            cause = self._cause_of(request)
            if cause is not None and self.state is not PREPARING:
                self._change_state(PREPARING, cause, request.member_id or None)

    def response_received(
        self, request: messages.Request, response: messages.Response | Disconnected
    ) -> None:
        """The member received the response to ``request``, or lost its connection."""
        if isinstance(request, messages.JoinGroup):
            self._joining.pop(request.client_id, None)
        if isinstance(request, messages.OffsetCommit) and isinstance(response, messages.OffsetCommitResponse):
            for error in {error for _, _, error in response.partitions}:
                self._notice(error, request.member_id, request.generation)
        self._classic_received(request, response)

    # -- parts -----------------------------------------------------------------------------------

    def _cause_of(self, request: messages.JoinGroup) -> Cause | None:
        """Why this JoinGroup opens a round; None if only the response can show it."""
        if request.group_instance_id is not None:
            return None if request.group_instance_id in self._static else Cause.STATIC_MEMBER
        if not request.member_id:
            return None  # the coordinator answers MEMBER_ID_REQUIRED first
        if request.member_id not in self.members:
            return Cause.PENDING_MEMBER
        return Cause.LEADER_REJOINED if request.member_id == self._leader else None

    def _change_state(
        self, state: GroupState, cause: Cause, member_id: str | None, protocol: str | None = None
    ) -> None:
        before, self.state = self.state, state
        if state is PREPARING:
            self._from_empty = before is EMPTY
        leader = self._leader if state is COMPLETING else None
        change = (self._group, before.value, state.value, self.generation, cause.value)
        self._emit(events.GroupStateChanged(*change, member_id, protocol, leader, len(self.members)))

    def _join_received(self, request: messages.JoinGroup, response: messages.JoinGroupResponse) -> None:
        if response.error is Error.NONE:
            self._add_or_replace(request, response)
            if response.generation > self.generation:
                self._begin_generation(response)
            if response.members:
                self._remove_absent({member.member_id for member in response.members})

    def _add_or_replace(self, request: messages.JoinGroup, response: messages.JoinGroupResponse) -> None:
        instance, member_id = request.group_instance_id, response.member_id
        previous = None if instance is None else self._static.get(instance)
        if instance is not None:
            self._static[instance] = member_id
        if previous is not None and instance is not None and previous != member_id:
            self.members.pop(previous, None)
            self.members[member_id] = request.client_id
            replaced = (previous, instance, response.generation)
            self._emit(events.MemberReplaced(self._group, request.client_id, member_id, *replaced))
        elif member_id not in self.members:
            self.members[member_id] = request.client_id
            cause = Cause.STATIC_MEMBER if instance is not None else Cause.PENDING_MEMBER
            added = (instance, response.generation, cause.value)
            self._emit(events.MemberAdded(self._group, request.client_id, member_id, *added))

    def _begin_generation(self, response: messages.JoinGroupResponse) -> None:
        """The round is closed: this is the first of its answers."""
        if self.state is not PREPARING:
            self._change_state(PREPARING, Cause.MEMBER_UPDATED, None)
        self.generation = response.generation
        self._leader = response.leader
        cause = Cause.INITIAL_DELAY if self._from_empty else Cause.ALL_JOINED
        self._change_state(COMPLETING, cause, None, response.protocol)

    def _remove_absent(self, present: Collection[str]) -> None:
        """The leader's response lists the members: any other member has been removed, its session expired."""
        joining = {request.member_id for request in self._joining.values()}
        for member_id in [one for one in self.members if one not in present and one not in joining]:
            self._remove(member_id, Cause.SESSION_EXPIRED)

    def _sync_received(
        self, request: messages.SyncGroup, response: messages.SyncGroupResponse
    ) -> tuple[str, tuple[str, ...] | None]:
        partitions: tuple[str, ...] | None = None
        if response.error is Error.NONE:
            if self.state is COMPLETING and request.generation == self.generation:
                self._change_state(STABLE, Cause.ASSIGNED, self._leader)
            assigned = assigned_partitions(response)
            partitions = None if assigned is None else tuple(map(str, assigned))
        else:
            self._notice(response.error, request.member_id, request.generation)
        return self.members.get(request.member_id, request.client_id), partitions

    def _heartbeat_received(self, request: messages.Heartbeat, error: Error) -> None:
        self._notice(error, request.member_id, request.generation)

    def _notice(self, error: Error, member_id: str, generation: int) -> None:
        """REBALANCE_IN_PROGRESS in the current generation: another member has opened a round.
        UNKNOWN_MEMBER_ID: the coordinator has removed the member."""
        if error is Error.UNKNOWN_MEMBER_ID:
            self._member_left(member_id, Cause.SESSION_EXPIRED)
        elif (
            error is Error.REBALANCE_IN_PROGRESS
            and generation == self.generation
            and self.state in (STABLE, COMPLETING)
        ):
            self._change_state(PREPARING, Cause.SESSION_EXPIRED, None)

    def _member_left(self, member_id: str, cause: Cause = Cause.LEFT) -> None:
        if member_id not in self.members:
            return
        self._remove(member_id, cause)
        if self.state in (STABLE, COMPLETING):
            self._change_state(PREPARING, cause, member_id)
        if not self.members and not self._joining and self.state is PREPARING:
            self.generation += 1
            self._change_state(EMPTY, Cause.NO_MEMBERS, None)

    def _remove(self, member_id: str, cause: Cause) -> None:
        member = self.members.pop(member_id)
        instance = next((name for name, known in self._static.items() if known == member_id), None)
        if instance is not None:
            del self._static[instance]
        self._emit(
            events.MemberRemoved(self._group, member, member_id, instance, self.generation, cause.value)
        )


def assigned_partitions(response: messages.SyncGroupResponse) -> tuple[TopicPartition, ...] | None:
    """The partitions of an assignment; None if there are no bytes."""
    try:
        return tuple(decode_assignment(response.assignment).partitions)
    except UserDataError:
        return None


def _name(error: Error) -> str | None:
    return None if error is Error.NONE else error.name

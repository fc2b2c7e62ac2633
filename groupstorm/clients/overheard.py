"""A coordinator as its members hear it: events of a group, told by requests and answers alone. Sans-IO.

A real broker does not say what its coordinator does. Where all members of a group are ours, what it
answers them says nearly everything: a generation that begins, who leads, who is in it. What is told is
what the emulated coordinator tells, with three differences: it is told when a member hears of it, so a
network's way later; a member that was removed for its silence is missed when the next generation begins;
and why a round began is known only as far as a member's request explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from groupstorm.assignors.userdata import UserDataError, decode_assignment
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator import events
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroupResponse,
    Request,
    Response,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.coordinator.states import Cause, GroupState

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


class OverheardGroup:
    """One group. ``emit`` takes the events in their order."""

    def __init__(self, group: str, emit: Callable[[events.Event], None]) -> None:
        self.state = EMPTY
        self.generation = 0
        self._group = group
        self._emit = emit
        self._leader: str | None = None
        #: Member id -> client id, and instance -> member id, of those who are in the group.
        self._members: dict[str, str] = {}
        self._static: dict[str, str] = {}
        self._joining: dict[str, JoinGroup] = {}

    def sent(self, request: Request) -> None:
        """A member's request leaves."""
        if isinstance(request, JoinGroup):
            self._joining[request.client_id] = request
            cause = self._cause_of(request)
            if cause is not None and self.state is not PREPARING:
                self._prepare(cause, request.member_id or None)

    def answered(self, request: Request, response: Response | Disconnected) -> None:
        """Its answer has come, or never will."""
        if isinstance(request, JoinGroup):
            self._joining.pop(request.client_id, None)
            if isinstance(response, JoinGroupResponse):
                self._join_answered(request, response)
        elif isinstance(request, SyncGroup) and isinstance(response, SyncGroupResponse):
            self._sync_answered(request, response)
        elif isinstance(request, Heartbeat) and isinstance(response, HeartbeatResponse):
            self._round_noticed(response.error, request.generation)
        elif isinstance(response, LeaveGroupResponse) and response.error is Error.NONE:
            for member in response.members:
                if member.error is Error.NONE:
                    self._left(member.member_id)

    # -- parts -----------------------------------------------------------------------------------

    def _cause_of(self, request: JoinGroup) -> Cause | None:
        """Why this JoinGroup opens a round for certain; None where the answer has to tell."""
        if request.group_instance_id is not None:
            return None if request.group_instance_id in self._static else Cause.STATIC_MEMBER
        if not request.member_id:
            return None  # MEMBER_ID_REQUIRED comes first
        if request.member_id not in self._members:
            return Cause.PENDING_MEMBER
        return Cause.LEADER_REJOINED if request.member_id == self._leader else None

    def _prepare(self, cause: Cause, member_id: str | None) -> None:
        self._to(PREPARING, cause, member_id)

    def _to(
        self, state: GroupState, cause: Cause, member_id: str | None, protocol: str | None = None
    ) -> None:
        before, self.state = self.state, state
        begins = state is COMPLETING
        self._emit(
            events.GroupStateChanged(
                self._group,
                before.value,
                state.value,
                self.generation,
                cause.value,
                member_id,
                protocol,
                self._leader if begins else None,
                len(self._members),
            )
        )

    def _join_answered(self, request: JoinGroup, response: JoinGroupResponse) -> None:
        if response.error is Error.NONE:
            self._take_in(request, response)
            if response.generation > self.generation:
                self._begin(response)
            if response.members:
                self._miss({member.member_id for member in response.members})
        error = None if response.error is Error.NONE else response.error.name
        self._emit(
            events.JoinAnswered(
                self._group, request.client_id, response.member_id, response.generation, error
            )
        )

    def _take_in(self, request: JoinGroup, response: JoinGroupResponse) -> None:
        instance, member_id = request.group_instance_id, response.member_id
        previous = None if instance is None else self._static.get(instance)
        if instance is not None:
            self._static[instance] = member_id
        if previous is not None and instance is not None and previous != member_id:
            self._members.pop(previous, None)
            self._members[member_id] = request.client_id
            self._emit(
                events.MemberReplaced(
                    self._group, request.client_id, member_id, previous, instance, response.generation
                )
            )
        elif member_id not in self._members:
            self._members[member_id] = request.client_id
            cause = Cause.STATIC_MEMBER if instance is not None else Cause.PENDING_MEMBER
            self._emit(
                events.MemberAdded(
                    self._group, request.client_id, member_id, instance, response.generation, cause.value
                )
            )

    def _begin(self, response: JoinGroupResponse) -> None:
        """The round is closed: this is the first of its answers."""
        if self.state is not PREPARING:
            self._prepare(Cause.MEMBER_UPDATED, None)
        self.generation = response.generation
        self._leader = response.leader
        self._to(COMPLETING, Cause.ALL_JOINED, None, response.protocol)

    def _miss(self, present: Collection[str]) -> None:
        """The leader is told who is in the group: who is not has been removed for its silence."""
        joining = {request.member_id for request in self._joining.values()}
        for member_id in [one for one in self._members if one not in present and one not in joining]:
            self._remove(member_id, Cause.SESSION_EXPIRED)

    def _sync_answered(self, request: SyncGroup, response: SyncGroupResponse) -> None:
        partitions: tuple[str, ...] | None = None
        if response.error is Error.NONE:
            if self.state is COMPLETING and request.generation == self.generation:
                self._to(STABLE, Cause.ASSIGNED, self._leader)
            partitions = _partitions(response.assignment)
        else:
            self._round_noticed(response.error, request.generation)
        error = None if response.error is Error.NONE else response.error.name
        member = self._members.get(request.member_id, request.client_id)
        self._emit(
            events.SyncAnswered(self._group, member, request.member_id, request.generation, error, partitions)
        )

    def _round_noticed(self, error: Error, generation: int) -> None:
        """REBALANCE_IN_PROGRESS in the generation that is: somebody else has opened a round."""
        if (
            error is Error.REBALANCE_IN_PROGRESS
            and generation == self.generation
            and self.state in (STABLE, COMPLETING)
        ):
            self._prepare(Cause.SESSION_EXPIRED, None)

    def _left(self, member_id: str) -> None:
        if member_id not in self._members:
            return
        self._remove(member_id, Cause.LEFT)
        if self.state in (STABLE, COMPLETING):
            self._prepare(Cause.LEFT, member_id)
        if not self._members and not self._joining and self.state is PREPARING:
            self.generation += 1
            self._to(EMPTY, Cause.NO_MEMBERS, None)

    def _remove(self, member_id: str, cause: Cause) -> None:
        member = self._members.pop(member_id)
        instance = next((name for name, known in self._static.items() if known == member_id), None)
        if instance is not None:
            del self._static[instance]
        self._emit(
            events.MemberRemoved(self._group, member, member_id, instance, self.generation, cause.value)
        )


def _partitions(assignment: bytes) -> tuple[str, ...] | None:
    try:
        return tuple(str(partition) for partition in decode_assignment(assignment).partitions)
    except UserDataError:
        return None

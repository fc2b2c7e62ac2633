"""What every decision of the coordinator works on: groups, timers, the clock of this call, and
the effects that it collects. Kafka: GroupCoordinatorShard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from groupstorm.coordinator import events
from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.effects import Answer, Effects, Reply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.group import ClassicGroup, Member
from groupstorm.coordinator.messages import JoinGroupResponse, Response, SyncGroupResponse
from groupstorm.coordinator.offsets import Offsets, PendingOffsets
from groupstorm.coordinator.records import (
    AppendPolicy,
    GroupMetadataRecord,
    GroupTombstone,
    MemberRecord,
    Record,
    group_append_error,
)
from groupstorm.coordinator.states import Cause, next_state
from groupstorm.coordinator.subscriptions import assigned_partitions
from groupstorm.coordinator.timers import SESSION, TimerKind, Timers
from groupstorm.coordinator.writes import Writes
from groupstorm.javahash import TimelineHashMap


class Shard:
    """State and effects; ``now_ms`` is set by whoever calls in."""

    __slots__ = (
        "_replies",
        "append",
        "config",
        "events",
        "groups",
        "keeps_offsets",
        "member_ids",
        "now_ms",
        "offsets",
        "pending_offsets",
        "records",
        "timers",
        "whole_records",
        "writes",
        "written",
    )

    def __init__(
        self,
        config: CoordinatorConfig,
        member_ids: Callable[[str], str],
        append: AppendPolicy,
        whole_records: bool,
        keeps_offsets: bool = True,
        on_earlier: Callable[[int], None] | None = None,
    ) -> None:
        self.config = config
        self.member_ids = member_ids
        self.append = append
        self.whole_records = whole_records
        self.keeps_offsets = keeps_offsets
        self.groups: TimelineHashMap[str, ClassicGroup] = TimelineHashMap()
        self.offsets = Offsets()
        self.pending_offsets = PendingOffsets()
        #: What is written of each group, where whole records are kept: what another coordinator would read.
        self.written: dict[str, GroupMetadataRecord] = {}
        self.timers = Timers(on_earlier)
        self.writes = Writes(self)
        self.now_ms = 0
        self._replies: list[Reply] = []
        self.events: list[events.Event] = []
        self.records: list[Record] = []

    def take_effects(self) -> Effects:
        """What has come about since the last call."""
        effects = Effects(self._replies, self.events, self.records)
        self._replies, self.events, self.records = [], [], []
        return effects

    def emit(self, event: events.Event) -> None:
        self.events.append(event)

    def answer(self, answer: Answer, response: Response) -> None:
        """Reply, unless this request has had its answer."""
        if not answer.done:
            answer.done = True
            self._replies.append((answer.token, response))

    def fault(self, group: str, member_id: str | None, fault: CoordinatorFault) -> None:
        """An operation broke off: the group stays as it is at this moment."""
        known = self.groups.get(group)
        generation = known.generation if known is not None else -1
        self.emit(events.OperationFailed(group, member_id, generation, str(fault)))

    # groups

    def create_group(self, name: str, cause: str) -> ClassicGroup:
        """A new empty group; it is gone again if the next write fails."""
        group = ClassicGroup(name)
        group.state_since_ms = self.now_ms
        self.groups.put(name, group)
        self.writes.created.append(group)
        self.emit(events.GroupCreated(name, cause))
        return group

    def exists(self, group: ClassicGroup) -> bool:
        """Whether this is still the group of its name: a write may outlive it."""
        return self.groups.get(group.name) is group

    def forget(self, group: ClassicGroup, error: Error) -> None:
        """Its first record could not be written: the group was never there.

        Who came while that write was under way is told; Kafka leaves it waiting.
        """
        if not self.exists(group):
            return
        to_the_letter = self.config.compatibility is Compatibility.KAFKA_4_3_1
        for member in [] if to_the_letter else group.members.values():
            self.answer_join(group, member, JoinGroupResponse(group_append_error(error)))
            self.answer_sync(group, member, group_append_error(error))
        self.groups.remove(group.name)
        self.emit(events.GroupDeleted(group.name, Cause.APPEND_FAILED))

    def delete_group(self, group: ClassicGroup, cause: Cause) -> None:
        """The group is gone, and its timers with it."""
        if not self.exists(group):
            return
        self.groups.remove(group.name)
        self.timers.cancel(TimerKind.JOIN, group.name)
        self.timers.cancel(TimerKind.SYNC, group.name)
        for member_id in (*group.members.keys(), *group.pending_members):
            self.timers.cancel(TimerKind.SESSION, group.name, member_id)
        self.emit(events.GroupDeleted(group.name, cause))

    def committed_group(self, name: str) -> ClassicGroup | None:
        """The group as reads see it."""
        group = self.groups.get(name)
        return group if group is not None and group.committed else None

    def transition(self, group: ClassicGroup, cause: Cause, member_id: str | None) -> None:
        """The one place where a group's state changes."""
        state = next_state(group.name, group.state, cause)
        group.previous_state, group.state = group.state, state
        group.state_since_ms = self.now_ms
        self.emit(
            events.GroupStateChanged(
                group.name,
                group.previous_state,
                state,
                group.generation,
                cause,
                member_id,
                group.protocol,
                group.leader,
                len(group.members),
            )
        )

    def group_record(
        self, group: ClassicGroup, plan: Mapping[str, bytes] | None = None
    ) -> GroupMetadataRecord:
        """What is written of the group now; ``plan``: the assignments that come with it."""
        return GroupMetadataRecord(
            group.name,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader,
            len(group.members),
            self._roster(group, plan) if self.whole_records else (),
            group.state_since_ms,
        )

    def note_written(self, records: Sequence[Record]) -> None:
        """Records are committed: those of groups are what a coordinator that loads them will find."""
        for record in records:
            if isinstance(record, GroupMetadataRecord):
                self.written[record.group] = record
            elif isinstance(record, GroupTombstone):
                self.written.pop(record.group, None)

    def _roster(self, group: ClassicGroup, plan: Mapping[str, bytes] | None) -> tuple[MemberRecord, ...]:
        if group.protocol is None:
            return ()  # the first record of a group: nobody has joined as far as it knows
        return tuple(
            [
                MemberRecord(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata(group.protocol),
                    member.assignment if plan is None else plan.get(member.member_id, b""),
                )
                for member in group.members.values()
            ]
        )

    # members

    def restart_session(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        """The member was heard of (GMM.rescheduleClassicGroupMemberHeartbeat)."""
        duration_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.timers.set(SESSION, group.name, member.member_id, self.now_ms + duration_ms)

    def removed(self, group: ClassicGroup, member: Member, cause: Cause) -> None:
        """Tell that a member has been removed."""
        self.emit(
            events.MemberRemoved(
                group.name,
                member.client_id,
                member.member_id,
                member.group_instance_id,
                group.generation,
                cause,
            )
        )

    def answer_join(self, group: ClassicGroup, member: Member, response: JoinGroupResponse) -> bool:
        """Answer a parked join, if there is one (ClassicGroup.completeJoinFuture)."""
        parked = member.join
        if parked is None:
            return False
        member.join = None
        member_id = member.member_id
        if group.members.get(member_id) is member:
            group.awaiting_join -= 1
        self.join_answered(parked, group.name, member.client_id, member_id, response)
        return True

    def join_answered(
        self, answer: Answer, group: str, client_id: str, member_id: str, response: JoinGroupResponse
    ) -> None:
        """Answer a join and tell it; ``member_id``: the one that the request came for."""
        if answer.done:
            return
        answer.done = True
        self._replies.append((answer.token, response))
        error = response.error.name if response.error else None
        self.events.append(events.JoinAnswered(group, client_id, member_id, response.generation, error))

    def answer_sync(self, group: ClassicGroup, member: Member, error: Error) -> bool:
        """Answer a parked sync, if there is one, with the error or the member's assignment
        (ClassicGroup.completeSyncFuture)."""
        parked = member.sync
        if parked is None:
            return False
        member.sync = None
        if error:
            response = SyncGroupResponse(error)
        else:
            response = SyncGroupResponse(error, group.protocol_type, group.protocol, member.assignment)
        self.sync_answered(parked, group.name, member.client_id, member.member_id, group.generation, response)
        return True

    def sync_answered(
        self,
        answer: Answer,
        group: str,
        client_id: str,
        member_id: str,
        generation: int,
        response: SyncGroupResponse,
    ) -> None:
        """Answer a sync and tell it."""
        if answer.done:
            return
        answer.done = True
        self._replies.append((answer.token, response))
        error = response.error.name if response.error else None
        partitions = None if error else assigned_partitions(response.assignment)
        self.events.append(events.SyncAnswered(group, client_id, member_id, generation, error, partitions))

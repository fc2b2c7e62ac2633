"""A member of a streams group, as a value: every change makes a new one (Kafka: StreamsGroupMember); and the
records of such groups: each is one entry of a group's state, None in its value is a tombstone.

Kafka: StreamsGroupMemberMetadata, StreamsGroupCurrentMemberAssignment, StreamsGroupTargetAssignmentMember,
StreamsGroupTargetAssignmentMetadata, StreamsGroupMetadata, StreamsGroupTopology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from groupstorm.assignors.streams.groups import Task, TaskIds
from groupstorm.coordinator.modern.member import LEAVE_STATIC_EPOCH, ModernMember, TaskState
from groupstorm.coordinator.streams.topology import Topology


class Tasks(NamedTuple):
    """Tasks of each kind (TasksTuple)."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    @classmethod
    def of_request(cls, active: TaskIds, standby: TaskIds, warmup: TaskIds) -> Tasks:
        return cls(*(frozenset(flat(one)) for one in (active, standby, warmup)))


class HeldTasks(NamedTuple):
    """Tasks that a member has, active ones with the epoch in which it got them (TasksTupleWithEpochs)."""

    active: Mapping[Task, int] = {}
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def without_epochs(self) -> Tasks:
        return Tasks(frozenset(self.active), self.standby, self.warmup)

    def has_any_of(self, owned: Tasks) -> bool:
        """Whether one of these tasks is owned, in the same kind."""
        return not (
            owned.active.isdisjoint(self.active)
            and self.standby.isdisjoint(owned.standby)
            and self.warmup.isdisjoint(owned.warmup)
        )

    def contains(self, owned: tuple[TaskIds | None, TaskIds | None, TaskIds | None]) -> bool:
        """Whether everything that a request lists is here; a list that is left out is not, nor is a
        subtopology without tasks of ours."""
        for claimed, held in zip(owned, self, strict=True):
            subtopologies = {subtopology for subtopology, _ in held}
            if claimed is None or not all(one in subtopologies for one, _ in claimed):
                return False
            if not all(task in held for task in flat(claimed)):
                return False
        return True


#: The tasks that a new member has: none.
NOTHING_HELD = HeldTasks()


def flat(tasks: TaskIds) -> Iterable[Task]:
    """The tasks one by one."""
    return ((subtopology, number) for subtopology, numbers in tasks for number in numbers)


def listed(tasks: Iterable[Task]) -> TaskIds:
    """The tasks by subtopology, sorted."""
    by_subtopology: dict[str, list[int]] = {}
    for subtopology, number in sorted(tasks):
        by_subtopology.setdefault(subtopology, []).append(number)
    return tuple((subtopology, tuple(numbers)) for subtopology, numbers in by_subtopology.items())


@dataclass(frozen=True, slots=True)
class StreamsMember(ModernMember):
    """One member; ``process``: the instance of the application that it is a thread of."""

    previous_epoch: int = 0
    state: TaskState = TaskState.STABLE
    assigned: HeldTasks = NOTHING_HELD
    revoking: HeldTasks = NOTHING_HELD
    topology_epoch: int = -1
    process: str = ""
    endpoint: tuple[str, int] | None = None
    #: Client tags, sorted by name.
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def subscription(self) -> tuple[object, ...]:
        return self.topology_epoch, self.process, self.endpoint, self.tags, self.rack

    def gone_for_a_while(self) -> StreamsMember:
        assigned = self.assigned._replace(active=dict.fromkeys(self.assigned.active, 0))
        return replace(self, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoking=NOTHING_HELD)

    def assigned_at(self, task: Task) -> int | None:
        """The epoch in which the active task was assigned to the member; None if the member has it not."""
        return self.assigned.active.get(task, self.revoking.active.get(task))


class MemberMetadata(NamedTuple):
    """The part of a member that its own requests determine."""

    instance: str | None
    rack: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    topology_epoch: int
    process: str
    endpoint: tuple[str, int] | None
    tags: tuple[tuple[str, str], ...]


class CurrentTasks(NamedTuple):
    """The part of a member that reconciliation determines."""

    epoch: int
    previous_epoch: int
    state: TaskState
    assigned: HeldTasks
    revoking: HeldTasks


class GroupFacts(NamedTuple):
    """The facts about the whole group.

    ``validated_epoch``: of the topology whose topics are as it needs them; ``configs``: of the assignment;
    ``stored_epoch`` and ``failed_epoch``: of the topology whose description the plugin holds or refused.
    """

    epoch: int = 1
    metadata_hash: int = 0
    validated_epoch: int = -1
    configs: tuple[tuple[str, str], ...] = ()
    stored_epoch: int = -1
    failed_epoch: int = -1


class StreamsMemberRecord(NamedTuple):
    """A member's metadata."""

    group: str
    member_id: str
    value: MemberMetadata | None


class StreamsCurrentRecord(NamedTuple):
    """A member's current tasks."""

    group: str
    member_id: str
    value: CurrentTasks | None


class StreamsTargetRecord(NamedTuple):
    """A member's target."""

    group: str
    member_id: str
    value: Tasks | None


class StreamsTargetEpochRecord(NamedTuple):
    """The group epoch for which the targets were computed, and when (-1: never)."""

    group: str
    value: int | None
    computed_at_ms: int = -1


class StreamsGroupRecord(NamedTuple):
    """The group's epoch and what else is true of all its members."""

    group: str
    value: GroupFacts | None


class StreamsTopologyRecord(NamedTuple):
    """The group's topology."""

    group: str
    value: Topology | None


StreamsRecord = (
    StreamsMemberRecord
    | StreamsCurrentRecord
    | StreamsTargetRecord
    | StreamsTargetEpochRecord
    | StreamsGroupRecord
    | StreamsTopologyRecord
)

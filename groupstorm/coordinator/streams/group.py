"""A streams group: its members, epochs, targets and topology, which process holds which task, and the
endpoints where members can be asked (KIP-1071's interactive queries).

Records change a group (`take`), and every change leaves its inverse in ``undo``. The configured topology,
the remembered assignment, task offsets, endpoints and the wish to shut down are no records.
Kafka: StreamsGroup, EndpointToPartitionsManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from groupstorm.assignors.streams.groups import Task
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.modern.group import ModernGroup, merge, put
from groupstorm.coordinator.records import WingTypes
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.member import (
    CurrentTasks,
    GroupFacts,
    HeldTasks,
    MemberMetadata,
    StreamsCurrentRecord,
    StreamsGroupRecord,
    StreamsMember,
    StreamsMemberRecord,
    StreamsRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    StreamsTopologyRecord,
    Tasks,
    listed,
)
from groupstorm.coordinator.streams.messages import EndpointPartitions
from groupstorm.coordinator.streams.topology import ConfiguredTopology, Topology
from groupstorm.coordinator.topics import Topics

NO_TASKS = Tasks()


class StreamsGroupState(StrEnum):
    """A group's state, under the names that StreamsGroupDescribe uses. It follows from the members."""

    #: No members; committed offsets may remain.
    EMPTY = "Empty"
    #: The topics are not as the topology needs them.
    NOT_READY = "NotReady"
    #: The group has changed since the targets were computed.
    ASSIGNING = "Assigning"
    #: Members are on their way to their targets.
    RECONCILING = "Reconciling"
    #: Every member has its target.
    STABLE = "Stable"


class TaskOffsets(NamedTuple):
    """The offsets that a member has reported of the tasks' state on its disk."""

    offsets: Mapping[Task, int] = {}
    end_offsets: Mapping[Task, int] = {}


class Remembered(NamedTuple):
    """The assignment that members are brought to in an epoch (Kafka: RefinedAssignment)."""

    epoch: int = -1
    assignment: Mapping[str, Tasks] = {}


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """The state of one group, and what can be read from it directly.

    ``forgets_holders``: a write that fails leaves behind which processes hold a standby, as in Kafka.
    """

    kind = GroupType.STREAMS
    types = WingTypes(
        StreamsMember,
        MemberMetadata,
        CurrentTasks,
        StreamsMemberRecord,
        StreamsCurrentRecord,
        StreamsTargetRecord,
        StreamsTargetEpochRecord,
        StreamsGroupRecord,
    )

    def __init__(self, name: str, *, forgets_holders: bool = True) -> None:
        super().__init__(name)
        self._forgets_holders = forgets_holders
        self.facts = GroupFacts()
        self.topology: Topology | None = None
        #: The process that holds an active task, and the processes that hold it otherwise.
        self.active_process: dict[Task, str] = {}
        self.standby_processes: dict[Task, set[str]] = {}
        self.warmup_processes: dict[Task, set[str]] = {}
        # no records
        #: A topology and who reads which topic in it.
        self._readers: tuple[Topology, dict[str, str]] | None = None
        self.configured: ConfiguredTopology | None = None
        #: The same as it was when the last record was written, which is what reads see.
        self.read_configured: ConfiguredTopology | None = None
        self.remembered = Remembered()
        self.task_offsets: dict[str, TaskOffsets] = {}
        self.endpoint_epoch = 0
        self.endpoints: dict[str, EndpointPartitions] = {}
        self.shutdown_member: str | None = None
        #: A topic of the topology has changed; the epoch in which the group looked at its topics last.
        self.refresh_is_due, self.refresh_epoch = True, 0

    @classmethod
    def new(cls, name: str, compatibility: Compatibility) -> StreamsGroup:
        return cls(name, forgets_holders=compatibility.is_to_the_letter)

    # to read

    @property
    def state(self) -> StreamsGroupState:
        """Follows from the members and the epochs (StreamsGroup.maybeUpdateGroupState)."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.facts.validated_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def epoch(self) -> int:
        return self.facts.epoch

    @property
    def topology_epoch(self) -> int:
        """The epoch of the topology; -1 if there is none."""
        return -1 if self.topology is None else self.topology.epoch

    def target(self, member_id: str) -> Tasks:
        """The member's target; empty if it has none yet."""
        return self.targets.get(member_id) or NO_TASKS

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read this topic."""
        return bool(self.members) and self._reader_of(topic) is not None

    def _reader_of(self, topic: str) -> str | None:
        """The id of the subtopology that reads the topic."""
        if self.topology is None:
            return None
        if self._readers is None or self._readers[0] is not self.topology:
            self._readers = self.topology, self.topology.readers()
        return self._readers[1].get(topic)

    def assigned_at(self, member: StreamsMember, topics: Topics, topic: str, number: int) -> int | None:
        """The epoch is that of the task that reads the partition."""
        subtopology = self._reader_of(topic)
        return None if subtopology is None else member.assigned_at((subtopology, number))

    def names_of(self, assigned: HeldTasks, topics: Topics) -> tuple[str, ...]:
        """The partitions that the active tasks read: members' rows name the same."""
        read = {} if self.topology is None else {one.id: one.inputs for one in self.topology.subtopologies}
        return tuple(
            f"{topic}-{number}"
            for subtopology, number in sorted(assigned.active)
            for topic in read.get(subtopology, ())
            if (known := topics.by_name.get(topic)) is not None and number < known.partitions
        )

    def needs_refresh(self) -> bool:
        """Whether the group has to look at its topics (StreamsGroup.hasMetadataExpired)."""
        return self.refresh_is_due or self.epoch < self.refresh_epoch

    # to change

    def take_own(self, record: Any, now_ms: int) -> None:
        match record:
            case StreamsGroupRecord(_, GroupFacts() as facts):
                self.set_fields(facts=facts)
            case StreamsTopologyRecord(_, topology):
                self.set_fields(topology=topology)
        self._forget_shutdown()

    def bump_without(self, members: Sequence[StreamsMember], topics: Topics) -> list[StreamsRecord]:
        return [StreamsGroupRecord(self.name, self.facts._replace(epoch=self.epoch + 1))]

    def tombstones(self) -> list[StreamsRecord]:
        ends = [StreamsGroupRecord(self.name, None), StreamsTopologyRecord(self.name, None)]
        return [*self.tombstones_of_members(self.members), *ends]

    def set_assignment_epoch(self, epoch: int, computed_at_ms: int) -> None:
        super().set_assignment_epoch(epoch, computed_at_ms)
        self._forget_shutdown()

    def set_member(self, member_id: str, member: StreamsMember | None) -> None:
        """Add, replace or remove (None) a member, and note which tasks its process holds."""
        before = self.members.get(member_id)
        both = [one for one in (before, member) if one is not None]
        held = [tasks for one in both for tasks in (one.assigned, one.revoking)]
        instances = {one.instance: self.static_members.get(one.instance) for one in both if one.instance}
        active = {task: self.active_process.get(task) for tasks in held for task in tasks.active}
        others = [
            {task: _copy(table.get(task)) for tasks in held for task in tasks[kind]}
            for kind, table in ((1, self.standby_processes), (2, self.warmup_processes))
        ]

        def back() -> None:
            self.members.remove(member_id)
            put(self.members, member_id, before)
            merge(self.static_members, instances)
            merge(self.active_process, active)
            for table, old in zip((self.standby_processes, self.warmup_processes), others, strict=True):
                forgotten = {task: None for task in old if old[task] is None}
                merge(table, forgotten if self._forgets_holders else old)

        self.undo.append(back)
        put(self.members, member_id, member)
        self.endpoints.pop(member_id, None)
        if before is not None:
            self._release(before.process, before.assigned)
            self._release(before.process, before.revoking)
            if before.instance is not None:
                self.static_members.pop(before.instance, None)
        if member is None:
            self.task_offsets.pop(member_id, None)
        else:
            self._hold(member.process, member.assigned)
            self._hold(member.process, member.revoking)
            if member.instance is not None:
                self.static_members[member.instance] = member_id
        self._forget_shutdown()

    def _forget_shutdown(self) -> None:
        """Nobody is left to be told."""
        if not self.members:
            self.shutdown_member = None

    def _release(self, process: str, tasks: HeldTasks) -> None:
        for task in tasks.active:
            if self.active_process.get(task) == process:
                del self.active_process[task]
        for table, held in ((self.standby_processes, tasks.standby), (self.warmup_processes, tasks.warmup)):
            for task in held:
                table.get(task, set()).discard(process)

    def _hold(self, process: str, tasks: HeldTasks) -> None:
        self.active_process.update(dict.fromkeys(tasks.active, process))
        for table, held in ((self.standby_processes, tasks.standby), (self.warmup_processes, tasks.warmup)):
            for task in held:
                table.setdefault(task, set()).add(process)

    def __repr__(self) -> str:
        return (
            f"<StreamsGroup {self.name!r} {self.state} epoch={self.epoch} target={self.assignment_epoch} "
            f"members={len(self.members)} held={len(self.active_process)}>"
        )


def _copy(processes: set[str] | None) -> set[str] | None:
    return None if processes is None else set(processes)


def endpoints_of(
    shard: Shard, group: StreamsGroup, member: StreamsMember, replaced: StreamsMember | None
) -> tuple[EndpointPartitions, ...]:
    """One entry per member that has an endpoint, ``member`` as it is now; entries are kept until they change.

    `CoordinatorFault` while the numbers of tasks are unknown.
    """
    left_out = {member.member_id, *(() if replaced is None else (replaced.member_id,))}
    others = [one for one in group.members.values() if one.member_id not in left_out]
    entries = []
    for one in (*others, member):
        if one.endpoint is None:
            continue
        entry = group.endpoints.get(one.member_id)
        if entry is None:
            entry = group.endpoints[one.member_id] = _entry(shard, group, one, one.endpoint)
        entries.append(entry)
    return tuple(entries)


def _entry(
    shard: Shard, group: StreamsGroup, member: StreamsMember, endpoint: tuple[str, int]
) -> EndpointPartitions:
    others = member.assigned.standby | member.assigned.warmup
    return (
        *endpoint,
        _partitions(shard, group, member.assigned.active),
        _partitions(shard, group, others),
    )


def _partitions(shard: Shard, group: StreamsGroup, tasks: Iterable[Task]) -> dict[str, tuple[int, ...]]:
    """The partitions of source and repartition topics that these tasks read, by topic."""
    subtopologies = None if group.configured is None else group.configured.subtopologies
    if subtopologies is None:
        raise CoordinatorFault("the tasks of the topology are not known, so no endpoint can be listed")
    partitions: dict[str, tuple[int, ...]] = {}
    for name, numbers in listed(tasks):
        one = subtopologies[name]
        for topic in dict.fromkeys(one.topics.inputs):
            known = shard.topics.by_name.get(topic)
            if known is None:
                raise CoordinatorFault(f"Topic {topic} not found in metadata image")
            if shard.config.compatibility.is_4_4:
                read = tuple(number for number in numbers if number < known.partitions)
            else:  # Kafka 4.3.1 names partitions that do not exist
                read = numbers[: known.partitions] if known.partitions < len(numbers) else numbers
            if read or not shard.config.compatibility.is_4_4:
                partitions[topic] = read
    return partitions

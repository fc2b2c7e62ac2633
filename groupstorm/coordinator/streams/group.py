"""A streams group: its members, epochs, targets and topology, and which process holds which task.

Records change a group (`replay`), and every change leaves its inverse in ``undo``. The configured topology,
the remembered assignment, task offsets, endpoints and the wish to shut down are no records.
Kafka: StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from groupstorm.assignors.streams.groups import Task
from groupstorm.coordinator.streams.configuration import ConfiguredTopology
from groupstorm.coordinator.streams.member import HeldTasks, StreamsMember, Tasks
from groupstorm.coordinator.streams.messages import EndpointPartitions
from groupstorm.coordinator.streams.records import GroupFacts
from groupstorm.coordinator.streams.topology import Topology
from groupstorm.javahash import TimelineHashMap

K = TypeVar("K")
V = TypeVar("V")

#: The targets were never computed (Kafka: 0, which no clock of its shows).
NEVER = -1
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


class StreamsGroup:
    """The state of one group, and what can be read from it directly.

    ``forgets_holders``: a write that fails leaves behind which processes hold a standby, as in Kafka.
    """

    def __init__(self, name: str, *, forgets_holders: bool = True) -> None:
        self.name = name
        self._forgets_holders = forgets_holders
        self.facts = GroupFacts()
        self.topology: Topology | None = None
        self.assignment_epoch = 1
        #: When the targets were computed; `NEVER` if they were not.
        self.assignment_ms = NEVER
        #: Kafka's order decides how the assignor places tasks.
        self.members: TimelineHashMap[str, StreamsMember] = TimelineHashMap()
        self.targets: TimelineHashMap[str, Tasks] = TimelineHashMap()
        #: group.instance.id -> member id
        self.static_members: dict[str, str] = {}
        #: The process that holds an active task, and the processes that hold it otherwise.
        self.active_process: dict[Task, str] = {}
        self.standby_processes: dict[Task, set[str]] = {}
        self.warmup_processes: dict[Task, set[str]] = {}
        # no records
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
        #: A record of the group is committed, so that reads see it.
        self.committed = False
        #: The inverse of every change since `take_undo`.
        self.undo: list[Callable[[], None]] = []

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
    def generation(self) -> int:
        """The group epoch, under the name that all kinds of group share."""
        return self.facts.epoch

    @property
    def topology_epoch(self) -> int:
        """The epoch of the topology; -1 if there is none."""
        return -1 if self.topology is None else self.topology.epoch

    def static_member(self, instance: str | None) -> StreamsMember | None:
        """The member that has this instance id."""
        member_id = None if instance is None else self.static_members.get(instance)
        return None if member_id is None else self.members.get(member_id)

    def target(self, member_id: str) -> Tasks:
        """The member's target; empty if it has none yet."""
        return self.targets.get(member_id) or NO_TASKS

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read this topic."""
        return (
            bool(self.members)
            and self.topology is not None
            and self.topology.subtopology_reading(topic) is not None
        )

    def needs_refresh(self) -> bool:
        """Whether the group has to look at its topics (StreamsGroup.hasMetadataExpired)."""
        return self.refresh_is_due or self.epoch < self.refresh_epoch

    # to change

    def take_undo(self) -> list[Callable[[], None]]:
        """The inverses of the changes so far, the latest last; further ones start a new list."""
        undo, self.undo = self.undo, []
        return undo

    def set_facts(self, facts: GroupFacts) -> None:
        before = self.facts
        self.undo.append(lambda: setattr(self, "facts", before))
        self.facts = facts
        self._forget_shutdown()

    def set_topology(self, topology: Topology | None) -> None:
        before = self.topology
        self.undo.append(lambda: setattr(self, "topology", before))
        self.topology = topology
        self._forget_shutdown()

    def set_assignment_epoch(self, epoch: int, computed_at_ms: int) -> None:
        before = self.assignment_epoch, self.assignment_ms

        def back() -> None:
            self.assignment_epoch, self.assignment_ms = before

        self.undo.append(back)
        self.assignment_epoch, self.assignment_ms = epoch, computed_at_ms
        self._forget_shutdown()

    def set_target(self, member_id: str, target: Tasks | None) -> None:
        """Set the member's target, or forget it (None)."""
        before = self.targets.get(member_id)
        self.undo.append(lambda: _put(self.targets, member_id, before))
        _put(self.targets, member_id, target)

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
            _put(self.members, member_id, before)
            _merge(self.static_members, instances)
            _merge(self.active_process, active)
            for table, old in zip((self.standby_processes, self.warmup_processes), others, strict=True):
                forgotten = {task: processes for task, processes in old.items() if processes is None}
                _merge(table, forgotten if self._forgets_holders else old)

        self.undo.append(back)
        _put(self.members, member_id, member)
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


def _put(table: TimelineHashMap[str, V], key: str, value: V | None) -> None:
    if value is None:
        table.remove(key)
    else:
        table.put(key, value)


def _copy(processes: set[str] | None) -> set[str] | None:
    return None if processes is None else set(processes)


def _merge(table: dict[K, V], changes: Mapping[K, V | None]) -> None:
    """Take the changes into the table; None removes an entry."""
    for key, value in changes.items():
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

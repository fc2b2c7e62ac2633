"""The target assignment of a group, when it is computed, and the way of a member towards it, a heartbeat at a
time.

`Holders` says which processes hold a task. Kafka 4.4.0: a task that changes its kind within the member is
converted, not given up and taken.

Kafka: GroupMetadataManager.maybeUpdateStreamsTargetAssignment, computeDelayedTargetAssignment,
refinedAssignmentForEpoch, TargetAssignmentBuilder, CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from groupstorm.assignors.streams.groups import Task, TaskCounts, TaskMember, assign_tasks
from groupstorm.coordinator.effects import Unwritten
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.modern.member import TaskState, state_after
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import NO_TASKS, Remembered, StreamsGroup, TaskOffsets
from groupstorm.coordinator.streams.member import (
    HeldTasks,
    StreamsMember,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    Tasks,
)
from groupstorm.coordinator.streams.topology import ConfiguredTopology, Status
from groupstorm.coordinator.timers import STREAMS_DELAY
from groupstorm.javahash import JavaHashMap


class Targets(NamedTuple):
    """The targets by member, and their epoch. ``delayed``: why there are no newer ones."""

    epoch: int
    by_member: Mapping[str, Tasks]
    delayed: str | None = None


def is_delayed(shard: Shard, group: str) -> bool:
    """Whether the initial delay of the group runs."""
    return shard.timers.deadline_of(STREAMS_DELAY, group) is not None


def update_targets(
    shard: Shard,
    group: StreamsGroup,
    epoch: int,
    configured: ConfiguredTopology,
    member: StreamsMember | None,
    records: list[Record],
    *,
    only_epoch: bool = False,
) -> Targets:
    """The targets, computed anew if the group has changed and no delay stands against it.

    ``member``: the sender of the heartbeat, as it is now; ``only_epoch``: the targets stay in the new epoch.
    """
    if is_delayed(shard, group.name):
        detail = "Assignment delayed due to the configured initial rebalance delay."
        return Targets(group.assignment_epoch, {}, detail)
    present = _targets_with(group, member)
    if group.assignment_epoch >= epoch:
        return Targets(group.assignment_epoch, present)
    if only_epoch and group.assignment_epoch >= group.epoch:
        records.append(StreamsTargetEpochRecord(group.name, epoch, group.assignment_ms))
        return Targets(epoch, present)
    interval_ms = shard.group_options.streams(group.name).assignment_interval_ms
    if not group.may_assign(shard.now_ms, interval_ms):
        detail = "Assignment delayed due to the configured assignment interval."
        return Targets(group.assignment_epoch, present, detail)
    targets = _assign(shard, group, configured, member, present)
    for member_id, target in targets.items():
        if target != present.get(member_id):
            records.append(StreamsTargetRecord(group.name, member_id, target))
    records.append(StreamsTargetEpochRecord(group.name, epoch, shard.now_ms))
    return Targets(epoch, targets)


def delay_is_over(shard: Shard, group: StreamsGroup) -> list[Record]:
    """The records of the targets when the initial delay is over, if the group can have any."""
    records: list[Record] = []
    if not group.members:
        return records
    if group.epoch <= group.assignment_epoch:
        raise CoordinatorFault("Group epoch should be always larger to assignment epoch")
    if group.configured is not None:
        update_targets(shard, group, group.epoch, group.configured, None, records)
    return records


def _targets_with(group: StreamsGroup, member: StreamsMember | None) -> dict[str, Tasks]:
    """The present targets; a static member has that of its predecessor."""
    targets = dict(group.targets.items())
    predecessor = None if member is None else _predecessor(group, member)
    if member is not None and predecessor is not None and predecessor in targets:
        targets[member.member_id] = targets.pop(predecessor)
    return targets


def _predecessor(group: StreamsGroup, member: StreamsMember) -> str | None:
    known = group.static_members.get(member.instance) if member.instance is not None else None
    return known if known != member.member_id else None


def _assign(
    shard: Shard,
    group: StreamsGroup,
    configured: ConfiguredTopology,
    member: StreamsMember | None,
    present: Mapping[str, Tasks],
) -> dict[str, Tasks]:
    """Every member's target; nothing for anybody while the topology is not ready."""
    is_4_4 = shard.config.compatibility.is_4_4
    members = dict(group.members.items())
    if member is not None:
        predecessor = _predecessor(group, member)
        if predecessor is not None:
            members.pop(predecessor)
        members[member.member_id] = member
    specs: JavaHashMap[str, TaskMember] = JavaHashMap()
    for member_id, one in members.items():
        memory = one.assigned.without_epochs() if is_4_4 else present.get(member_id, NO_TASKS)
        offsets = group.task_offsets.get(member_id, TaskOffsets()).offsets
        specs.put(member_id, TaskMember(one.process, memory.active, memory.standby, offsets))
    if configured.problem is not None or configured.subtopologies is None:
        return dict.fromkeys(specs, NO_TASKS)
    counts = [
        TaskCounts(name, one.tasks, bool(one.topics.changelogs))
        for name, one in configured.subtopologies.items()
    ]
    # the delayed computation takes the options that the group was counted up with last
    configs = (
        group.facts.configs if member is None else shard.group_options.streams(group.name).assignment_configs
    )
    replicas = int(dict(configs).get("num.standby.replicas", "0"))
    placed = assign_tasks(specs, counts, replicas, is_4_4=is_4_4)
    return {member_id: Tasks(one.active, one.standby) for member_id, one in placed.items()}


def remember(shard: Shard, group: StreamsGroup, epoch: int, assignment: Mapping[str, Tasks]) -> None:
    """Keep the assignment that members are brought to in this epoch (Kafka 4.4.0 only)."""
    if shard.config.compatibility.is_4_4 and shard.group_options.streams(group.name).num_warmup_replicas > 0:
        set_remembered(shard, group, Remembered(epoch, dict(assignment)))


def set_remembered(shard: Shard, group: StreamsGroup, remembered: Remembered) -> None:
    """A remembered assignment is no record, but goes back if the next append fails."""
    before = group.remembered
    shard.since_written.append(Unwritten(lambda _: setattr(group, "remembered", before)))
    group.remembered = remembered


def relabel_remembered(shard: Shard, group: StreamsGroup, old: str, new: str) -> None:
    """The tasks remembered for the holder of an instance id go to the member that names it."""
    epoch, assignment = group.remembered
    if old in assignment:
        others = {member_id: tasks for member_id, tasks in assignment.items() if member_id != old}
        set_remembered(shard, group, Remembered(epoch, {**others, new: assignment[old]}))


def status_of(targets: Targets) -> list[tuple[int, str]]:
    """The status of a heartbeat that a delay stands against."""
    return [] if targets.delayed is None else [(Status.ASSIGNMENT_DELAYED, targets.delayed)]


class Holders(NamedTuple):
    """The processes that hold tasks in the group, this member's own included."""

    active: Mapping[Task, str]
    standby: Mapping[Task, set[str]]
    warmup: Mapping[Task, set[str]]


class Reconciliation(NamedTuple):
    """The question: a member's target, who holds tasks, and what the member says that it owns."""

    target: Tasks
    target_epoch: int
    holders: Holders
    owned: Tasks | None
    converts_kinds: bool


def reconcile(member: StreamsMember, question: Reconciliation) -> StreamsMember:
    """The member after this heartbeat; the same object if nothing changes."""
    still_owns = _may_own(member.revoking, question.owned)
    return _advance(member, question) if member.advances(question.target_epoch, still_owns) else member


def _may_own(tasks: HeldTasks, owned: Tasks | None) -> bool:
    """Whether the member may still own some of these tasks; silence (None) counts as owning them."""
    return owned is None or tasks.has_any_of(owned)


def _advance(member: StreamsMember, question: Reconciliation) -> StreamsMember:
    """Keep what is in the target, give the rest up, and then take what nobody else holds."""
    before, target, run = member.assigned, question.target, question.holders.active
    is_free = {
        task: _is_free(member, question, task, is_run=task in run)
        for task in target.active
        if task not in before.active
    }
    own_active = before.active if question.converts_kinds else {}
    standby_is_free = {
        task: _is_free(member, question, task, run.get(task) == member.process and task not in own_active)
        for task in target.standby
        if task not in before.standby
    }
    warmup_is_free = {
        task: _is_free(member, question, task, is_run=run.get(task) == member.process)
        for task in target.warmup
        if task not in before.warmup
    }
    active = {task: epoch for task, epoch in before.active.items() if task in target.active}
    standby, warmup = before.standby & target.standby, before.warmup & target.warmup
    new_active = {task for task, free in is_free.items() if free}
    new_standby = {task for task, free in standby_is_free.items() if free}
    new_warmup = {task for task, free in warmup_is_free.items() if free}
    gone_standby, gone_warmup = before.standby - target.standby, before.warmup - target.warmup
    if question.converts_kinds:
        # at once, whatever else has to be given up first
        standby |= new_standby & (before.active.keys() | before.warmup)
        warmup |= new_warmup & before.standby
        gone_standby -= new_warmup | target.active
        gone_warmup -= new_standby | target.active
    revoking = HeldTasks(
        {task: epoch for task, epoch in before.active.items() if task not in target.active},
        gone_standby,
        gone_warmup,
    )
    must_revoke = bool(revoking) and _may_own(revoking, question.owned)
    if question.converts_kinds:
        # until the active task is given, its standby stays
        promoted = frozenset() if must_revoke else frozenset(new_active)
        standby |= (before.standby & target.active) - promoted
        warmup |= (before.warmup & target.active) - promoted
    free = (*is_free.values(), *standby_is_free.values(), *warmup_is_free.values())
    state = state_after(TaskState, must_revoke, not all(free))
    if state is TaskState.UNREVOKED_TASKS:
        epoch = member.epoch + (member.state is TaskState.UNREVOKED_TASKS)
        assigned = HeldTasks(active, standby, warmup)
    else:
        epoch, revoking = question.target_epoch, HeldTasks()
        active.update(dict.fromkeys(new_active, question.target_epoch))
        assigned = HeldTasks(active, standby | new_standby, warmup | new_warmup)
    return replace(
        member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking
    )


def _is_free(member: StreamsMember, question: Reconciliation, task: Task, is_run: bool) -> bool:
    """Whether the member can take the task. ``is_run``: a process that bars it has the task as active.

    Nor may another member of the own process hold the task otherwise; where kinds are converted, the member
    itself does not count.
    """
    if is_run:
        return False
    holders, own = question.holders, member.assigned
    for processes, held in ((holders.standby, own.standby), (holders.warmup, own.warmup)):
        is_own = question.converts_kinds and task in held
        if member.process in processes.get(task, ()) and not is_own:
            return False
    return True

"""Brings one member from its current tasks towards its target, a heartbeat at a time.

`Holders` says which processes hold a task.
Kafka 4.4.0: a task that changes its kind within the member is converted, not given up and taken.

Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from groupstorm.assignors.streams.groups import Task
from groupstorm.coordinator.modern.member import TaskState
from groupstorm.coordinator.modern.reconciliation import Found, Step, reached, situation, steps
from groupstorm.coordinator.streams.member import HeldTasks, StreamsMember, Tasks

NEXT_STEP = steps(TaskState)
REACHED = reached(TaskState)


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
    step = NEXT_STEP[member.state][situation(member, question.target_epoch, still_owns)]
    return _advance(member, question) if step is Step.ADVANCE else member


def _may_own(tasks: HeldTasks, owned: Tasks | None) -> bool:
    """Whether the member may still own some of these tasks; silence (None) counts as owning them."""
    return owned is None or tasks.has_any_of(owned)


def _advance(member: StreamsMember, question: Reconciliation) -> StreamsMember:
    """Keep what is in the target, give the rest up, and then take what nobody else holds."""
    before, target = member.assigned, question.target
    is_free = {
        task: _is_free_as_active(member, question, task)
        for task in target.active
        if task not in before.active
    }
    standby_is_free = {
        task: _is_free_as_standby(member, question, task)
        for task in target.standby
        if task not in before.standby
    }
    warmup_is_free = {
        task: _is_free_as_warmup(member, question, task)
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
    state = REACHED[Found(must_revoke, not all(free))]
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


def _is_free_as_active(member: StreamsMember, question: Reconciliation, task: Task) -> bool:
    """No process holds the task as active, and no other member of the own process holds it otherwise."""
    return task not in question.holders.active and not (
        _in_own_process(member, question, task, question.holders.standby, member.assigned.standby)
        or _in_own_process(member, question, task, question.holders.warmup, member.assigned.warmup)
    )


def _is_free_as_standby(member: StreamsMember, question: Reconciliation, task: Task) -> bool:
    return not (
        _is_run_in_own_process(member, question, task)
        or _in_own_process(member, question, task, question.holders.standby, ())
        or _in_own_process(member, question, task, question.holders.warmup, member.assigned.warmup)
    )


def _is_free_as_warmup(member: StreamsMember, question: Reconciliation, task: Task) -> bool:
    return not (
        question.holders.active.get(task) == member.process
        or _in_own_process(member, question, task, question.holders.standby, member.assigned.standby)
        or _in_own_process(member, question, task, question.holders.warmup, ())
    )


def _is_run_in_own_process(member: StreamsMember, question: Reconciliation, task: Task) -> bool:
    is_own = question.converts_kinds and task in member.assigned.active
    return question.holders.active.get(task) == member.process and not is_own


def _in_own_process(
    member: StreamsMember,
    question: Reconciliation,
    task: Task,
    holders: Mapping[Task, set[str]],
    own: frozenset[Task] | tuple[()],
) -> bool:
    """Whether the own process holds the task; where kinds are converted, the member itself does not count."""
    is_own = question.converts_kinds and task in own
    return member.process in holders.get(task, ()) and not is_own

"""A round: it opens, waits for the members, closes with a new generation, and hands out the assignments that
the leader sends with its SyncGroup.

Version notes
* SyncGroup 3: group.instance.id (KIP-345). 5: protocol type and name, checked against the group's (KIP-559).

Kafka: GroupMetadataManager.prepareRebalance, maybeCompleteJoinPhase, completeClassicGroupJoin,
tryCompleteInitialRebalanceElseSchedule, classicGroupSyncToClassicGroup, validateSyncGroup,
propagateAssignment. A function that may write returns the write, and its caller submits it, as Kafka returns
records: a request is answered after its write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.coordinator.changes import emit_removed
from groupstorm.coordinator.classic.changes import (
    answer_parked_join,
    answer_parked_sync,
    answer_sync,
    of_generation,
    restart_session,
    transition,
)
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.group_records import group_record
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.classic.subscriptions import take_subscriptions
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import SyncGroup, SyncGroupResponse
from groupstorm.coordinator.records import AppendCause, group_append_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import JOIN, SESSION, SYNC
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


class InitialDelay(NamedTuple):
    """The delay of a new group's first round, and the time by which it may still be extended."""

    delay_ms: int
    remaining_ms: int


def rebalance_or_complete(
    shard: Shard, group: ClassicGroup, cause: Cause, member_id: str | None
) -> Write | None:
    """Open a round, or close the open one if it can close (GMM.maybePrepareRebalanceOrCompleteJoin)."""
    if group.state is PREPARING_REBALANCE:
        return maybe_complete_join(shard, group, member_id)
    return prepare_rebalance(shard, group, cause, member_id)


def prepare_rebalance(shard: Shard, group: ClassicGroup, cause: Cause, member_id: str | None) -> Write | None:
    """Open a round. A group that was empty first waits for more members (KIP-134)."""
    if group.state is COMPLETING_REBALANCE:
        hand_out(shard, group, {}, Error.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    shard.timers.cancel(SYNC, group.name)
    if group.state is EMPTY:
        delay_ms = shard.config.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        _set_join_timer(shard, group, delay_ms, InitialDelay(delay_ms, remaining_ms))
        transition(shard, group, cause, member_id)
        return None
    transition(shard, group, cause, member_id)
    if group.all_joined():
        return complete_join(shard, group, Cause.ALL_JOINED, member_id)
    _set_join_timer(shard, group, group.rebalance_timeout_ms(), None)
    return None


def _set_join_timer(shard: Shard, group: ClassicGroup, delay_ms: int, initial: InitialDelay | None) -> None:
    shard.timers.set(JOIN, group.name, "", shard.now_ms + delay_ms, initial)


def maybe_complete_join(shard: Shard, group: ClassicGroup, member_id: str | None) -> Write | None:
    """Close the round if all have joined, unless it is a first round: that one waits for its whole delay
    (GMM.maybeCompleteJoinPhase)."""
    if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.all_joined():
        return complete_join(shard, group, Cause.ALL_JOINED, member_id)
    return None


def on_join_timer(shard: Shard, group: ClassicGroup, initial: InitialDelay | None) -> Write | None:
    """The round's time is over. While new members join, the initial delay is extended, at most to the
    rebalance timeout (GMM.tryCompleteInitialRebalanceElseSchedule)."""
    if initial is None:
        return complete_join(shard, group, Cause.REBALANCE_TIMEOUT, None)
    if not group.new_member_added or initial.remaining_ms == 0:
        return complete_join(shard, group, Cause.INITIAL_DELAY, None)
    group.new_member_added = False
    delay_ms = min(shard.config.initial_rebalance_delay_ms, initial.remaining_ms)
    remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
    _set_join_timer(shard, group, delay_ms, InitialDelay(delay_ms, remaining_ms))
    shard.emit(events.InitialDelayExtended(group.name, delay_ms * 1000))
    return None


def complete_join(shard: Shard, group: ClassicGroup, cause: Cause, member_id: str | None) -> Write | None:
    """Close the round: remove the dynamic members that did not join again; the others get the new generation.

    If no member joined and static members remain, the round stays open until their sessions end.
    """
    shard.timers.cancel(JOIN, group.name)
    if group.awaiting_join != len(group.members):
        _remove_absent(shard, group)
    if not group.elect_joined_leader() and group.members:
        # with a timeout of 0 this timer would fire again at the same instant, for ever
        _set_join_timer(shard, group, max(group.rebalance_timeout_ms(), 1), None)
        return None
    _next_generation(shard, group, cause, member_id)
    if group.state is EMPTY:
        return Write(group.name, [group_record(shard, group)], AppendCause.EMPTY_GROUP)
    _answer_joins(shard, group)
    timeout_ms = group.rebalance_timeout_ms()
    shard.timers.set(SYNC, group.name, "", shard.now_ms + timeout_ms, group.generation)
    return None


def _remove_absent(shard: Shard, group: ClassicGroup) -> None:
    for member in group.members.values():
        if member.join is None and member.group_instance_id is None:
            group.remove(member.member_id)
            shard.timers.cancel(SESSION, group.name, member.member_id)
            emit_removed(shard, group, member, member.group_instance_id, Cause.REBALANCE_TIMEOUT)


def _next_generation(shard: Shard, group: ClassicGroup, cause: Cause, member_id: str | None) -> None:
    """Count the generation up, choose the protocol, change the state. A fault leaves the steps before it done
    (ClassicGroup.initNextGeneration)."""
    group.generation += 1
    group.protocol = group.select_protocol() if group.members else None
    take_subscriptions(group, shard.config.compatibility)
    transition(shard, group, cause if group.members else Cause.NO_MEMBERS, member_id)


def _answer_joins(shard: Shard, group: ClassicGroup) -> None:
    """Every member gets the generation, the leader the metadata of all. Their sessions begin."""
    leader = group.leader or ""
    for member_id, member in group.members.items():
        members = group.described_members() if member_id == leader else ()
        response = of_generation(group, member_id, leader, members)
        answer_parked_join(shard, group, member, response)
        restart_session(shard, group, member)
        member.is_new = False
        group.pending_sync[member_id] = None


def hand_out(shard: Shard, group: ClassicGroup, plan: Mapping[str, bytes], error: Error) -> None:
    """Set every member's assignment and answer the parked syncs with it, or with ``error``
    (GMM.propagateAssignment). An answered sync restarts the session."""
    for member_id, member in group.members.items():
        member.assignment = plan.get(member_id, b"")
        if answer_parked_sync(shard, group, member, error):
            restart_session(shard, group, member)


def on_sync_timer(shard: Shard, group: ClassicGroup, generation: int) -> Write | None:
    """Members that were given the generation and did not sync go, static ones too
    (GMM.expirePendingSync)."""
    in_generation = group.state in (COMPLETING_REBALANCE, STABLE)
    if generation != group.generation or not in_generation or not group.pending_sync:
        return None
    for member_id in list(group.pending_sync):
        member = group.remove(member_id)
        shard.timers.cancel(SESSION, group.name, member_id)
        if member is not None:
            emit_removed(shard, group, member, member.group_instance_id, Cause.SYNC_TIMEOUT)
    return prepare_rebalance(shard, group, Cause.SYNC_TIMEOUT, None)


def handle_sync(shard: Shard, request: SyncGroup, reply: PendingReply) -> Write | None:
    """Answer at once, or park the request until the leader's assignments are written."""
    group = shard.group_as(request.group, ClassicGroup)
    error = _validate(request, group)
    if error or group is None:
        who = (request.group, request.client_id, request.member_id)
        answer_sync(shard, reply, *who, request.generation, SyncGroupResponse(error))
        return None
    member = group.members[request.member_id]
    if group.state is STABLE:
        _has_synced(shard, group, request.member_id)
        response = SyncGroupResponse(NO_ERROR, group.protocol_type, group.protocol, member.assignment)
        answer_sync(shard, reply, group.name, member.client_id, member.member_id, group.generation, response)
        return None
    member.sync = reply
    _has_synced(shard, group, request.member_id)
    shard.emit(events.SyncParked(group.name, member.client_id, member.member_id, group.generation))
    return _write_plan(shard, request, group) if group.leader == request.member_id else None


def _validate(request: SyncGroup, group: ClassicGroup | None) -> Error:
    if not request.group:
        return Error.INVALID_GROUP_ID
    if group is None or group.state is EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol, group.protocol):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else NO_ERROR


def _differ(asked: str | None, chosen: str | None) -> bool:
    """Whether both names are given and not the same."""
    return asked != chosen and asked is not None and chosen is not None


def _has_synced(shard: Shard, group: ClassicGroup, member_id: str) -> None:
    """The member has synced. Once all have, the timer that removes the others is cancelled."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        shard.timers.cancel(SYNC, group.name)


def _write_plan(shard: Shard, request: SyncGroup, group: ClassicGroup) -> Write:
    """Write the leader's assignments. They count once they are written, if the group still waits for them.

    A member that the leader left out gets an empty assignment: no bytes at all.
    """
    plan = dict(request.assignments)

    def on_written(error: Error | None) -> None:
        awaited = shard.exists(group) and group.state is COMPLETING_REBALANCE
        if not awaited or request.generation != group.generation:
            return
        if error is None:
            hand_out(shard, group, plan, NO_ERROR)
            transition(shard, group, Cause.ASSIGNED, request.member_id)
        else:
            hand_out(shard, group, {}, group_append_error(error))
            rebalance_or_complete(shard, group, Cause.APPEND_FAILED, request.member_id)

    return Write(group.name, [group_record(shard, group, plan)], AppendCause.GENERATION, on_written)

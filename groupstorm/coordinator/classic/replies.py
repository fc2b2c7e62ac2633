"""Answers to JoinGroup and SyncGroup, at once or after the request was parked, each with its event."""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.subscriptions import assigned_partitions
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupResponse, SyncGroupResponse
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events import coordinator as events


def answer_parked_join(
    shard: Shard, group: ClassicGroup, member: Member, response: JoinGroupResponse
) -> None:
    """Answer the member's join, if one is parked (ClassicGroup.completeJoinFuture)."""
    parked = member.join
    if parked is None:
        return
    member.join = None
    member_id = member.member_id
    if group.members.get(member_id) is member:
        group.awaiting_join -= 1
    answer_join(shard, parked, group.name, member.client_id, member_id, response)


def answer_join(
    shard: Shard,
    reply: PendingReply,
    group: str,
    client_id: str,
    member_id: str,
    response: JoinGroupResponse,
) -> None:
    """Answer a join and emit its event; ``member_id``: the id that sent the request."""
    if reply.done:
        return
    shard.answer(reply, response)
    error = response.error.name if response.error else None
    shard.emit(events.JoinAnswered(group, client_id, member_id, response.generation, error))


def answer_parked_sync(shard: Shard, group: ClassicGroup, member: Member, error: Error) -> bool:
    """Answer the member's parked sync with the error or its assignment; False if none is parked
    (ClassicGroup.completeSyncFuture)."""
    parked = member.sync
    if parked is None:
        return False
    member.sync = None
    if error:
        response = SyncGroupResponse(error)
    else:
        response = SyncGroupResponse(error, group.protocol_type, group.protocol, member.assignment)
    who = (group.name, member.client_id, member.member_id)
    answer_sync(shard, parked, *who, group.generation, response)
    return True


def answer_sync(
    shard: Shard,
    reply: PendingReply,
    group: str,
    client_id: str,
    member_id: str,
    generation: int,
    response: SyncGroupResponse,
) -> None:
    """Answer a sync and emit its event; ``member_id``: the id that sent the request."""
    if reply.done:
        return
    shard.answer(reply, response)
    error = response.error.name if response.error else None
    partitions = None if error else assigned_partitions(response.assignment)
    shard.emit(events.SyncAnswered(group, client_id, member_id, generation, error, partitions))

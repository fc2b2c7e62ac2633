"""The one table of the kinds of group, and the requests that every kind answers in its own way: which wing
gets them.

Kafka: GroupMetadataManager.classicGroupJoin, classicGroupSync, classicGroupHeartbeat, classicGroupLeave.
"""

from __future__ import annotations

from typing import get_args

from groupstorm.coordinator.changes import restore
from groupstorm.coordinator.classic import joins, rebalances, sessions
from groupstorm.coordinator.classic.changes import answer_join, rescue
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.classic_members import (
    heartbeat_in_consumer_group,
    join_consumer_group,
    leave_consumer_group,
    sync_consumer_group,
)
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerRecord
from groupstorm.coordinator.effects import PendingReply, Unwritten, Write
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import Heartbeat, JoinGroup, JoinGroupResponse, LeaveGroup, SyncGroup
from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.records import GroupTombstone, Record
from groupstorm.coordinator.shard import Shard, Wings
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import ShareRecord
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import StreamsRecord
from groupstorm.coordinator.streams.topology_descriptions import (
    UNCERTAIN,
    forget_description,
    must_be_forgotten,
)
from groupstorm.coordinator.timers import STREAMS_DELAY


def handle_join(shard: Shard, request: JoinGroup, reply: PendingReply) -> Write | None:
    """JoinGroup, to a group of any kind. An empty consumer or streams group becomes a classic one."""
    group = shard.groups.get(request.group)
    if group is None or isinstance(group, ClassicGroup):
        return joins.handle_join(shard, request, reply)
    if joins.refuse_outright(shard, request, reply):
        return None
    if isinstance(group, ShareGroup):
        _answer(shard, request, reply, JoinGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL))
        return None
    if isinstance(group, StreamsGroup):
        return _join_streams_group(shard, request, reply, group)
    if isinstance(group, ConsumerGroup) and group.members:
        return join_consumer_group(shard, request, reply, group)
    return _convert(shard, request, reply, group)


def _join_streams_group(
    shard: Shard, request: JoinGroup, reply: PendingReply, group: StreamsGroup
) -> Write | None:
    """Nobody joins a streams group by the classic protocol while it has members."""
    if group.members:
        _answer(shard, request, reply, JoinGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL))
        return None
    if not must_be_forgotten(shard, group):
        return _convert(shard, request, reply, group)
    waits = shard.description_waits
    later = JoinGroupResponse(Error.REBALANCE_IN_PROGRESS, member_id=request.member_id)

    def refuse() -> None:
        if not waits.is_running(group.name, UNCERTAIN, shard.now_ms):
            waits.begin(group.name, UNCERTAIN, shard.now_ms)
        _answer(shard, request, reply, later)

    if waits.is_running(group.name, UNCERTAIN, shard.now_ms):
        refuse()
        return None
    return forget_description(shard, group, lambda: _convert(shard, request, reply, group), refuse)


def _answer(shard: Shard, request: JoinGroup, reply: PendingReply, response: JoinGroupResponse) -> None:
    answer_join(shard, reply, request.group, request.client_id, request.member_id, response)


def _convert(shard: Shard, request: JoinGroup, reply: PendingReply, group: Group) -> Write | None:
    """Let a classic group take the place of the empty group."""
    shard.groups.remove(group.name)
    write = joins.handle_join(shard, request, reply)
    ending = ending_of(shard, group)
    if write is not None:
        write.records = [*ending, *write.records]
        write.revert = lambda: restore(shard, group.name, group)
    elif shard.config.compatibility.is_to_the_letter:
        # Kafka removes the group and writes nothing: a write that fails next brings it back
        shard.still_read[group.name] = group
        shard.since_written.append(Unwritten(lambda _: restore(shard, group.name, group)))
    else:
        restore(shard, group.name, group)
    return write


def ending_of(shard: Shard, group: Group) -> list[Record]:
    """The records that delete the group. The initial delay of a streams group is over."""
    if not isinstance(group, ModernGroup):
        return [GroupTombstone(group.name)]
    shard.timers.cancel(STREAMS_DELAY, group.name)
    return group.tombstones()


def handle_sync(shard: Shard, request: SyncGroup, reply: PendingReply) -> Write | None:
    """SyncGroup, to a group of any kind."""
    group = shard.groups.get(request.group)
    if isinstance(group, ConsumerGroup) and group.members:
        return sync_consumer_group(shard, request, reply, group)
    return rebalances.handle_sync(shard, request, reply)


def handle_heartbeat(shard: Shard, request: Heartbeat, reply: PendingReply) -> None:
    """Heartbeat, to a group of any kind."""
    group = shard.groups.get(request.group)
    if isinstance(group, ConsumerGroup):
        heartbeat_in_consumer_group(shard, request, reply, group)
    else:
        sessions.handle_heartbeat(shard, request, reply)


def handle_leave(shard: Shard, request: LeaveGroup, reply: PendingReply) -> Write | None:
    """LeaveGroup, to a group of any kind."""
    group = shard.groups.get(request.group)
    if isinstance(group, ConsumerGroup):
        return leave_consumer_group(shard, request, reply, group)
    return sessions.handle_leave(shard, request, reply)


WINGS = Wings(
    {
        **dict.fromkeys(get_args(ConsumerRecord), ConsumerGroup),
        **dict.fromkeys(get_args(StreamsRecord), StreamsGroup),
        **dict.fromkeys(get_args(ShareRecord), ShareGroup),
    },
    rescue,
)

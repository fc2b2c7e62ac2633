"""Requests that every kind of group answers in its own way: which wing gets them.

Kafka: GroupMetadataManager.classicGroupJoin, classicGroupSync, classicGroupHeartbeat, classicGroupLeave.
"""

from __future__ import annotations

from groupstorm.coordinator.classic import heartbeats, joins, leaves, syncs
from groupstorm.coordinator.consumer.changes import restore
from groupstorm.coordinator.consumer.classic_members import (
    heartbeat_in_consumer_group,
    join_consumer_group,
    leave_consumer_group,
    sync_consumer_group,
)
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.migration import tombstones
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.shard import Shard


def handle_join(shard: Shard, request: JoinGroup, reply: PendingReply) -> Write | None:
    """JoinGroup, to a group of either kind. An empty consumer group becomes a classic one."""
    group = shard.groups.get(request.group)
    if not isinstance(group, ConsumerGroup):
        return joins.handle_join(shard, request, reply)
    if joins.refuse_outright(shard, request, reply):
        return None
    if group.members:
        return join_consumer_group(shard, request, reply, group)
    shard.groups.remove(group.name)
    write = joins.handle_join(shard, request, reply)
    if write is not None:
        write.records = [*tombstones(group), *write.records]
        write.revert = lambda: restore(shard, group.name, group)
    elif shard.config.compatibility.is_to_the_letter:
        shard.still_read[group.name] = group  # Kafka removes the group and writes nothing
    else:
        restore(shard, group.name, group)
    return write


def handle_sync(shard: Shard, request: SyncGroup, reply: PendingReply) -> Write | None:
    """SyncGroup, to a group of either kind."""
    group = shard.groups.get(request.group)
    if isinstance(group, ConsumerGroup) and group.members:
        return sync_consumer_group(shard, request, reply, group)
    return syncs.handle_sync(shard, request, reply)


def handle_heartbeat(shard: Shard, request: Heartbeat, reply: PendingReply) -> None:
    """Heartbeat, to a group of either kind."""
    group = shard.groups.get(request.group)
    if isinstance(group, ConsumerGroup):
        heartbeat_in_consumer_group(shard, request, reply, group)
    else:
        heartbeats.handle_heartbeat(shard, request, reply)


def handle_leave(shard: Shard, request: LeaveGroup, reply: PendingReply) -> Write | None:
    """LeaveGroup, to a group of either kind."""
    group = shard.groups.get(request.group)
    if isinstance(group, ConsumerGroup):
        return leave_consumer_group(shard, request, reply, group)
    return leaves.handle_leave(shard, request, reply)

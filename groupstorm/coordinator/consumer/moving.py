"""A consumer group that has been loaded begins its members' sessions; one that is unloaded is forgotten.

Kafka: GroupMetadataManager.onLoaded, onUnloaded.
"""

from __future__ import annotations

from groupstorm.coordinator.consumer.changes import cancel_member_timers, restart_session
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import MemberState
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_REBALANCE
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def on_consumer_group_loaded(shard: Shard, group: ConsumerGroup) -> None:
    """Begin the members' sessions, and the rebalance timeouts of those that have partitions to give up."""
    shard.emit(events.GroupCreated(group.name, "loaded"))
    for member in group.members.values():
        restart_session(shard, group.name, member)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            deadline_ms = shard.now_ms + member.rebalance_timeout_ms
            shard.timers.set(MEMBER_REBALANCE, group.name, member.member_id, deadline_ms, member.epoch)


def unload_consumer_group(shard: Shard, group: ConsumerGroup) -> None:
    """Forget the group: nothing of it waits for an answer."""
    for member_id in group.members:
        cancel_member_timers(shard, group.name, member_id)
    shard.groups.remove(group.name)
    shard.emit(events.GroupDeleted(group.name, Cause.UNLOADED))

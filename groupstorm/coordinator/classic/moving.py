"""A classic group that has been loaded begins its sessions; one that is unloaded answers its members.

Kafka: GroupMetadataManager.onLoaded, onUnloaded.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.changes import answer_all_parked, delete_group, restart_session
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.rebalances import prepare_rebalance
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def on_group_loaded(shard: Shard, group: ClassicGroup) -> Write | None:
    """Begin the members' sessions; a group with more than group.max.size members rebalances."""
    shard.emit(events.GroupCreated(group.name, "loaded"))
    for member in group.members.values():
        restart_session(shard, group, member)
    if len(group.members) <= shard.config.max_size:
        return None
    return prepare_rebalance(shard, group, Cause.OVER_CAPACITY, None)


def unload_group(shard: Shard, group: ClassicGroup) -> None:
    """Answer every parked request NOT_COORDINATOR and forget the group."""
    answer_all_parked(shard, group, Error.NOT_COORDINATOR)
    delete_group(shard, group, Cause.UNLOADED)

"""ListGroups: a read, which sees the committed groups.

Kafka: GroupMetadataManager.listGroups.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import ListedGroup, ListGroups, ListGroupsResponse
from groupstorm.coordinator.shard import Shard


def handle_list(shard: Shard, request: ListGroups, reply: PendingReply) -> None:
    states = {state.lower().strip() for state in request.states}
    types = {kind.lower().strip() for kind in request.types}
    listed = [
        ListedGroup(group.name, _protocol_type(group), group.state, group.kind)
        for _, group in shard.groups.items()
        if group.committed and (not states or _state(group) in states) and (not types or group.kind in types)
    ]
    shard.answer(reply, ListGroupsResponse(Error.NONE, tuple(listed)))


def _state(group: Group) -> str:
    """The state as filters name it."""
    return "not_ready" if group.state.value == "NotReady" else group.state.lower()


def _protocol_type(group: Group) -> str:
    return group.protocol_type or "" if isinstance(group, ClassicGroup) else group.kind

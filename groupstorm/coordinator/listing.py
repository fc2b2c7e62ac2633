"""ListGroups: a read, which sees the committed groups.

Kafka: GroupMetadataManager.listGroups.
"""

from __future__ import annotations

from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ListedGroup, ListGroups, ListGroupsResponse
from groupstorm.coordinator.shard import Shard

#: The type under which classic groups are listed (KIP-848).
CLASSIC_TYPE = "classic"


def handle_list(shard: Shard, request: ListGroups, reply: PendingReply) -> None:
    states = {state.lower().strip() for state in request.states}
    types = {kind.lower().strip() for kind in request.types}
    listed = [
        ListedGroup(group.name, group.protocol_type or "", group.state, CLASSIC_TYPE)
        for _, group in shard.groups.items()
        if group.committed
        and (not states or group.state.lower() in states)
        and (not types or CLASSIC_TYPE in types)
    ]
    shard.answer(reply, ListGroupsResponse(Error.NONE, tuple(listed)))

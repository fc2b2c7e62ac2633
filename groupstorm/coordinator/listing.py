"""ListGroups: a read, which sees the committed groups.

Kafka: GroupMetadataManager.listGroups.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.groups import AnyGroup
from groupstorm.coordinator.messages import ListedGroup, ListGroups, ListGroupsResponse
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import StreamsGroup, StreamsGroupState

#: The types under which groups are listed (KIP-848).
CLASSIC_TYPE = "classic"
CONSUMER_TYPE = "consumer"
STREAMS_TYPE = "streams"


def handle_list(shard: Shard, request: ListGroups, reply: PendingReply) -> None:
    states = {state.lower().strip() for state in request.states}
    types = {kind.lower().strip() for kind in request.types}
    listed = [
        ListedGroup(group.name, _protocol_type(group), group.state, _type(group))
        for _, group in shard.groups.items()
        if group.committed
        and (not states or _state(group) in states)
        and (not types or _type(group) in types)
    ]
    shard.answer(reply, ListGroupsResponse(Error.NONE, tuple(listed)))


def _state(group: AnyGroup) -> str:
    """The state as filters name it."""
    return "not_ready" if group.state is StreamsGroupState.NOT_READY else group.state.lower()


def _type(group: AnyGroup) -> str:
    if isinstance(group, StreamsGroup):
        return STREAMS_TYPE
    return CONSUMER_TYPE if isinstance(group, ConsumerGroup) else CLASSIC_TYPE


def _protocol_type(group: AnyGroup) -> str:
    return group.protocol_type or "" if isinstance(group, ClassicGroup) else _type(group)

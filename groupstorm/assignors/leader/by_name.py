"""The leader's plain way: decode, assign, encode. It serves every assignor and defines the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.contract import Assignor, MapOrder, TopicMetadata
from groupstorm.assignors.userdata import Subscription, decode_subscription, encode_assignment

#: Member id, group.instance.id, subscription bytes: a member of the leader's JoinGroup response.
JoinedMember = tuple[str, str | None, bytes]


def assign_by_name(
    assignor: Assignor, topics: Mapping[str, TopicMetadata], members: Sequence[JoinedMember]
) -> dict[str, bytes]:
    """See `perform_assignment`. A member without an entry in the assignor's answer gets no bytes."""
    order: MapOrder = getattr(assignor, "order", MapOrder.JAVA_HASH)
    read: dict[str, Subscription] = {
        member: decode_subscription(metadata)._replace(instance=instance)
        for member, instance, metadata in members
    }
    result = assignor.assign(topics, {member: read[member] for member in order.arrange(read)})
    own = result.user_data_of or {}
    return {
        member: encode_assignment(partitions, own.get(member, result.user_data))
        for member, partitions in result.partitions.items()
    }

"""ShareGroupDescribe: members with their epochs, topics and partitions (Kafka: shareGroupDescribe)."""

from __future__ import annotations

from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.messages import (
    DescribedShareMember,
    DescribeShareGroup,
    DescribeShareGroupResponse,
)

#: The only assignor of share groups (`group.share.assignors`).
SIMPLE = "simple"


def handle_describe_share_group(shard: Shard, request: DescribeShareGroup, reply: PendingReply) -> None:
    if not request.group:
        shard.answer(reply, DescribeShareGroupResponse(Error.INVALID_GROUP_ID, request.group))
        return
    group = shard.committed_group(request.group)
    if not isinstance(group, ShareGroup):
        reason = "not found" if group is None else "is not a share group"
        message = f"Group {request.group} {reason}."
        shard.answer(
            reply, DescribeShareGroupResponse(Error.GROUP_ID_NOT_FOUND, request.group, error_message=message)
        )
        return
    members = [
        DescribedShareMember(
            member.member_id,
            member.rack,
            member.epoch,
            member.client_id,
            member.client_host,
            tuple(sorted(member.topics)),
            {
                name: tuple(sorted(numbers))
                for topic, numbers in member.assigned.items()
                if (name := shard.topics.name(topic)) is not None
            },
        )
        for member in group.members.values()
    ]
    described = DescribeShareGroupResponse(
        NO_ERROR, group.name, group.state.value, group.epoch, group.assignment_epoch, SIMPLE, tuple(members)
    )
    shard.answer(reply, described)

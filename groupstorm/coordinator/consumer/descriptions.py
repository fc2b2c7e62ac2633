"""ConsumerGroupDescribe: members with their epochs, partitions and targets (Kafka: consumerGroupDescribe)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import (
    DescribeConsumerGroup,
    DescribeConsumerGroupResponse,
    DescribedConsumerMember,
)
from groupstorm.coordinator.shard import Shard


def handle_describe_consumer_group(shard: Shard, request: DescribeConsumerGroup, reply: PendingReply) -> None:
    if not request.group:
        shard.answer(reply, DescribeConsumerGroupResponse(Error.INVALID_GROUP_ID, request.group))
        return
    group = shard.committed_group(request.group)
    if isinstance(group, ConsumerGroup):
        shard.answer(reply, _describe(shard, group))
        return
    reason = "not found" if group is None else "is not a consumer group"
    message = f"Group {request.group} {reason}."
    response = DescribeConsumerGroupResponse(Error.GROUP_ID_NOT_FOUND, request.group, error_message=message)
    shard.answer(reply, response)


def _describe(shard: Shard, group: ConsumerGroup) -> DescribeConsumerGroupResponse:
    return DescribeConsumerGroupResponse(
        NO_ERROR,
        group.name,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        group.preferred_assignor() or shard.config.consumer.assignors[0],
        tuple([_member(shard, group, member) for member in group.members.values()]),
    )


def _member(shard: Shard, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumerMember:
    """A partition that the member has to give up still counts as its own."""
    held: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic, numbers in partitions.items():
            held.setdefault(topic, []).extend(numbers)
    return DescribedConsumerMember(
        member.member_id,
        member.instance,
        member.rack,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        member.regex,
        _by_name(shard, held),
        _by_name(shard, group.target(member.member_id)),
        member.classic is not None,
    )


def _by_name(shard: Shard, partitions: Mapping[UUID, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    """By topic name; topics that no longer exist are left out."""
    return {
        name: tuple(sorted(numbers))
        for topic, numbers in partitions.items()
        if (name := shard.topics.name(topic)) is not None
    }

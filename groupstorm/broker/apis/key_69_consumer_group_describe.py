"""ConsumerGroupDescribe (key 69), versions 0-1 (KIP-848).

* v1: which protocol each member speaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.broker.apis.api import (
    Api,
    AskCoordinator,
    BrokerState,
    Call,
    authorized_operations,
)
from groupstorm.broker.apis.key_15_describe_groups import GROUP_OPERATIONS
from groupstorm.coordinator import messages

_FIRST_MEMBER_TYPE = 1
_CLASSIC, _CONSUMER = 0, 1


def handle(state: BrokerState, call: Call) -> AskCoordinator:
    requests = [messages.DescribeConsumerGroup(group, call.version) for group in call.message.group_ids]
    operations = authorized_operations(call.message.include_authorized_operations, GROUP_OPERATIONS)

    def finish(answers: Sequence[messages.DescribeConsumerGroupResponse]) -> Any:
        groups = tuple(_group(state, call, answer, operations) for answer in answers)
        return call.types.response(groups=groups)

    return AskCoordinator(requests, finish)


API = Api(69, "ConsumerGroupDescribe", 0, 1, handle)


def _group(
    state: BrokerState, call: Call, answer: messages.DescribeConsumerGroupResponse, operations: int
) -> Any:
    return call.types.make(
        "DescribedGroup",
        error_code=answer.error,
        error_message=answer.error_message,
        group_id=answer.group,
        group_state=answer.state,
        group_epoch=answer.epoch,
        assignment_epoch=answer.assignment_epoch,
        assignor_name=answer.assignor,
        members=tuple(_member(state, call, member) for member in answer.members),
        authorized_operations=operations,
    )


def _member(state: BrokerState, call: Call, member: messages.DescribedConsumerMember) -> Any:
    kind = _CLASSIC if member.is_classic else _CONSUMER
    return call.types.make(
        "Member",
        member_id=member.member_id,
        instance_id=member.instance,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex,
        assignment=_assignment(state, call, member.assignment),
        target_assignment=_assignment(state, call, member.target),
        **({"member_type": kind} if call.version >= _FIRST_MEMBER_TYPE else {}),
    )


def _assignment(state: BrokerState, call: Call, partitions: Mapping[str, tuple[int, ...]]) -> Any:
    topics = tuple(
        call.types.make("TopicPartitions", topic_id=topic.topic_id, topic_name=name, partitions=numbers)
        for name, numbers in partitions.items()
        if (topic := state.topics.get(name)) is not None
    )
    return call.types.make("Assignment", topic_partitions=topics)

"""ConsumerGroupDescribe (key 69), versions 0-1 (KIP-848).

* v1: which protocol each member speaks.
* A client needs DESCRIBE on the group and on each topic of which a member has partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.lookup import allowed_groups
from groupstorm.broker.apis.rights import authorized_operations, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_FIRST_MEMBER_TYPE = 1
_CLASSIC, _CONSUMER = 0, 1
#: Why a description holds nothing.
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    requests = yield from in_turns(
        messages.DescribeConsumerGroup(group, call.version) for group in call.message.group_ids
    )
    allowed, denied = yield from allowed_groups(state, call, requests)

    def finish(answers: Sequence[messages.DescribeConsumerGroupResponse]) -> Turns[Any]:
        groups = []
        for error in denied:
            groups.append((yield from _group(state, call, error)))
        for answer in answers:
            shown = answer if _may_see(state, call, answer) else _hidden(answer)
            groups.append((yield from _group(state, call, shown)))
            yield 1
        return call.types.response(groups=tuple(groups))

    return AskCoordinator(allowed, finish)


API = AskingApi(
    69, "ConsumerGroupDescribe", 0, 1, handle, older=(), on_topics=Operation.DESCRIBE,
    on_groups=Operation.DESCRIBE,
)  # fmt: skip


def _may_see(state: BrokerState, call: Call, answer: messages.DescribeConsumerGroupResponse) -> bool:
    topics = {topic for member in answer.members for topic in (*member.assignment, *member.target)}
    return all(topic_error(state, call, topic) is Error.NONE for topic in topics)


def _hidden(answer: messages.DescribeConsumerGroupResponse) -> messages.DescribeConsumerGroupResponse:
    error = Error.TOPIC_AUTHORIZATION_FAILED
    return messages.DescribeConsumerGroupResponse(error, answer.group, error_message=HIDDEN_TOPICS)


def _group(state: BrokerState, call: Call, answer: Any) -> Turns[Any]:
    asked = call.message.include_authorized_operations and answer.error is Error.NONE
    members = yield from in_turns((_member(state, call, member) for member in answer.members), work=10)
    yield 2
    return call.types.make(
        "DescribedGroup",
        error_code=answer.error,
        error_message=answer.error_message,
        group_id=answer.group,
        group_state=answer.state,
        group_epoch=answer.epoch,
        assignment_epoch=answer.assignment_epoch,
        assignor_name=answer.assignor,
        members=members,
        authorized_operations=authorized_operations(state, call, asked, ResourceType.GROUP, answer.group),
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
        assignment=described_assignment(state, call, member.assignment),
        target_assignment=described_assignment(state, call, member.target),
        **({"member_type": kind} if call.version >= _FIRST_MEMBER_TYPE else {}),
    )


def described_assignment(state: BrokerState, call: Call, partitions: Mapping[str, tuple[int, ...]]) -> Any:
    """An assignment as descriptions of groups have it."""
    topics = tuple(
        call.types.make("TopicPartitions", topic_id=topic.topic_id, topic_name=name, partitions=numbers)
        for name, numbers in partitions.items()
        if (topic := state.topics.get(name)) is not None
    )
    return call.types.make("Assignment", topic_partitions=topics)

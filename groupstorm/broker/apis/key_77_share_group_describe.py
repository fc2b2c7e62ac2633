"""ShareGroupDescribe (key 77), version 1 (KIP-932).

* A client needs DESCRIBE on the group and on each topic of which a member has partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.key_69_consumer_group_describe import HIDDEN_TOPICS, described_assignment
from groupstorm.broker.apis.lookup import allowed_groups
from groupstorm.broker.apis.rights import authorized_operations, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import (
    DescribedShareMember,
    DescribeShareGroup,
    DescribeShareGroupResponse,
)
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    requests = yield from in_turns(
        DescribeShareGroup(group, call.version) for group in call.message.group_ids
    )
    allowed, denied = yield from allowed_groups(state, call, requests)

    def finish(answers: Sequence[DescribeShareGroupResponse]) -> Turns[Any]:
        groups = []
        for error in denied:
            groups.append((yield from _group(state, call, error)))
        for answer in answers:
            topics = {topic for member in answer.members for topic in member.assignment}
            shown = answer
            if any(topic_error(state, call, topic) is not Error.NONE for topic in topics):
                hidden = Error.TOPIC_AUTHORIZATION_FAILED
                shown = DescribeShareGroupResponse(hidden, answer.group, error_message=HIDDEN_TOPICS)
            groups.append((yield from _group(state, call, shown)))
            yield 1
        return call.types.response(groups=tuple(groups))

    return AskCoordinator(allowed, finish)


API = AskingApi(
    77, "ShareGroupDescribe", 1, 1, handle, older=(), on_topics=Operation.DESCRIBE,
    on_groups=Operation.DESCRIBE,
)  # fmt: skip


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


def _member(state: BrokerState, call: Call, member: DescribedShareMember) -> Any:
    return call.types.make(
        "Member",
        member_id=member.member_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        assignment=described_assignment(state, call, member.assignment),
    )

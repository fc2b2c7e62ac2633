"""ConsumerGroupDescribe (key 69), versions 0-1 (KIP-848).

* v1: which protocol each member speaks.
* A client needs DESCRIBE on the group and on each topic of which a member has partitions.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.group_descriptions import (
    Description,
    assignment,
    describe,
    epochs,
    topics_of_members,
)
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator import messages
from groupstorm.turns import Turns

_FIRST_MEMBER_TYPE = 1
_CLASSIC, _CONSUMER = 0, 1
#: Why a description holds nothing.
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    requests = (messages.DescribeConsumerGroup(group, call.version) for group in call.message.group_ids)
    return describe(state, call, requests, _DESCRIPTION)


API = AskingApi(
    69, "ConsumerGroupDescribe", 0, 1, handle, older=(), on_topics=Operation.DESCRIBE,
    on_groups=Operation.DESCRIBE,
)  # fmt: skip


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
        assignment=assignment(state, call, member.assignment),
        target_assignment=assignment(state, call, member.target),
        **({"member_type": kind} if call.version >= _FIRST_MEMBER_TYPE else {}),
    )


_DESCRIPTION = Description(_member, epochs, topics_of_members, HIDDEN_TOPICS)

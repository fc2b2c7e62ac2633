"""ShareGroupDescribe (key 77), version 1 (KIP-932).

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
from groupstorm.broker.apis.key_69_consumer_group_describe import HIDDEN_TOPICS
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.share.messages import DescribedShareMember, DescribeShareGroup
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    requests = (DescribeShareGroup(group, call.version) for group in call.message.group_ids)
    return describe(state, call, requests, _DESCRIPTION)


API = AskingApi(
    77, "ShareGroupDescribe", 1, 1, handle, older=(), on_topics=Operation.DESCRIBE,
    on_groups=Operation.DESCRIBE,
)  # fmt: skip


def _member(state: BrokerState, call: Call, member: DescribedShareMember) -> Any:
    return call.types.make(
        "Member",
        member_id=member.member_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        assignment=assignment(state, call, member.assignment),
    )


_DESCRIPTION = Description(_member, epochs, topics_of_members, HIDDEN_TOPICS)

"""DescribeGroups (key 15), versions 0-6.

* v3: authorized operations when asked for, else INT32_MIN. v4: group.instance.id.
* v6: an unknown group is GROUP_ID_NOT_FOUND with a message (KIP-1043); before, state Dead and no error,
  which is the coordinator's to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import (
    Api,
    AskCoordinator,
    BrokerState,
    Call,
    authorized_operations,
)
from groupstorm.coordinator import messages

#: AclOperation codes of a group: read, delete, describe, describe and alter configs.
GROUP_OPERATIONS = (3, 6, 8, 10, 11)


def handle(_state: BrokerState, call: Call) -> AskCoordinator:
    requests = [messages.DescribeGroup(group, call.version) for group in call.message.groups]
    asked = getattr(call.message, "include_authorized_operations", False)
    operations = authorized_operations(asked, GROUP_OPERATIONS)

    def finish(answers: Sequence[messages.DescribeGroupResponse]) -> Any:
        return call.types.response(groups=tuple(_group(call, answer, operations) for answer in answers))

    return AskCoordinator(requests, finish)


API = Api(15, "DescribeGroups", 0, 6, handle)


def _group(call: Call, answer: messages.DescribeGroupResponse, operations: int) -> Any:
    members = tuple(
        call.types.make(
            "DescribedGroupMember",
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata,
            member_assignment=member.assignment,
        )
        for member in answer.members
    )
    return call.types.make(
        "DescribedGroup",
        error_code=answer.error,
        error_message=answer.error_message,
        group_id=answer.group,
        group_state=answer.state,
        protocol_type=answer.protocol_type,
        protocol_data=answer.protocol,
        members=members,
        authorized_operations=operations,
    )

"""DescribeGroups (key 15), versions 0-6.

* v3: authorized operations when asked for, else INT32_MIN. v4: group.instance.id.
* v6: an unknown group is GROUP_ID_NOT_FOUND with a message (KIP-1043); before, state Dead and no error,
  which is the coordinator's to decide.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.group_descriptions import Description, describe
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator import messages
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    requests = (messages.DescribeGroup(group, call.version) for group in call.message.groups)
    return describe(state, call, requests, _DESCRIPTION)


API = AskingApi(15, "DescribeGroups", 0, 6, handle, older=(5, 5), on_groups=Operation.DESCRIBE)


def _member(_: BrokerState, call: Call, member: messages.DescribedMember) -> Any:
    return call.types.make(
        "DescribedGroupMember",
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )


def _fields(_: Call, answer: messages.DescribeGroupResponse) -> dict[str, Any]:
    return {"protocol_type": answer.protocol_type, "protocol_data": answer.protocol}


_DESCRIPTION = Description(_member, _fields)

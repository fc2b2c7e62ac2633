"""DescribeGroups (key 15), versions 0-6.

* v3: authorized operations when asked for, else INT32_MIN. v4: group.instance.id.
* v6: an unknown group is GROUP_ID_NOT_FOUND with a message (KIP-1043); before, state Dead and no error,
  which is the coordinator's to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.lookup import allowed_groups
from groupstorm.broker.apis.rights import authorized_operations
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    groups = call.message.groups
    requests = yield from in_turns(messages.DescribeGroup(group, call.version) for group in groups)
    allowed, denied = yield from allowed_groups(state, call, requests)

    def finish(answers: Sequence[messages.DescribeGroupResponse]) -> Turns[Any]:
        groups = []
        for one in (*denied, *answers):
            groups.append((yield from _group(state, call, one)))
        return call.types.response(groups=tuple(groups))

    return AskCoordinator(allowed, finish)


API = AskingApi(15, "DescribeGroups", 0, 6, handle, older=(5, 5), on_groups=Operation.DESCRIBE)


def _group(state: BrokerState, call: Call, answer: Any) -> Turns[Any]:
    asked = getattr(call.message, "include_authorized_operations", False) and answer.error is Error.NONE
    members = yield from in_turns(
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
    yield 2
    return call.types.make(
        "DescribedGroup",
        error_code=answer.error,
        error_message=answer.error_message,
        group_id=answer.group,
        group_state=answer.state,
        protocol_type=answer.protocol_type,
        protocol_data=answer.protocol,
        members=members,
        authorized_operations=authorized_operations(state, call, asked, ResourceType.GROUP, answer.group),
    )

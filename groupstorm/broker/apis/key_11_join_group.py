"""JoinGroup (key 11), versions 0-9.

* v0 has no rebalance timeout: the session timeout stands for it. v4: MEMBER_ID_REQUIRED (KIP-394).
  v5: group.instance.id (KIP-345). v7: the protocol's type in the response, and a null protocol name;
  before, an empty name. v8: the reason. v9: skip_assignment (KIP-814).
* A join to a group of the newer protocol may have regular expressions of other members resolved: they match
  the topics that the client may describe.
* A JoinGroup that waits for the round mutes its connection.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call, milliseconds
from groupstorm.broker.apis.rights import READ_GROUP, may_describe_topic
from groupstorm.coordinator import messages

_FIRST_NULLABLE_PROTOCOL = 7


def read_join(message: Any, version: int, client_id: str, client_host: str = "") -> messages.JoinGroup:
    """The request of kio's message of this version."""
    session_timeout_ms = milliseconds(message.session_timeout)
    has_rebalance_timeout = version > 0
    return messages.JoinGroup(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=milliseconds(message.rebalance_timeout)
        if has_rebalance_timeout
        else session_timeout_ms,
        protocol_type=message.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in message.protocols),
        version=version,
        client_id=client_id,
        client_host=client_host,
        reason=getattr(message, "reason", None),
    )


def handle(state: BrokerState, call: Call) -> AskCoordinator:
    request = read_join(call.message, call.version, call.client_id, call.client_host)
    may_match = partial(may_describe_topic, state, call)
    return AskCoordinator((request,), lambda answers: _response(call, *answers), may_match)


API = AskingApi(11, "JoinGroup", 0, 9, handle, older=(7, 9), needs=(READ_GROUP,))


def _response(call: Call, answer: messages.JoinGroupResponse) -> Any:
    protocol = answer.protocol or None
    members = tuple(
        call.types.make(
            "JoinGroupResponseMember",
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata,
        )
        for member in answer.members
    )
    return call.types.response(
        error_code=answer.error,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=protocol if call.version >= _FIRST_NULLABLE_PROTOCOL else protocol or "",
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=members,
    )

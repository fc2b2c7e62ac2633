"""The requests of members by the classic protocol: JoinGroup, Heartbeat, LeaveGroup and SyncGroup."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, Call, Done, milliseconds
from groupstorm.broker.apis.rights import READ_GROUP, may_describe_topic
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import ResponseTypes
from groupstorm.turns import Turns, at_once, in_turns

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


def join_group(state: BrokerState, call: Call) -> AskCoordinator:
    """JoinGroup (key 11), versions 0-9.

    * v0 has no rebalance timeout: the session timeout stands for it. v4: MEMBER_ID_REQUIRED (KIP-394).
      v5: group.instance.id (KIP-345). v7: the protocol's type in the response, and a null protocol name;
      before, an empty name. v8: the reason. v9: skip_assignment (KIP-814).
    * A join to a group of the newer protocol may have regular expressions of other members resolved: they
      match the topics that the client may describe.
    * A JoinGroup that waits for the round mutes its connection.
    """
    request = read_join(call.message, call.version, call.client_id, call.client_host)
    may_match = partial(may_describe_topic, state, call)
    return AskCoordinator((request,), lambda answers: _join_response(call, *answers), may_match)


def _join_response(call: Call, answer: messages.JoinGroupResponse) -> Any:
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


def read_heartbeat(message: Any, version: int, client_id: str) -> messages.Heartbeat:
    """The request of kio's message of this version."""
    return messages.Heartbeat(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=message.generation_id,
        version=version,
        client_id=client_id,
    )


def heartbeat(_state: BrokerState, call: Call) -> AskCoordinator:
    """Heartbeat (key 12), versions 0-4. v3: group.instance.id (KIP-345)."""
    request = read_heartbeat(call.message, call.version, call.client_id)
    return AskCoordinator((request,), lambda answers: heartbeat_response(call.types, answers[0].error))


@cache
def heartbeat_response(types: ResponseTypes, error: Error) -> Any:
    """The response for an error, made once: no response is sent more often."""
    return types.response(error_code=error)


_FIRST_BATCHED_VERSION = 3


def read_leave(message: Any, version: int, client_id: str) -> messages.LeaveGroup:
    """The request of kio's message of this version."""
    return at_once(_read_leave(message, version, client_id))


def _read_leave(message: Any, version: int, client_id: str) -> Turns[messages.LeaveGroup]:
    if version < _FIRST_BATCHED_VERSION:
        members: tuple[messages.LeavingMember, ...] = (messages.LeavingMember(message.member_id),)
    else:
        members = yield from in_turns(
            messages.LeavingMember(one.member_id, one.group_instance_id, getattr(one, "reason", None))
            for one in message.members
        )
    return messages.LeaveGroup(group=message.group_id, members=members, version=version, client_id=client_id)


def leave_group(_state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """LeaveGroup (key 13), versions 0-5.

    * v0-2 name one member, and its error is the response's. v3: several members, each with its error
      (KIP-345). v5: the reason.
    """
    request = yield from _read_leave(call.message, call.version, call.client_id)
    return AskCoordinator((request,), lambda answers: _leave_response(call, *answers))


def _leave_response(call: Call, answer: messages.LeaveGroupResponse) -> Turns[Any]:
    if call.version < _FIRST_BATCHED_VERSION:
        errors = (answer.error, *(member.error for member in answer.members))
        first = next((error for error in errors if error is not Error.NONE), Error.NONE)
        return call.types.response(error_code=first)
    members = yield from in_turns(
        call.types.make(
            "MemberResponse",
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=member.error,
        )
        for member in answer.members
    )
    return call.types.response(error_code=answer.error, members=members)


_FIRST_WITH_PROTOCOL = 5


def read_sync(message: Any, version: int, client_id: str) -> messages.SyncGroup:
    """The request of kio's message of this version."""
    return messages.SyncGroup(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=message.generation_id,
        protocol_type=getattr(message, "protocol_type", None),
        protocol=getattr(message, "protocol_name", None),
        assignments=tuple((one.member_id, one.assignment) for one in message.assignments),
        version=version,
        client_id=client_id,
    )


def sync_group(_state: BrokerState, call: Call) -> AskCoordinator | Done:
    """SyncGroup (key 14), versions 0-5.

    * v3: group.instance.id. v5: protocol type and name, which must both be there, else
      INCONSISTENT_GROUP_PROTOCOL (KIP-559); the check is the API layer's, before the coordinator's.
    * A follower's SyncGroup that waits for the leader's plan mutes its connection.
    """
    request = read_sync(call.message, call.version, call.client_id)
    if call.version >= _FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol):
        return Done(_sync_response(call, messages.SyncGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL)))
    return AskCoordinator((request,), lambda answers: _sync_response(call, *answers))


def _sync_response(call: Call, answer: messages.SyncGroupResponse) -> Any:
    return call.types.response(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )


APIS = (
    AskingApi(11, "JoinGroup", 0, 9, join_group, older=(7, 9), needs=(READ_GROUP,)),
    AskingApi(12, "Heartbeat", 0, 4, heartbeat, needs=(READ_GROUP,), is_repeated=True),
    AskingApi(13, "LeaveGroup", 0, 5, leave_group, older=(4, 5), needs=(READ_GROUP,)),
    AskingApi(14, "SyncGroup", 0, 5, sync_group, needs=(READ_GROUP,)),
)

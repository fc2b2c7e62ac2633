"""The requests of members but those of Kafka Streams: JoinGroup, Heartbeat, LeaveGroup and SyncGroup of the
classic protocol, ConsumerGroupHeartbeat and ShareGroupHeartbeat.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, Call, CoordinatorsApi, Done, read
from groupstorm.broker.apis.resources import READ_GROUP, may_describe_topic, topic_error
from groupstorm.broker.authorization import Operation
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.javahash import string_hash
from groupstorm.protocol.codec import ResponseTypes
from groupstorm.protocol.codec.plain_values import fields_of, milliseconds
from groupstorm.turns import Turns, at_once, in_turns

_FIRST_NULLABLE_PROTOCOL = 7


def read_join(message: Any, version: int, client_id: str, client_host: str = "") -> messages.JoinGroup:
    """The request of kio's message of this version."""
    protocols = tuple((protocol.name, protocol.metadata) for protocol in message.protocols)
    own: dict[str, Any] = {"protocols": protocols, "client_host": client_host}
    if version == 0:
        own["rebalance_timeout_ms"] = milliseconds(message.session_timeout)
    return read(messages.JoinGroup, message, version, client_id, **own)


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
    own = {
        "protocol_name": protocol if call.version >= _FIRST_NULLABLE_PROTOCOL else protocol or "",
        "members": tuple(
            call.types.make("JoinGroupResponseMember", **member._asdict()) for member in answer.members
        ),
    }
    return call.types.response(**call.types.fitting(fields_of(answer)) | own)


def read_heartbeat(message: Any, version: int, client_id: str) -> messages.Heartbeat:
    """The request of kio's message of this version."""
    return read(messages.Heartbeat, message, version, client_id)


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
        call.types.make("MemberResponse", **call.types.fitting(fields_of(member), "MemberResponse"))
        for member in answer.members
    )
    return call.types.response(error_code=answer.error, members=members)


_FIRST_WITH_PROTOCOL = 5


def read_sync(message: Any, version: int, client_id: str) -> messages.SyncGroup:
    """The request of kio's message of this version."""
    assignments = tuple((one.member_id, one.assignment) for one in message.assignments)
    return read(messages.SyncGroup, message, version, client_id, assignments=assignments)


def sync_group(_state: BrokerState, call: Call) -> AskCoordinator | Done:
    """SyncGroup (key 14), versions 0-5.

    * v3: group.instance.id. v5: protocol type and name, which must both be there, else
      INCONSISTENT_GROUP_PROTOCOL (KIP-559); the check is the API layer's, before the coordinator's.
    * A follower's SyncGroup that waits for the leader's plan mutes its connection.
    """
    request = read_sync(call.message, call.version, call.client_id)
    if call.version >= _FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol):
        refused = messages.SyncGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
        return Done(call.types.response(**call.types.fitting(fields_of(refused))))
    return AskCoordinator(
        (request,), lambda answers: call.types.response(**call.types.fitting(fields_of(answers[0])))
    )


#: Fewer names than these are looked at in the turn in which they come.
_FEW_NAMES = 100
#: A request's topic id of zeros, which kio reads as None.
_ZERO = uuid.UUID(int=0)


def read_group_heartbeat(message: Any, version: int, client_id: str) -> messages.ConsumerGroupHeartbeat:
    """The request of kio's message of this version."""
    owned = _owned(message.topic_partitions)
    return read(messages.ConsumerGroupHeartbeat, message, version, client_id, owned=owned)


def consumer_group_heartbeat(
    state: BrokerState, call: Call
) -> AskCoordinator | Done | Turns[AskCoordinator | Done]:
    """ConsumerGroupHeartbeat (key 68), versions 0-1 (KIP-848).

    * v1: the member draws its id itself; regular expressions.
    * A member needs READ on its group and DESCRIBE on each topic to which it subscribes by name. Regular
      expressions that are resolved because of a heartbeat match the topics that its client may describe.
    """
    request = read_group_heartbeat(call.message, call.version, call.client_id)
    request = request._replace(client_host=call.client_host)

    def finish(answers: Sequence[messages.ConsumerGroupHeartbeatResponse]) -> Any:
        return _heartbeat_response(call, answers[0])

    def ask(error: Error) -> AskCoordinator | Done:
        if error is not Error.NONE:
            return Done(finish([messages.ConsumerGroupHeartbeatResponse(error)]))
        return AskCoordinator((request,), finish, partial(may_describe_topic, state, call))

    def ask_in_turns() -> Turns[AskCoordinator | Done]:
        return ask((yield from _topics_error(state, call, request.topics)))

    is_short = state.authorizer is None and len(request.topics or ()) < _FEW_NAMES
    return ask(_size_error(state, request.topics)) if is_short else ask_in_turns()


def _topics_error(state: BrokerState, call: Call, topics: tuple[str, ...] | None) -> Turns[Error]:
    """Why the member cannot subscribe to these topics."""
    for name in topics or ():
        if topic_error(state, call, name) is not Error.NONE:
            return Error.TOPIC_AUTHORIZATION_FAILED
        string_hash(name)  # it is kept: the group needs those of all names at once
        yield 2
    return _size_error(state, topics)


def _size_error(state: BrokerState, topics: tuple[str, ...] | None) -> Error:
    """The error of a member whose record is too large, which the coordinator finds out only at the end."""
    is_large = sum(map(len, topics or ())) > state.config.message_max_bytes
    return Error.UNKNOWN_SERVER_ERROR if is_large else Error.NONE


def _owned(listed: Any) -> tuple[tuple[uuid.UUID, tuple[int, ...]], ...] | None:
    if listed is None:
        return None
    return tuple((topic.topic_id or _ZERO, topic.partitions) for topic in listed)


def _heartbeat_response(
    call: Call, answer: messages.ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse
) -> Any:
    """The response to a heartbeat; those of consumer and share groups have the same fields."""
    values, make = call.types.fitting(fields_of(answer)), call.types.make
    if answer.assignment is not None:
        topics = tuple(
            make("TopicPartitions", topic_id=topic, partitions=partitions)
            for topic, partitions in answer.assignment.items()
        )
        values["assignment"] = make("Assignment", topic_partitions=topics)
    return call.types.response(**values)


_MEMBER_ID_MAX = 36


def share_group_heartbeat(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    """ShareGroupHeartbeat (key 76), version 1 (KIP-932).

    * A member needs READ on its group and DESCRIBE on each topic to which it subscribes.
    """
    request = read(
        ShareGroupHeartbeat, call.message, call.version, call.client_id, client_host=call.client_host
    )

    def finish(answers: Sequence[ShareGroupHeartbeatResponse]) -> Any:
        return _heartbeat_response(call, answers[0])

    error = Error.INVALID_REQUEST
    if 0 < len(request.member_id) <= _MEMBER_ID_MAX:
        error = yield from _topics_error(state, call, request.topics)
    if error is not Error.NONE:
        return Done(finish([ShareGroupHeartbeatResponse(error)]))
    return AskCoordinator((request,), finish)


APIS = (
    AskingApi(11, "JoinGroup", 0, 9, join_group, older=(7, 9), needs=(READ_GROUP,)),
    AskingApi(12, "Heartbeat", 0, 4, heartbeat, needs=(READ_GROUP,), is_repeated=True),
    AskingApi(13, "LeaveGroup", 0, 5, leave_group, older=(4, 5), needs=(READ_GROUP,)),
    AskingApi(14, "SyncGroup", 0, 5, sync_group, needs=(READ_GROUP,)),
    CoordinatorsApi(
        68, "ConsumerGroupHeartbeat", 0, 1, consumer_group_heartbeat, older=(), needs=(READ_GROUP,),
        on_topics=Operation.DESCRIBE,
    ),
    CoordinatorsApi(
        76, "ShareGroupHeartbeat", 1, 1, share_group_heartbeat, older=(), needs=(READ_GROUP,),
        on_topics=Operation.DESCRIBE,
    ),
)  # fmt: skip

"""ConsumerGroupHeartbeat and ShareGroupHeartbeat."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, Call, CoordinatorsApi, Done, milliseconds
from groupstorm.broker.apis.rights import READ_GROUP, may_describe_topic, topic_error
from groupstorm.broker.authorization import Operation
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.javahash import string_hash
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.turns import Turns

#: Fewer names than these are looked at in the turn in which they come.
_FEW_NAMES = 100
#: A request's topic id of zeros, which kio reads as None.
_ZERO = uuid.UUID(int=0)


def read_group_heartbeat(message: Any, version: int, client_id: str) -> messages.ConsumerGroupHeartbeat:
    """The request of kio's message of this version."""
    return messages.ConsumerGroupHeartbeat(
        group=message.group_id,
        member_id=message.member_id,
        member_epoch=message.member_epoch,
        group_instance_id=message.instance_id,
        rack=message.rack_id,
        rebalance_timeout_ms=milliseconds(message.rebalance_timeout),
        topics=message.subscribed_topic_names,
        regex=getattr(message, "subscribed_topic_regex", None),
        assignor=message.server_assignor,
        owned=_owned(message.topic_partitions),
        version=version,
        client_id=client_id,
    )


def consumer_group_heartbeat(
    state: BrokerState, call: Call
) -> AskCoordinator | Done | Turns[AskCoordinator | Done]:
    """ConsumerGroupHeartbeat (key 68), versions 0-1 (KIP-848).

    * v1: the member draws its id itself; regular expressions.
    * A member needs READ on its group and DESCRIBE on each topic to which it subscribes by name. Regular
      expressions that are resolved because of a heartbeat match the topics that its client may describe.
    """
    read = read_group_heartbeat(call.message, call.version, call.client_id)
    request = read._replace(client_host=call.client_host)

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
    assignment = answer.assignment
    make = call.types.make
    topics = tuple(
        make("TopicPartitions", topic_id=topic, partitions=partitions)
        for topic, partitions in (assignment or {}).items()
    )
    return call.types.response(
        error_code=answer.error,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval=answer.heartbeat_interval_ms * MILLISECOND,
        assignment=None if assignment is None else make("Assignment", topic_partitions=topics),
    )


_MEMBER_ID_MAX = 36


def _read_share_heartbeat(message: Any, version: int, client_id: str) -> ShareGroupHeartbeat:
    """The request of kio's message of this version."""
    return ShareGroupHeartbeat(
        group=message.group_id,
        member_id=message.member_id,
        member_epoch=message.member_epoch,
        rack=message.rack_id,
        topics=message.subscribed_topic_names,
        version=version,
        client_id=client_id,
    )


def share_group_heartbeat(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    """ShareGroupHeartbeat (key 76), version 1 (KIP-932).

    * A member needs READ on its group and DESCRIBE on each topic to which it subscribes.
    """
    read = _read_share_heartbeat(call.message, call.version, call.client_id)
    request = read._replace(client_host=call.client_host)

    def finish(answers: Sequence[ShareGroupHeartbeatResponse]) -> Any:
        return _heartbeat_response(call, answers[0])

    error = Error.INVALID_REQUEST
    if 0 < len(request.member_id) <= _MEMBER_ID_MAX:
        error = yield from _topics_error(state, call, request.topics)
    if error is not Error.NONE:
        return Done(finish([ShareGroupHeartbeatResponse(error)]))
    return AskCoordinator((request,), finish)


APIS = (
    CoordinatorsApi(
        68, "ConsumerGroupHeartbeat", 0, 1, consumer_group_heartbeat, older=(), needs=(READ_GROUP,),
        on_topics=Operation.DESCRIBE,
    ),
    CoordinatorsApi(
        76, "ShareGroupHeartbeat", 1, 1, share_group_heartbeat, older=(), needs=(READ_GROUP,),
        on_topics=Operation.DESCRIBE,
    ),
)  # fmt: skip

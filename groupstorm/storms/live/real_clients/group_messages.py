"""The group requests and responses of other clients: kio's dataclasses of any version -> our plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.broker.apis.key_11_join_group import read_join
from groupstorm.broker.apis.key_12_heartbeat import read_heartbeat
from groupstorm.broker.apis.key_13_leave_group import read_leave
from groupstorm.broker.apis.key_14_sync_group import read_sync
from groupstorm.broker.apis.key_68_consumer_group_heartbeat import read_group_heartbeat
from groupstorm.clients.wire.group_requests import REQUEST_CODECS
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeaveGroupResponse,
    LeftMember,
    OffsetCommit,
    OffsetCommitResponse,
    Request,
    Response,
    SyncGroup,
)
from groupstorm.protocol.codec import decoder, request_type, response_types
from groupstorm.protocol.headers import Header


class _Api(NamedTuple):
    """The readers of one API's request and of its response."""

    read_request: Callable[[Any, int, str], Request]
    read_response: Callable[[Any], Response]


def _read_commit(message: Any, version: int, client_id: str) -> OffsetCommit:
    """Topics that are named by their ids (version 10) have these as names."""
    return OffsetCommit(
        message.group_id,
        getattr(message, "member_id", ""),
        getattr(message, "group_instance_id", None),
        getattr(message, "generation_id_or_member_epoch", -1),
        {
            _topic(topic): {
                one.partition_index: CommittedOffset(one.committed_offset) for one in topic.partitions
            }
            for topic in message.topics
        },
        version,
        client_id,
    )


def _read_commit_response(response: Any) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        tuple(
            (_topic(topic), partition.partition_index, Error(partition.error_code))
            for topic in response.topics
            for partition in topic.partitions
        )
    )


def _topic(topic: Any) -> str:
    name = getattr(topic, "name", None)
    return str(topic.topic_id) if name is None else name


_APIS: Mapping[int, _Api] = {
    codec.api.key: _Api(read, _read_commit_response if kind is OffsetCommit else codec.read)
    for kind, read in (
        (JoinGroup, read_join),
        (SyncGroup, read_sync),
        (Heartbeat, read_heartbeat),
        (LeaveGroup, read_leave),
        (OffsetCommit, _read_commit),
        (ConsumerGroupHeartbeat, read_group_heartbeat),
    )
    for codec in (REQUEST_CODECS[kind],)
}

#: The APIs whose requests `read_request` reads.
GROUP_APIS = frozenset(_APIS)


def read_request(frame: bytes, header: Header) -> Request:
    """The request of a frame whose API is one of GROUP_APIS. Raises CodecError."""
    message, _ = decoder(request_type(header.api_key, header.version))(frame, header.body_at)
    return _APIS[header.api_key].read_request(message, header.version, header.client_id)


def read_response(frame: bytes, api_key: int, request: Request) -> Response:
    """The response to ``request``, which is one of GROUP_APIS. Raises CodecError.

    A response to LeaveGroup below version 3 names no member: the one that asked has left.
    """
    root = response_types(api_key, request.version).root
    _, body_at = decoder(root.__header_schema__)(frame, 0)
    message, _ = decoder(root)(frame, body_at)
    response = _APIS[api_key].read_response(message)
    if isinstance(response, LeaveGroupResponse) and isinstance(request, LeaveGroup) and not response.members:
        leaving = tuple(
            LeftMember(one.member_id, one.group_instance_id, response.error) for one in request.members
        )
        return response._replace(members=leaving)
    return response

"""The group requests and their responses: our plain values <-> kio's dataclasses.

The broker's handlers (`groupstorm.broker.apis`) do the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from groupstorm.clients.wire.connection import Build, ClientApi, fields
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.protocol.codec.plain_values import fields_of, value_of

_T = TypeVar("_T")


class RequestCodec(NamedTuple):
    """A client's way to write one kind of request and to read its response.

    ``api`` begins with the first version that has all fields of our requests: the instance id and, for
    offsets, several groups at once. Brokers have these versions since Kafka 3.0. A request of a
    lower version, as another library sends it (`profiles.py`), keeps that version.
    """

    api: ClientApi
    build: Callable[[Any], Build]
    read: Callable[[Any], messages.Response]


def _plain(request: messages.Request) -> Build:
    """A request all of whose fields messages have as they are."""
    return fields(**fields_of(request))


def _read(kind: Callable[..., _T], response: Any, **own: Any) -> _T:
    return value_of(kind, response, error=Error(response.error_code), **own)


def _join(request: messages.JoinGroup) -> Build:
    protocols = [{"name": name, "metadata": metadata} for name, metadata in request.protocols]
    return fields(**fields_of(request) | {"protocols": protocols})


def _read_join(response: Any) -> messages.JoinGroupResponse:
    members = tuple([value_of(messages.JoinGroupMember, member) for member in response.members])
    return _read(messages.JoinGroupResponse, response, members=members)


def _sync(request: messages.SyncGroup) -> Build:
    assignments = [
        {"member_id": member_id, "assignment": assignment} for member_id, assignment in request.assignments
    ]
    return fields(**fields_of(request) | {"assignments": assignments})


def _leave(request: messages.LeaveGroup) -> Build:
    """Several members may leave since version 3, before it one leaves by its id."""
    members = [member._asdict() for member in request.members]
    return fields(group_id=request.group, member_id=request.members[0].member_id, members=members)


def _read_leave(response: Any) -> messages.LeaveGroupResponse:
    members = tuple([_read(messages.LeftMember, member) for member in getattr(response, "members", ())])
    return _read(messages.LeaveGroupResponse, response, members=members)


def _commit(request: messages.OffsetCommit) -> Build:
    topics = [
        {
            "name": topic,
            "partitions": [
                {
                    **fields_of(committed),
                    "partition_index": partition,
                    "committed_metadata": committed.metadata,
                }
                for partition, committed in partitions.items()
            ],
        }
        for topic, partitions in request.offsets.items()
    ]
    return fields(**fields_of(request) | {"topics": topics})


def _read_commit(response: Any) -> messages.OffsetCommitResponse:
    return messages.OffsetCommitResponse(
        tuple(
            (topic_name(topic), partition.partition_index, Error(partition.error_code))
            for topic in response.topics
            for partition in topic.partitions
        )
    )


def topic_name(topic: Any) -> str:
    """The name of a topic of OffsetCommit; from version 10 on topics have ids instead."""
    name = getattr(topic, "name", None)
    return str(topic.topic_id) if name is None else name


def _fetch(request: messages.OffsetFetch) -> Build:
    topics = None
    if request.topics is not None:
        topics = [
            {"name": topic, "partition_indexes": partitions} for topic, partitions in request.topics.items()
        ]
    return fields(groups=[fields_of(request) | {"topics": topics}], require_stable=request.require_stable)


def _read_fetch(response: Any) -> messages.OffsetFetchResponse:
    """The response for the one group of the request."""
    if not response.groups:
        return messages.OffsetFetchResponse(Error.UNKNOWN_SERVER_ERROR)
    group = response.groups[0]
    return messages.OffsetFetchResponse(
        Error(group.error_code),
        tuple(
            (
                topic.name,
                partition.partition_index,
                value_of(messages.CommittedOffset, partition, metadata=partition.metadata or ""),
                Error(partition.error_code),
            )
            for topic in group.topics
            for partition in topic.partitions
        ),
    )


def _describe(request: messages.DescribeGroup) -> Build:
    return fields(groups=(request.group,), include_authorized_operations=False)


def _read_describe(response: Any) -> messages.DescribeGroupResponse:
    """The response for the one group of the request."""
    (group,) = response.groups
    members = tuple(
        value_of(
            messages.DescribedMember,
            member,
            metadata=member.member_metadata,
            assignment=member.member_assignment,
        )
        for member in group.members
    )
    return _read(messages.DescribeGroupResponse, group, members=members)


def _group_heartbeat(request: messages.ConsumerGroupHeartbeat) -> Build:
    owned = None
    if request.owned is not None:
        owned = [{"topic_id": topic, "partitions": partitions} for topic, partitions in request.owned]
    return fields(**fields_of(request) | {"topic_partitions": owned})


def _read_assignment(kind: Callable[..., _T], response: Any) -> _T:
    assigned = response.assignment
    held = (
        None if assigned is None else {each.topic_id: each.partitions for each in assigned.topic_partitions}
    )
    return _read(kind, response, assignment=held)


REQUEST_CODECS: Mapping[type[messages.Request], RequestCodec] = {
    messages.JoinGroup: RequestCodec(ClientApi(11, "JoinGroup", 5, 9), _join, _read_join),
    messages.SyncGroup: RequestCodec(
        ClientApi(14, "SyncGroup", 3, 5), _sync, partial(_read, messages.SyncGroupResponse)
    ),
    messages.Heartbeat: RequestCodec(
        ClientApi(12, "Heartbeat", 3, 4), _plain, partial(_read, messages.HeartbeatResponse)
    ),
    messages.LeaveGroup: RequestCodec(ClientApi(13, "LeaveGroup", 3, 5), _leave, _read_leave),
    messages.OffsetCommit: RequestCodec(ClientApi(8, "OffsetCommit", 7, 9), _commit, _read_commit),
    messages.OffsetFetch: RequestCodec(ClientApi(9, "OffsetFetch", 8, 9), _fetch, _read_fetch),
    messages.ConsumerGroupHeartbeat: RequestCodec(
        ClientApi(68, "ConsumerGroupHeartbeat", 1, 1),
        _group_heartbeat,
        partial(_read_assignment, messages.ConsumerGroupHeartbeatResponse),
    ),
    ShareGroupHeartbeat: RequestCodec(
        ClientApi(76, "ShareGroupHeartbeat", 1, 1),
        _plain,
        partial(_read_assignment, ShareGroupHeartbeatResponse),
    ),
    messages.DescribeGroup: RequestCodec(ClientApi(15, "DescribeGroups", 0, 5), _describe, _read_describe),
}

"""The group requests and their responses: our plain values <-> kio's dataclasses.

The broker's handlers (`groupstorm.broker.apis`) do the reverse.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from groupstorm.clients.wire.connection import Build, ClientApi, fields
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse


class RequestCodec(NamedTuple):
    """A client's way to write one kind of request and to read its response.

    ``api`` begins with the first version that has all fields of our requests: the instance id and, for
    offsets, several groups at once. Brokers have these versions since Kafka 3.0. A request of a
    lower version, as another library sends it (`profiles.py`), keeps that version.
    """

    api: ClientApi
    build: Callable[[Any], Build]
    read: Callable[[Any], messages.Response]


def _join(request: messages.JoinGroup) -> Build:
    return fields(
        session_timeout=_duration(request.session_timeout_ms),
        rebalance_timeout=_duration(request.rebalance_timeout_ms),
        protocol_type=request.protocol_type,
        protocols=[{"name": name, "metadata": metadata} for name, metadata in request.protocols],
        reason=request.reason,
        **_sender(request),
    )


def _read_join(response: Any) -> messages.JoinGroupResponse:
    return messages.JoinGroupResponse(
        error=Error(response.error_code),
        generation=response.generation_id,
        member_id=response.member_id,
        leader=response.leader,
        protocol_type=getattr(response, "protocol_type", None),
        protocol=response.protocol_name,
        skip_assignment=getattr(response, "skip_assignment", False),
        members=tuple(
            messages.JoinGroupMember(member.member_id, member.group_instance_id, member.metadata)
            for member in response.members
        ),
    )


def _sync(request: messages.SyncGroup) -> Build:
    return fields(
        generation_id=request.generation,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol,
        assignments=[
            {"member_id": member_id, "assignment": assignment}
            for member_id, assignment in request.assignments
        ],
        **_sender(request),
    )


def _read_sync(response: Any) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(
        Error(response.error_code),
        getattr(response, "protocol_type", None),
        getattr(response, "protocol_name", None),
        response.assignment,
    )


def _heartbeat(request: messages.Heartbeat) -> Build:
    return fields(generation_id=request.generation, **_sender(request))


def _read_heartbeat(response: Any) -> messages.HeartbeatResponse:
    return messages.HeartbeatResponse(Error(response.error_code))


def _leave(request: messages.LeaveGroup) -> Build:
    """Several members may leave since version 3, before it one leaves by its id."""
    members = [member._asdict() for member in request.members]
    return fields(group_id=request.group, member_id=request.members[0].member_id, members=members)


def _read_leave(response: Any) -> messages.LeaveGroupResponse:
    members = tuple(
        messages.LeftMember(member.member_id, member.group_instance_id, Error(member.error_code))
        for member in getattr(response, "members", ())
    )
    return messages.LeaveGroupResponse(Error(response.error_code), members)


def _commit(request: messages.OffsetCommit) -> Build:
    topics = [
        {
            "name": topic,
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": committed.offset,
                    "committed_leader_epoch": committed.leader_epoch,
                    "committed_metadata": committed.metadata,
                }
                for partition, committed in partitions.items()
            ],
        }
        for topic, partitions in request.offsets.items()
    ]
    return fields(generation_id_or_member_epoch=request.generation, topics=topics, **_sender(request))


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
    group = {
        "group_id": request.group,
        "member_id": request.member_id,
        "member_epoch": request.member_epoch,
        "topics": topics,
    }
    return fields(groups=[group], require_stable=request.require_stable)


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
                messages.CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                ),
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
        messages.DescribedMember(
            member.member_id,
            getattr(member, "group_instance_id", None),
            member.client_id,
            member.client_host,
            member.member_metadata,
            member.member_assignment,
        )
        for member in group.members
    )
    described = (group.group_id, group.group_state, group.protocol_type, group.protocol_data, members)
    return messages.DescribeGroupResponse(Error(group.error_code), *described)


def _group_heartbeat(request: messages.ConsumerGroupHeartbeat) -> Build:
    owned = None
    if request.owned is not None:
        owned = [{"topic_id": topic, "partitions": partitions} for topic, partitions in request.owned]
    return fields(
        group_id=request.group,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.group_instance_id,
        rack_id=request.rack,
        rebalance_timeout=_duration(request.rebalance_timeout_ms),
        subscribed_topic_names=request.topics,
        subscribed_topic_regex=request.regex,
        server_assignor=request.assignor,
        topic_partitions=owned,
    )


def _share_heartbeat(request: ShareGroupHeartbeat) -> Build:
    return fields(
        group_id=request.group,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack,
        subscribed_topic_names=request.topics,
    )


_Heartbeaten = TypeVar("_Heartbeaten", messages.ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse)


def _read_assignment(kind: type[_Heartbeaten], response: Any) -> _Heartbeaten:
    assigned = response.assignment
    return kind(
        Error(response.error_code),
        response.member_id,
        response.member_epoch,
        response.heartbeat_interval // datetime.timedelta(milliseconds=1),
        None if assigned is None else {each.topic_id: each.partitions for each in assigned.topic_partitions},
        response.error_message,
    )


def _sender(
    request: messages.JoinGroup | messages.SyncGroup | messages.Heartbeat | messages.OffsetCommit,
) -> dict[str, str | None]:
    """The fields that name a member to its coordinator."""
    return {
        "group_id": request.group,
        "member_id": request.member_id,
        "group_instance_id": request.group_instance_id,
    }


def _duration(duration_ms: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=duration_ms)


REQUEST_CODECS: Mapping[type[messages.Request], RequestCodec] = {
    messages.JoinGroup: RequestCodec(ClientApi(11, "JoinGroup", 5, 9), _join, _read_join),
    messages.SyncGroup: RequestCodec(ClientApi(14, "SyncGroup", 3, 5), _sync, _read_sync),
    messages.Heartbeat: RequestCodec(ClientApi(12, "Heartbeat", 3, 4), _heartbeat, _read_heartbeat),
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
        _share_heartbeat,
        partial(_read_assignment, ShareGroupHeartbeatResponse),
    ),
    messages.DescribeGroup: RequestCodec(ClientApi(15, "DescribeGroups", 0, 5), _describe, _read_describe),
}

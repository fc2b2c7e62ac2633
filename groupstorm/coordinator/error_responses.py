"""The response that carries only an error, for each kind of request (Kafka: getErrorResponse)."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    DeleteGroup,
    DeleteGroupResponse,
    DescribeConsumerGroup,
    DescribeConsumerGroupResponse,
    DescribeGroup,
    DescribeGroupResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeftMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    Response,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from groupstorm.coordinator.share.messages import (
    AlterShareGroupOffsets,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroup,
    DescribeShareGroupResponse,
    ListSharePartitions,
    ListSharePartitionsResponse,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from groupstorm.coordinator.streams.messages import (
    DescribeStreamsGroup,
    DescribeStreamsGroupResponse,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
    UpdateTopologyDescription,
    UpdateTopologyDescriptionResponse,
)

#: Requests that are about one group.
GroupRequest = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | TxnOffsetCommit
    | OffsetFetch
    | OffsetDelete
    | DeleteGroup
    | DescribeGroup
    | ConsumerGroupHeartbeat
    | DescribeConsumerGroup
    | StreamsGroupHeartbeat
    | DescribeStreamsGroup
    | UpdateTopologyDescription
    | ShareGroupHeartbeat
    | DescribeShareGroup
    | ListSharePartitions
    | AlterShareGroupOffsets
    | DeleteShareGroupOffsets
)


#: Responses of which the error is the only field that an error needs.
_PLAIN: dict[type, Callable[[Error], Response]] = {
    JoinGroup: JoinGroupResponse,
    SyncGroup: SyncGroupResponse,
    Heartbeat: HeartbeatResponse,
    OffsetDelete: OffsetDeleteResponse,
    DeleteGroup: DeleteGroupResponse,
    ConsumerGroupHeartbeat: ConsumerGroupHeartbeatResponse,
    StreamsGroupHeartbeat: StreamsGroupHeartbeatResponse,
    UpdateTopologyDescription: UpdateTopologyDescriptionResponse,
    ShareGroupHeartbeat: ShareGroupHeartbeatResponse,
    ListSharePartitions: ListSharePartitionsResponse,
    AlterShareGroupOffsets: AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets: DeleteShareGroupOffsetsResponse,
}

#: Descriptions of a group of one kind, which name the group too.
_DESCRIBED: dict[type, Callable[[Error, str], Response]] = {
    DescribeConsumerGroup: DescribeConsumerGroupResponse,
    DescribeStreamsGroup: DescribeStreamsGroupResponse,
    DescribeShareGroup: DescribeShareGroupResponse,
}


def error_response(request: GroupRequest, error: Error) -> Response:
    """The response to ``request`` that carries ``error`` in the field that the API has for it."""
    match request:
        case LeaveGroup():
            return _leave(request, error)
        case OffsetCommit() | TxnOffsetCommit():
            return _commit(request, error)
        case OffsetFetch():
            return _fetch(request, error)
        case DescribeGroup():
            return DescribeGroupResponse(error, request.group, "", "", "")
        case DescribeConsumerGroup() | DescribeStreamsGroup() | DescribeShareGroup():
            return _DESCRIBED[type(request)](error, request.group)
        case _:
            return _PLAIN[type(request)](error)


def _leave(request: LeaveGroup, error: Error) -> LeaveGroupResponse:
    """If the group is unknown, every member is (GroupCoordinatorService.leaveGroup)."""
    if error is not Error.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error)
    members = [LeftMember(who.member_id, who.group_instance_id, error) for who in request.members]
    return LeaveGroupResponse(Error.NONE, tuple(members))


def _commit(request: OffsetCommit | TxnOffsetCommit, error: Error) -> OffsetCommitResponse:
    partitions = [
        (topic, partition, error) for topic, offsets in request.offsets.items() for partition in offsets
    ]
    return OffsetCommitResponse(tuple(partitions))


def _fetch(request: OffsetFetch, error: Error) -> OffsetFetchResponse:
    """Since version 2 the group has an error of its own; before, every partition repeats it."""
    if request.version >= 2 or request.topics is None:
        return OffsetFetchResponse(error)
    nothing = CommittedOffset(-1)
    topics = request.topics.items()
    partitions = [(topic, partition, nothing, error) for topic, numbers in topics for partition in numbers]
    return OffsetFetchResponse(error, tuple(partitions))

"""The response that carries only an error, for each kind of request (Kafka: getErrorResponse)."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import GroupRequest, Response
from groupstorm.coordinator.share import messages as share
from groupstorm.coordinator.streams import messages as streams

#: Responses of which the error is the only field that an error needs.
_PLAIN: dict[type, Callable[[Error], Response]] = {
    messages.JoinGroup: messages.JoinGroupResponse,
    messages.SyncGroup: messages.SyncGroupResponse,
    messages.Heartbeat: messages.HeartbeatResponse,
    messages.OffsetDelete: messages.OffsetDeleteResponse,
    messages.DeleteGroup: messages.DeleteGroupResponse,
    messages.ConsumerGroupHeartbeat: messages.ConsumerGroupHeartbeatResponse,
    streams.StreamsGroupHeartbeat: streams.StreamsGroupHeartbeatResponse,
    streams.UpdateTopologyDescription: streams.UpdateTopologyDescriptionResponse,
    share.ShareGroupHeartbeat: share.ShareGroupHeartbeatResponse,
    share.ListSharePartitions: share.ListSharePartitionsResponse,
    share.AlterShareGroupOffsets: share.AlterShareGroupOffsetsResponse,
    share.DeleteShareGroupOffsets: share.DeleteShareGroupOffsetsResponse,
}

#: Descriptions of a group of one kind, which name the group too.
_DESCRIBED: dict[type, Callable[[Error, str], Response]] = {
    messages.DescribeConsumerGroup: messages.DescribeConsumerGroupResponse,
    streams.DescribeStreamsGroup: streams.DescribeStreamsGroupResponse,
    share.DescribeShareGroup: share.DescribeShareGroupResponse,
}


def error_response(request: GroupRequest, error: Error) -> Response:
    """The response to ``request`` that carries ``error`` in the field that the API has for it."""
    match request:
        case messages.LeaveGroup():
            return _leave(request, error)
        case messages.OffsetCommit() | messages.TxnOffsetCommit():
            return _commit(request, error)
        case messages.OffsetFetch():
            return _fetch(request, error)
        case messages.DescribeGroup():
            return messages.DescribeGroupResponse(error, request.group, "", "", "")
        case messages.DescribeConsumerGroup() | streams.DescribeStreamsGroup() | share.DescribeShareGroup():
            return _DESCRIBED[type(request)](error, request.group)
        case _:
            return _PLAIN[type(request)](error)


def _leave(request: messages.LeaveGroup, error: Error) -> messages.LeaveGroupResponse:
    """If the group is unknown, every member is (GroupCoordinatorService.leaveGroup)."""
    if error is not Error.UNKNOWN_MEMBER_ID:
        return messages.LeaveGroupResponse(error)
    members = [messages.LeftMember(who.member_id, who.group_instance_id, error) for who in request.members]
    return messages.LeaveGroupResponse(Error.NONE, tuple(members))


def _commit(
    request: messages.OffsetCommit | messages.TxnOffsetCommit, error: Error
) -> messages.OffsetCommitResponse:
    partitions = [
        (topic, partition, error) for topic, offsets in request.offsets.items() for partition in offsets
    ]
    return messages.OffsetCommitResponse(tuple(partitions))


def _fetch(request: messages.OffsetFetch, error: Error) -> messages.OffsetFetchResponse:
    """Since version 2 the group has an error of its own; before, every partition repeats it."""
    if request.version >= 2 or request.topics is None:
        return messages.OffsetFetchResponse(error)
    nothing = messages.CommittedOffset(-1)
    topics = request.topics.items()
    partitions = [(topic, partition, nothing, error) for topic, numbers in topics for partition in numbers]
    return messages.OffsetFetchResponse(error, tuple(partitions))

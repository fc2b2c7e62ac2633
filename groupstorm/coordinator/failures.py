"""An operation on a group breaks off: the group fails, loudly and alone.

Two kinds of exceptions end an operation:

* `CoordinatorFault`: Kafka throws at the same place. Kafka answers the request with UNKNOWN_SERVER_ERROR and
  leaves the group as the last statement left it. The coordinator does the same, but a group that would then
  wait for ever fails, unless ``groupstorm.compatibility`` asks for Kafka 4.3.1 to the letter.
* Any other exception is a defect of this coordinator. The group fails, whatever the setting.

Either way `events.OperationFailed` is emitted. `error_response` makes the response that carries only an
error, for each kind of request (Kafka: getErrorResponse).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from groupstorm.coordinator import messages
from groupstorm.coordinator.effects import Write
from groupstorm.coordinator.errors import CoordinatorFault, Error
from groupstorm.coordinator.messages import GroupRequest, Request, Response
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share import messages as share
from groupstorm.coordinator.streams import messages as streams
from groupstorm.trace.events import coordinator as events

_log = logging.getLogger("groupstorm.coordinator")


def attempt(
    shard: Shard,
    group_name: str,
    cause: str | None,
    operation: Callable[..., Write | None],
    arguments: tuple[Any, ...],
) -> Write | None:
    """Run an operation on one group; the write that the caller has to submit, if there is one.

    ``cause``: the member id behind the operation. If the operation breaks off, `broken_off` goes on.
    """
    try:
        return operation(*arguments)
    except Exception as problem:  # noqa: BLE001  # `broken_off` says why
        return broken_off(shard, group_name, cause, problem)


def broken_off(
    shard: Shard,
    group_name: str,
    cause: Request | str | None,
    problem: Exception,
    refuse: Callable[..., None] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Write | None:
    """An operation on a group has ended with ``problem``: emit that, and answer the request with ``refuse``.

    If the group fails, its other parked requests are answered too, and the write is the record of the emptied
    group. Its callers catch every exception, because the other groups must go on, and a parked request
    behind a traceback would wait for ever. Nothing is hidden: the event, the log and every parked client
    say so.
    """
    if isinstance(problem, CoordinatorFault):
        _emit(shard, group_name, cause, str(problem))
    else:
        _log.error("group %r failed", group_name, exc_info=problem)
        _emit(shard, group_name, cause, f"{type(problem).__name__}: {problem}")
    if refuse is not None:
        refuse(*arguments)
    is_fault = isinstance(problem, CoordinatorFault)
    if is_fault and shard.config.compatibility.is_to_the_letter:
        return None
    return shard.wings.rescue(shard, group_name, is_fault)


def _emit(shard: Shard, group_name: str, cause: Request | str | None, detail: str) -> None:
    member_id = cause if cause is None or isinstance(cause, str) else getattr(cause, "member_id", None)
    group = shard.groups.get(group_name)
    generation = -1 if group is None else group.generation
    shard.emit(events.OperationFailed(group_name, member_id, generation, detail))


#: Responses that need nothing but an error: some have a field for a sentence about it, and descriptions name
#: their group.
_RESPONSES: dict[type, Any] = {
    messages.JoinGroup: messages.JoinGroupResponse,
    messages.SyncGroup: messages.SyncGroupResponse,
    messages.Heartbeat: messages.HeartbeatResponse,
    messages.OffsetDelete: messages.OffsetDeleteResponse,
    messages.DeleteGroup: messages.DeleteGroupResponse,
    messages.ConsumerGroupHeartbeat: messages.ConsumerGroupHeartbeatResponse,
    messages.DescribeGroup: messages.DescribeGroupResponse,
    messages.DescribeConsumerGroup: messages.DescribeConsumerGroupResponse,
    streams.StreamsGroupHeartbeat: streams.StreamsGroupHeartbeatResponse,
    streams.UpdateTopologyDescription: streams.UpdateTopologyDescriptionResponse,
    streams.DescribeStreamsGroup: streams.DescribeStreamsGroupResponse,
    share.ShareGroupHeartbeat: share.ShareGroupHeartbeatResponse,
    share.AlterShareGroupOffsets: share.AlterShareGroupOffsetsResponse,
    share.DeleteShareGroupOffsets: share.DeleteShareGroupOffsetsResponse,
    share.ListSharePartitions: share.ListSharePartitionsResponse,
    share.DescribeShareGroup: share.DescribeShareGroupResponse,
}


def error_response(request: GroupRequest, error: Error, sentence: str | None = None) -> Response:
    """The response to ``request`` that carries ``error`` in the field that the API has for it, and the
    ``sentence`` about it, if there is a field for one."""
    match request:
        case messages.LeaveGroup():
            return _leave(request, error)
        case messages.OffsetCommit() | messages.TxnOffsetCommit():
            return _commit(request, error)
        case messages.OffsetFetch():
            return _fetch(request, error)
    kind = _RESPONSES[type(request)]
    told = {"error": error, "group": request.group, "error_message": sentence}
    response: Response = kind(**{name: told[name] for name in kind._fields if name in told})
    return response


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

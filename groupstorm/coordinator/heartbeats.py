"""Heartbeat: the member is there; whether a round is open it learns from the answer.

Kafka: GroupMetadataManager.classicGroupHeartbeatToClassicGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.group import ClassicGroup
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import PREPARING_REBALANCE

_FINE = HeartbeatResponse(NO_ERROR)
_ROUND_IS_OPEN = HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)


def handle_heartbeat(shard: Shard, request: Heartbeat, answer: Answer) -> None:
    """REBALANCE_IN_PROGRESS in PreparingRebalance; either way the session starts again."""
    group = shard.groups.get(request.group)
    error = _validate(group, request)
    member = None if group is None else group.members.get(request.member_id)
    if error or group is None or member is None:
        shard.answer(answer, HeartbeatResponse(error))
        return
    shard.restart_session(group, member)
    response = _ROUND_IS_OPEN if group.state is PREPARING_REBALANCE else _FINE
    shard.writes.answer_in_turn(request, answer, response)


def _validate(group: ClassicGroup | None, request: Heartbeat) -> Error:
    if not request.group:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if not error and request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    return error

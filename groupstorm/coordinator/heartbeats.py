"""Heartbeat: the member is there; whether a round is open it learns from the answer.

Kafka: GroupMetadataManager.classicGroupHeartbeatToClassicGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import GroupState


def handle_heartbeat(shard: Shard, request: Heartbeat, answer: Answer) -> None:
    """REBALANCE_IN_PROGRESS in PreparingRebalance; either way the session starts again."""
    error = _validate(shard, request)
    if error:
        shard.answer(answer, HeartbeatResponse(error))
        return
    group = shard.groups[request.group]
    shard.restart_session(group, group.members[request.member_id])
    open_round = group.state is GroupState.PREPARING_REBALANCE
    response = HeartbeatResponse(Error.REBALANCE_IN_PROGRESS if open_round else Error.NONE)
    shard.writes.answer_in_turn(request, answer, response)


def _validate(shard: Shard, request: Heartbeat) -> Error:
    if not request.group:
        return Error.INVALID_GROUP_ID
    group = shard.groups.get(request.group)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if not error and request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    return error

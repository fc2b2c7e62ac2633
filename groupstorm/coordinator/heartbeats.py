"""Heartbeat: the member is there; whether a round is open it learns from the answer.

Kafka: GroupMetadataManager.classicGroupHeartbeatToClassicGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import PREPARING_REBALANCE

_FINE = HeartbeatResponse(NO_ERROR)
_ROUND_IS_OPEN = HeartbeatResponse(REBALANCE_IN_PROGRESS)


def handle_heartbeat(shard: Shard, request: Heartbeat, answer: Answer) -> None:
    """One that is not refused is answered behind the writes that came before it."""
    error = heartbeat(shard, request.group, request.member_id, request.group_instance_id, request.generation)
    if error is NO_ERROR:
        shard.writes.answer_in_turn(request, answer, _FINE)
    elif error is REBALANCE_IN_PROGRESS:
        shard.writes.answer_in_turn(request, answer, _ROUND_IS_OPEN)
    else:
        shard.answer(answer, HeartbeatResponse(error))


def heartbeat(
    shard: Shard, group_name: str, member_id: str, group_instance_id: str | None, generation: int
) -> Error:
    """REBALANCE_IN_PROGRESS in PreparingRebalance; unless it is refused the session starts again."""
    if not group_name:
        return Error.INVALID_GROUP_ID
    group = shard.groups.get(group_name)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(member_id, group_instance_id)
    if error is not NO_ERROR:
        return error
    if generation != group.generation:
        return Error.ILLEGAL_GENERATION
    shard.restart_session(group, group.members[member_id])
    return REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else NO_ERROR

"""Heartbeat: the member is alive, and learns from the answer whether a round is open.

Kafka: GroupMetadataManager.classicGroupHeartbeatToClassicGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.changes import restart_session
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import PREPARING_REBALANCE
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.writes import answer_in_turn

_FINE = HeartbeatResponse(NO_ERROR)
_ROUND_IS_OPEN = HeartbeatResponse(REBALANCE_IN_PROGRESS)


def handle_heartbeat(shard: Shard, request: Heartbeat, reply: PendingReply) -> None:
    """Answer a refused heartbeat at once, others after the writes that came before them."""
    error = heartbeat(shard, request.group, request.member_id, request.group_instance_id, request.generation)
    if error is NO_ERROR:
        answer_in_turn(shard, request, reply, _FINE)
    elif error is REBALANCE_IN_PROGRESS:
        answer_in_turn(shard, request, reply, _ROUND_IS_OPEN)
    else:
        shard.answer(reply, HeartbeatResponse(error))


def heartbeat(
    shard: Shard, group_name: str, member_id: str, group_instance_id: str | None, generation: int
) -> Error:
    """The error of a heartbeat: REBALANCE_IN_PROGRESS in PreparingRebalance. Unless it is refused, the
    member's session starts again."""
    if not group_name:
        return Error.INVALID_GROUP_ID
    group = shard.group_as(group_name, ClassicGroup)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(member_id, group_instance_id)
    if error is not NO_ERROR:
        return error
    if generation != group.generation:
        return Error.ILLEGAL_GENERATION
    restart_session(shard, group, group.members[member_id])
    return REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else NO_ERROR

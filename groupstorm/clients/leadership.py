"""The work of a generation's leader: run the assignor over the members' subscription bytes.

Kafka: ConsumerCoordinator.onLeaderElected and validateCooperativeAssignment (4.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.contract import AssignmentRefused, Assignor, RebalanceProtocol
from groupstorm.assignors.leader import LeaderMemory, perform_assignment
from groupstorm.assignors.userdata import UserDataError, decode_assignment, decode_subscription
from groupstorm.clients.operations import AssignmentFailed
from groupstorm.coordinator.messages import JoinGroupMember

#: Kafka's client does not validate the answers of this assignor (ConsumerCoordinator, KAFKA-13406).
TRUSTED_COOPERATIVE_ASSIGNOR = "cooperative-sticky"

EncodedAssignments = tuple[tuple[str, bytes], ...]


def lead(
    assignor: Assignor,
    protocol: RebalanceProtocol,
    topics: Mapping[str, int],
    members: Sequence[JoinGroupMember],
    memory: LeaderMemory | None = None,
) -> EncodedAssignments | AssignmentFailed:
    """The assignments of a generation as (member id, assignment bytes); or the reason why there are none.

    ``protocol`` is the leader's rebalance protocol. ``memory`` makes later rounds of the same group faster.
    """
    asked = [(member.member_id, member.group_instance_id, member.metadata) for member in members]
    try:
        plan = perform_assignment(assignor, topics, asked, memory)
    except AssignmentRefused as refused:
        return AssignmentFailed(refused.error, refused.message or "")
    except UserDataError as garbage:
        return AssignmentFailed("SchemaException", str(garbage))
    if protocol is RebalanceProtocol.COOPERATIVE and assignor.name != TRUSTED_COOPERATIVE_ASSIGNOR:
        granted = _granted_before_revoked(members, plan)
        if granted:
            return AssignmentFailed(
                "IllegalStateException",
                f"{assignor.name} assigned {granted} before its owner had given it up",
            )
    return tuple(plan.items())


def _granted_before_revoked(members: Sequence[JoinGroupMember], plan: Mapping[str, bytes]) -> str:
    """The first partition that one member loses and another gets in the same round; "" if none."""
    added, revoked = set(), set()
    for member in members:
        owned = set(decode_subscription(member.metadata).owned)
        assigned = set(decode_assignment(plan[member.member_id]).partitions)
        added |= assigned - owned
        revoked |= owned - assigned
    return str(min(added & revoked)) if added & revoked else ""

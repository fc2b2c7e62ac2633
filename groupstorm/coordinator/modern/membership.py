"""Which member a request comes from, and what refuses it, in consumer and streams groups alike.

Kafka: throwIfConsumerGroupMemberEpochIsInvalid, throwIfStreamsGroupMemberEpochIsInvalid,
throwIfInstanceIdIsUnknown, throwIfInstanceIdIsFenced, throwIfInstanceIdIsUnreleased.
"""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error, Refused
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.modern.member import ModernMember


def full(kind: str, max_size: int) -> Refused:
    """The refusal of a member that the group has no room for."""
    return Refused(
        Error.GROUP_MAX_SIZE_REACHED,
        f"The {kind} group has reached its maximum capacity of {max_size} members.",
    )


def known_member(group: ModernGroup[M, Any], member_id: str) -> M:
    """The member with this id; else `Refused` (UNKNOWN_MEMBER_ID)."""
    member = group.members.get(member_id)
    if member is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.name}.")
    return member


def owner_of_instance(known: M | None, member_id: str, instance: str) -> M:
    """The static member, if the id is its own; else `Refused`: unknown, or fenced by another id."""
    if known is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance} is unknown.")
    if known.member_id != member_id:
        raise Refused(
            Error.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance} was fenced by member {known.member_id}.",
        )
    return known


def unreleased(owner: ModernMember, member_id: str) -> Refused:
    """The refusal of a member whose instance id another one has."""
    return Refused(
        Error.UNRELEASED_INSTANCE_ID,
        f"Static member {member_id} with instance id {owner.instance} cannot join the group because the"
        f" instance id is owned by {owner.member_id} member.",
    )


def check_epoch(
    kind: str, member: ModernMember, epoch: int, owns_only_its_own: bool, too_small: str = ""
) -> None:
    """Fence every epoch but the member's own, and the one before if the member owns nothing but what is
    assigned to it: it may have missed the answer that held its epoch. ``too_small``: what the refusal of a
    smaller epoch adds."""
    missed_an_answer = epoch == member.previous_epoch and owns_only_its_own
    if epoch == member.epoch or (epoch < member.epoch and missed_an_answer):
        return
    raise Refused(
        Error.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {'greater' if epoch > member.epoch else 'smaller'} member epoch"
        f" ({epoch}) than the one known by the group coordinator ({member.epoch})"
        f"{'' if epoch > member.epoch else too_small}."
        " The member must abandon all its partitions and rejoin.",
    )

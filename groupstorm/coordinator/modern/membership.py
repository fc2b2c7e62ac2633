"""Members of groups of the newer protocols: which one sends a request, how it joins, leaves and is fenced.

Kafka: GroupMetadataManager's throwIf... methods, getOrMaybeSubscribe...Member, ...GroupLeave,
...GroupFenceMember.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from groupstorm.coordinator.changes import remove_members, respond
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import StaticHeartbeat, StaticHeartbeatResponse
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ModernMember
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_JOIN, MEMBER_REBALANCE, MEMBER_SESSION, MEMBER_SYNC, Timer
from groupstorm.coordinator.writes import answering
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import at_once

G = TypeVar("G", bound=ModernGroup[Any, Any])


def group_of_kind(group: Group | None, name: str, kind: type[G], missing: str = "Group") -> G:
    """The group, if it is of this ``kind``; else `Refused` (GROUP_ID_NOT_FOUND). ``missing``: how the refusal
    calls a group that is not there."""
    if isinstance(group, kind):
        return group
    sentence = f"{missing} {name} not found."
    if group is not None:
        sentence = f"Group {name} is not a {kind.kind} group."
    raise Refused(Error.GROUP_ID_NOT_FOUND, sentence)


def refuse_if_full(group: ModernGroup[M, Any], max_size: int, is_own: bool) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group has no room. ``is_own``: the member has its place."""
    if len(group.members) >= max_size and not is_own:
        raise Refused(
            Error.GROUP_MAX_SIZE_REACHED,
            f"The {group.kind} group has reached its maximum capacity of {max_size} members.",
        )


def sender(group: ModernGroup[M, Any], member_id: str, instance: str | None = None) -> M:
    """The member with this id, and with this instance id if it gives one; else `Refused`: unknown, or fenced
    by another id."""
    if instance is None:
        member = group.members.get(member_id)
        if member is None:
            sentence = f"Member {member_id} is not a member of group {group.name}."
            raise Refused(Error.UNKNOWN_MEMBER_ID, sentence)
        return member
    known = group.static_member(instance)
    if known is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance} is unknown.")
    if known.member_id != member_id:
        raise Refused(
            Error.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance} was fenced by member {known.member_id}.",
        )
    return known


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


def find_member(
    group: ModernGroup[M, Any],
    request: StaticHeartbeat,
    member_id: str,
    owns_only_its_own: Callable[[M], bool],
    records: list[Any],
) -> M:
    """The member that sent the heartbeat, a new one if it joins; `Refused` if its epoch or id is fenced."""
    if request.member_epoch != JOIN_EPOCH:
        member = sender(group, member_id, request.group_instance_id)
        check_epoch(group.kind, member, request.member_epoch, owns_only_its_own(member))
        return member
    known = group.static_member(request.group_instance_id)
    if known is None:
        return member_to_join(group, member_id)
    if not known.speaks_classic and known.epoch != LEAVE_STATIC_EPOCH:
        raise Refused(
            Error.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {known.instance} cannot join the group because the"
            f" instance id is owned by {known.member_id} member.",
        )
    return group.replaced(known, member_id, records)


def member_to_join(group: ModernGroup[M, Any], member_id: str) -> M:
    """The member with this id, a new one if there is none."""
    return group.members.get(member_id) or group.types.new_member(member_id)


#: Removes members of a group, and says why: like `remove_members`.
Fence = Callable[..., Write]


def leave(
    shard: Shard,
    group: ModernGroup[M, Any],
    request: StaticHeartbeat,
    reply: PendingReply,
    response: StaticHeartbeatResponse,
    fence: Fence = remove_members,
) -> Write | None:
    """The member leaves; a static one may do so for a while (epoch -2). Then it keeps what is assigned to it,
    and its session goes on running."""
    member = sender(group, request.member_id, request.group_instance_id)
    if request.group_instance_id is None or request.member_epoch != LEAVE_STATIC_EPOCH:
        return fence(shard, group, [member], Cause.LEFT, answering(shard, reply, response))
    gone: list[Record] = [group.current_record(member.gone_for_a_while())]
    return at_once(respond(shard, request, reply, gone, AppendCause.MEMBER_HEARTBEAT, response))


_CAUSES = {
    MEMBER_SESSION: Cause.SESSION_EXPIRED,
    MEMBER_REBALANCE: Cause.REBALANCE_TIMEOUT,
    MEMBER_JOIN: Cause.JOIN_TIMEOUT,
    MEMBER_SYNC: Cause.SYNC_TIMEOUT,
}


def on_member_timer(
    shard: Shard, group: ModernGroup[M, Any], timer: Timer, fence: Fence = remove_members
) -> Write | None:
    """A member's time is over. Its rebalance timeout counts only for the epoch in which it was set."""
    kind, _, member_id = timer.key
    member = group.members.get(member_id)
    if member is None or (kind is MEMBER_REBALANCE and member.epoch != timer.payload):
        return None
    return fence(shard, group, [member], _CAUSES[kind])

"""ShareGroupHeartbeat: a member joins, says to what it subscribes, learns its partitions, or leaves.

Kafka: GroupCoordinatorService.shareGroupHeartbeat, GroupMetadataManager.shareGroupHeartbeat, shareGroupLeave,
shareGroupFenceMember.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from groupstorm.assignors.server import (
    AssignmentRefused,
    MapOrder,
    MemberSpec,
    ServerGroup,
    Target,
    TopicDescription,
    assign_simple,
)
from groupstorm.coordinator.changes import remove_members, respond, restart_session
from groupstorm.coordinator.config import INT_MAX
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, CoordinatorFault, Error, Refused, refuse_blank
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_EPOCH
from groupstorm.coordinator.modern.membership import (
    check_epoch,
    group_of_kind,
    member_to_join,
    on_member_timer,
    refuse_if_full,
    sender,
)
from groupstorm.coordinator.modern.subscribed import (
    MemberTarget,
    SubscribedTopics,
    count_names,
    named,
    names_alone_are_equal,
    update_target,
)
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import (
    ShareEpochRecord,
    ShareMember,
    StatePartitions,
)
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.coordinator.share.state_partitions import initialize, initialize_soon, missing_partitions
from groupstorm.coordinator.timers import SHARE_INITIALIZATION, Timer
from groupstorm.coordinator.writes import answering
from groupstorm.javahash import JavaHashMap
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import Turns


def handle_share_heartbeat(
    shard: Shard, request: ShareGroupHeartbeat, reply: PendingReply
) -> Turns[Write | None]:
    """Answer with the member's epoch, and with its partitions if they are news to the member."""
    _check(request)
    group = _group_of(shard, request)
    if request.member_epoch == LEAVE_EPOCH:
        left = answering(shard, reply, ShareGroupHeartbeatResponse(NO_ERROR, request.member_id, LEAVE_EPOCH))
        return remove_members(shard, group, [sender(group, request.member_id)], Cause.LEFT, left)
    return (yield from _heartbeat(shard, group, request, reply))


def _check(request: ShareGroupHeartbeat) -> None:
    """Refuse what no group can answer (throwIfShareGroupHeartbeatRequestIsInvalid)."""
    refuse_blank(request.member_id, "MemberId")
    refuse_blank(request.group, "GroupId")
    refuse_blank(request.rack, "RackId")
    if request.member_epoch == JOIN_EPOCH and not request.topics:
        raise Refused(Error.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise Refused(Error.INVALID_REQUEST, "MemberEpoch is invalid.")


def _group_of(shard: Shard, request: ShareGroupHeartbeat) -> ShareGroup:
    """The group; a member that joins makes one if there is none. No group of another kind becomes one."""
    group = shard.groups.get(request.group)
    if group is None and request.member_epoch == JOIN_EPOCH:
        return ShareGroup(request.group)
    missing = "Group" if request.member_epoch == LEAVE_EPOCH else "Share group"
    return group_of_kind(group, request.group, ShareGroup, missing)


def _heartbeat(
    shard: Shard, group: ShareGroup, request: ShareGroupHeartbeat, reply: PendingReply
) -> Turns[Write | None]:
    """Compare the member with the group, compute the target, let the member take it: each only if due."""
    records: list[Record] = []
    before = _find_member(shard, group, request)
    after = before.told(request, "rack", **named(request.topics))
    yield len(request.topics or ())
    topics = group.subscribed
    if after.topics != before.topics:
        topics = group.subscribed_without(before.topics)
        count_names(topics, after.topics, 1)
    yield len(topics)
    noticed = _notice(shard, group, before, after, topics, records)
    yield len(topics)
    try:
        assigning = _assign(shard, group, noticed, after)
        target = yield from update_target(shard, group, noticed.epoch, after, assigning, records)
    except CoordinatorFault:
        if shard.config.compatibility.is_to_the_letter and request.member_id not in group.members:
            group.set_member(request.member_id, before)  # Kafka adds it first, and leaves it
        raise
    taken = _take_target(shard, after, target, bumps=noticed.bumps)
    if taken != after:
        records.append(group.current_record(taken))
    options = shard.group_options.share(group.name)
    restart_session(shard, group.name, taken, options.session_timeout_ms)
    yield len(target.partitions)
    asked = missing_partitions(shard, group, noticed.epoch, topics, records)
    yield len(topics)
    joins = request.member_epoch == JOIN_EPOCH
    assignment = None
    if joins or request.topics is not None or taken.assigned != before.assigned:
        assignment = {topic: tuple(sorted(numbers)) for topic, numbers in taken.assigned.items()}
    response = ShareGroupHeartbeatResponse(
        NO_ERROR, taken.member_id, taken.epoch, options.heartbeat_interval_ms, assignment
    )
    cause = AppendCause.MEMBER_HEARTBEAT
    write = yield from respond(shard, request, reply, records, cause, response, len(topics))
    if write is not None and asked is not None:
        write.then(lambda error: None if error else initialize_soon(shard, request.group, asked))
    yield len(topics)
    return write


def _find_member(shard: Shard, group: ShareGroup, request: ShareGroupHeartbeat) -> ShareMember:
    """The member that sent the heartbeat, a new one if it joins; `Refused` if there is no room, or its epoch
    is fenced. What the member owns does not matter."""
    member_id = request.member_id
    refuse_if_full(group, shard.config.share.max_size, member_id in group.members)
    if request.member_epoch == JOIN_EPOCH:
        return member_to_join(group, member_id)
    member = sender(group, member_id)
    unmatched = f", and it does not match the previous member epoch ({member.previous_epoch})"
    check_epoch(group.kind, member, request.member_epoch, True, unmatched)
    return member


def _notice(
    shard: Shard,
    group: ShareGroup,
    before: ShareMember,
    after: ShareMember,
    topics: SubscribedTopics,
    records: list[Record],
) -> _Noticed:
    """Count the group epoch up if the member subscribes to other topics, if subscribed topics are not as they
    were, or if partitions wait for a target."""
    if after != before:
        records.append(group.member_record(after))
    bumps = after.topics != before.topics
    if group.assignment_epoch >= group.epoch:
        bumps = group.has_unassigned(shard.topics) or bumps
    if not bumps and not group.is_refresh_due(shard.now_ms):
        return _Noticed(group.epoch, bumps, group.is_homogeneous)
    metadata_hash = shard.topics.hash_of(topics)
    bumps = bumps or metadata_hash != group.metadata_hash
    epoch = group.epoch + bumps
    if bumps:
        records.append(ShareEpochRecord(group.name, epoch, metadata_hash))
    group.refresh_ms, group.refresh_epoch = shard.now_ms + INT_MAX, epoch
    members = len(group.members) + (after.member_id not in group.members)
    return _Noticed(epoch, bumps, names_alone_are_equal(topics, members))


def on_share_timer(shard: Shard, group: ShareGroup, timer: Timer) -> Write | None:
    """A member was silent for too long, or the persister is to be asked."""
    if timer.key[0] is not SHARE_INITIALIZATION:
        return on_member_timer(shard, group, timer)
    shard.carry_out(group.name, initialize(shard, group))
    return None


class _Noticed(NamedTuple):
    """The group after a heartbeat was compared with it. ``bumps``: the group epoch counted up."""

    epoch: int
    bumps: bool
    is_homogeneous: bool


def _assign(
    shard: Shard, group: ShareGroup, noticed: _Noticed, member: ShareMember
) -> Turns[dict[str, Target]]:
    """Every member's target; a target that stays is the same object (ShareGroupAssignmentBuilder)."""
    specs: JavaHashMap[str, MemberSpec] = JavaHashMap()
    for member_id, known in group.members.with_entry(member.member_id, member).items():
        specs.put(member_id, MemberSpec(known.topics_in_order, group.target(member_id)))
    topics = {
        name: TopicDescription(topic.id, topic.partitions) for name, topic in shard.topics.by_name.items()
    }
    yield len(topics)
    ids = specs.keys()
    question = ServerGroup(topics, ids, specs.values(), MapOrder.JAVA_HASH, noticed.is_homogeneous)
    assignable = (group.state_partitions or StatePartitions()).initialized
    try:
        targets = yield from assign_simple(question, assignable)
        return dict(zip(ids, targets, strict=True))
    except AssignmentRefused as problem:
        raise CoordinatorFault(f"simple cannot assign in epoch {noticed.epoch}: {problem}") from problem


def _take_target(shard: Shard, member: ShareMember, target: MemberTarget, *, bumps: bool) -> ShareMember:
    """The member with its whole target, cut to its topics, if the target or the group is new to it."""
    if not bumps and member.is_reconciled_to(target.epoch):
        return member
    assigned = {
        topic: frozenset(numbers)
        for topic, numbers in target.partitions.items()
        if shard.topics.name(topic) in member.topics
    }
    if member.epoch == target.epoch:
        return replace(member, assigned=assigned)
    return replace(member, assigned=assigned, epoch=target.epoch, previous_epoch=member.epoch)

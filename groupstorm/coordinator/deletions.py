"""Deletions: of offsets, by request or because they have expired or their topic was deleted, and of groups.

Kafka: OffsetMetadataManager.deleteOffsets, deleteAllOffsets, cleanupExpiredOffsets, onTopicsDeleted;
GroupCoordinatorShard.deleteGroups, cleanupGroupMetadata (KIP-211).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from groupstorm.coordinator.classic.changes import delete_group
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import EMPTY
from groupstorm.coordinator.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, is_subscribed_to
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.dispatch import ending_of
from groupstorm.coordinator.effects import Completion, PendingReply, Write
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import attempt
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import (
    DeleteGroup,
    DeleteGroupResponse,
    OffsetDelete,
    OffsetDeleteResponse,
)
from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.offset_requests import expiration_base_time
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.records import AppendCause, OffsetCommitRecord, Record, operation_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.state_partitions import forget_state
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.topology_descriptions import forget_description, must_be_forgotten
from groupstorm.coordinator.timers import EXPIRATION
from groupstorm.coordinator.writes import answer_in_turn, answering
from groupstorm.trace.events.group_states import Cause

_Partition = tuple[str, int]


def handle_offset_delete(shard: Shard, request: OffsetDelete, reply: PendingReply) -> Write | None:
    """Delete offsets; those of topics that members read stay (KIP-496)."""
    group = shard.groups.get(request.group)
    error = _check_offset_delete(request, group)
    if error or group is None:
        shard.answer(reply, OffsetDeleteResponse(error))
        return None
    compatibility = shard.config.compatibility
    results: list[tuple[str, int, Error]] = []
    gone: list[_Partition] = []
    for topic, partitions in request.topics.items():
        subscribed = _reads(group, topic, compatibility)
        error = Error.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else Error.NONE
        results += [(topic, partition, error) for partition in partitions]
        if not subscribed:
            gone += [(topic, number) for number in partitions if _is_known(shard, group.name, topic, number)]
    response = OffsetDeleteResponse(Error.NONE, tuple(results))
    if not gone:
        answer_in_turn(shard, request, reply, response)
        return None

    on_written = answering(shard, reply, response)
    return _forgetting(shard, group.name, gone, AppendCause.OFFSETS_DELETED, on_written)


def _check_offset_delete(request: OffsetDelete, group: Group | None) -> Error:
    if not request.group:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.GROUP_ID_NOT_FOUND
    if isinstance(group, ClassicGroup):  # its members' subscriptions have to be readable
        is_unknown = group.state is not EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE
        return Error.NON_EMPTY_GROUP if is_unknown else Error.NONE
    return Error.GROUP_ID_NOT_FOUND if isinstance(group, ShareGroup) else Error.NONE


def _reads(group: Group, topic: str, compatibility: Compatibility) -> bool:
    """Whether members of the group read this topic."""
    if isinstance(group, ClassicGroup):
        return is_subscribed_to(group, topic, compatibility)
    return isinstance(group, ModernGroup) and group.is_subscribed_to(topic)


def _is_empty(group: Group) -> bool:
    return group.state is EMPTY if isinstance(group, ClassicGroup) else not group.members


def _is_known(shard: Shard, group: str, topic: str, partition: int) -> bool:
    committed = shard.offsets.get(group, topic, partition) is not None
    return committed or shard.pending_offsets.is_pending(group, topic, partition)


def _forgetting(
    shard: Shard,
    group: str,
    partitions: Sequence[_Partition],
    cause: AppendCause,
    on_written: Completion | None = None,
) -> Write:
    """The write that deletes these offsets, and those that wait for a transaction there."""

    def apply() -> None:
        for topic, partition in partitions:
            shard.offsets.remove(group, topic, partition)
            shard.pending_offsets.remove(group, topic, partition)

    records = [OffsetCommitRecord(group, topic, partition, None) for topic, partition in partitions]
    return Write(group, records, cause, on_written, apply)


def handle_delete_group(shard: Shard, request: DeleteGroup, reply: PendingReply) -> Write | None:
    """Delete an empty group with all its offsets."""
    group = shard.groups.get(request.group)
    if group is None or not _is_empty(group):
        error = Error.GROUP_ID_NOT_FOUND if group is None else Error.NON_EMPTY_GROUP
        shard.answer(reply, DeleteGroupResponse(error))
        return None
    go_on = partial(_delete_group, shard, group, reply)
    if isinstance(group, ShareGroup):
        return forget_state(
            shard, group, go_on, lambda error: shard.answer(reply, DeleteGroupResponse(error))
        )
    if isinstance(group, StreamsGroup) and must_be_forgotten(shard, group):
        failed = DeleteGroupResponse(Error.GROUP_DELETION_FAILED)
        return forget_description(shard, group, go_on, lambda: shard.answer(reply, failed))
    return go_on()


def _delete_group(shard: Shard, group: Group, reply: PendingReply) -> Write:
    on_written = answering(shard, reply, DeleteGroupResponse(Error.NONE))
    everything = _partitions_of(shard, group.name)
    write = _forgetting(shard, group.name, everything, AppendCause.GROUP_DELETED, on_written)
    # other writes may come before it, so that nobody else refuses the request
    write.refuse = lambda error: shard.answer(reply, DeleteGroupResponse(operation_error(error)))
    return _ending(shard, group, write, Cause.DELETED)


def _partitions_of(shard: Shard, group: str) -> list[_Partition]:
    """The partitions with an offset of the group, be it committed or waiting for a transaction."""
    committed = [(topic, partition) for topic, partition, _ in shard.offsets.of_group(group)]
    return list(dict.fromkeys([*committed, *shard.pending_offsets.of_group(group)]))


def _ending(shard: Shard, group: Group, write: Write, cause: Cause) -> Write:
    """Let the write delete the group too, unless a member has joined when the write is done."""
    forget, records = write.apply, list[Record](write.records)

    def apply() -> None:
        if forget is not None:
            forget()
        if _is_empty(group):
            delete_group(shard, group, cause)

    write.apply = apply
    write.records = [*records, *ending_of(shard, group)]
    return write


def delete_topics(shard: Shard, topics: Sequence[str]) -> list[Write]:
    """Delete the offsets committed for these topics (OffsetMetadataManager.onTopicsDeleted)."""
    writes = []
    for topic in topics:
        groups = [*shard.offsets.groups_with(topic), *shard.pending_offsets.groups_with(topic)]
        for group in dict.fromkeys(groups):
            gone = [row for row in _partitions_of(shard, group) if row[0] == topic]
            writes.append(_forgetting(shard, group, gone, AppendCause.TOPICS_DELETED))
    return writes


def schedule_expiration(shard: Shard) -> None:
    """Set the timer of the next expiration (GroupCoordinatorShard.scheduleGroupMetadataExpiration)."""
    interval_ms = shard.config.offsets_retention_check_interval_ms
    shard.timers.set(EXPIRATION, "", "", shard.now_ms + interval_ms)


def on_expiration_timer(shard: Shard) -> list[Write]:
    """Delete the offsets that have expired, and the empty groups that have none left."""
    schedule_expiration(shard)
    expired = [attempt(shard, name, None, _expire, (shard, name)) for name in shard.groups.keys()]  # noqa: SIM118
    return [write for write in expired if write is not None]


def _expire(shard: Shard, name: str) -> Write | None:
    group = shard.groups[name]
    waits_for_transaction = bool(shard.pending_offsets.of_group(group.name))
    expired: list[_Partition] = []
    all_expired = True
    if group.name in shard.offsets:
        expired, all_expired = _expired_offsets(shard, group)
    ends = all_expired and not waits_for_transaction and _is_empty(group)
    ends = ends and not must_be_forgotten(shard, group) and not isinstance(group, ShareGroup)
    if not expired and not ends:
        return None
    write = _forgetting(shard, group.name, expired, AppendCause.EXPIRED)
    return _ending(shard, group, write, Cause.EXPIRED) if ends else write


def _expired_offsets(shard: Shard, group: Group) -> tuple[list[_Partition], bool]:
    """The expired offsets, and whether they are all (OffsetMetadataManager.cleanupExpiredOffsets)."""
    compatibility = shard.config.compatibility
    base_time_ms = expiration_base_time(group, compatibility)
    if base_time_ms is None:
        return [], False
    expired, all_expired = [], True
    for topic, partition, stored in shard.offsets.of_group(group.name):
        if (
            not _reads(group, topic, compatibility)
            and _is_over(shard, stored, base_time_ms(stored))
            and not shard.pending_offsets.is_pending(group.name, topic, partition)
        ):
            expired.append((topic, partition))
        else:
            all_expired = False
    return expired, all_expired


def _is_over(shard: Shard, stored: StoredOffset, base_ms: int) -> bool:
    if stored.expires_at_ms is not None:
        return shard.now_ms >= stored.expires_at_ms
    return shard.now_ms - base_ms >= shard.config.offsets_retention_ms

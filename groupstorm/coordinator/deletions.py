"""What goes: offsets that are deleted or have expired, groups, offsets of topics that are gone.

Kafka: OffsetMetadataManager.deleteOffsets, deleteAllOffsets, cleanupExpiredOffsets, onTopicsDeleted;
GroupCoordinatorShard.deleteGroups, cleanupGroupMetadata; ClassicGroup.offsetExpirationCondition (KIP-211).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.group import ClassicGroup
from groupstorm.coordinator.messages import (
    DeleteGroup,
    DeleteGroupResponse,
    OffsetDelete,
    OffsetDeleteResponse,
)
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.records import AppendCause, GroupTombstone, OffsetCommitRecord, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import Cause, GroupState
from groupstorm.coordinator.subscriptions import CONSUMER_PROTOCOL_TYPE, is_subscribed_to, subscribed_topics
from groupstorm.coordinator.timers import TimerKind
from groupstorm.coordinator.writes import Write

_Partition = tuple[str, int]
#: When the time of an offset's retention begins.
_BaseTime = Callable[[StoredOffset], int]


def handle_offset_delete(shard: Shard, request: OffsetDelete, answer: Answer) -> Write | None:
    """Forget offsets; those of topics that members read stay (KIP-496)."""
    group = shard.groups.get(request.group)
    error = _check_offset_delete(request, group)
    if error or group is None:
        shard.answer(answer, OffsetDeleteResponse(error))
        return None
    compatibility = shard.config.compatibility
    results: list[tuple[str, int, Error]] = []
    gone: list[_Partition] = []
    for topic, partitions in request.topics.items():
        subscribed = is_subscribed_to(group, topic, compatibility)
        error = Error.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else Error.NONE
        results += [(topic, partition, error) for partition in partitions]
        if not subscribed:
            gone += [(topic, number) for number in partitions if _is_known(shard, group.name, topic, number)]
    response = OffsetDeleteResponse(Error.NONE, tuple(results))
    if not gone:
        shard.writes.answer_in_turn(request, answer, response)
        return None

    def on_written(error: Error | None) -> None:
        if error is None:
            shard.answer(answer, response)

    return _forgetting(shard, group.name, gone, AppendCause.OFFSETS_DELETED, on_written)


def _check_offset_delete(request: OffsetDelete, group: ClassicGroup | None) -> Error:
    if not request.group:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.GROUP_ID_NOT_FOUND
    unreadable = group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE
    return Error.NON_EMPTY_GROUP if unreadable else Error.NONE


def _is_known(shard: Shard, group: str, topic: str, partition: int) -> bool:
    committed = shard.offsets.get(group, topic, partition) is not None
    return committed or shard.pending_offsets.is_pending(group, topic, partition)


def _forgetting(
    shard: Shard,
    group: str,
    partitions: Sequence[_Partition],
    cause: AppendCause,
    on_written: Callable[[Error | None], None] | None = None,
) -> Write:
    """The write that takes these offsets away, and what waits for a transaction there."""

    def apply() -> None:
        for topic, partition in partitions:
            shard.offsets.remove(group, topic, partition)
            shard.pending_offsets.remove(group, topic, partition)

    records = [OffsetCommitRecord(group, topic, partition, None) for topic, partition in partitions]
    return Write(group, records, cause, on_written, apply)


def handle_delete_group(shard: Shard, request: DeleteGroup, answer: Answer) -> Write | None:
    """An empty group goes with all its offsets."""
    group = shard.groups.get(request.group)
    if group is None:
        shard.answer(answer, DeleteGroupResponse(Error.GROUP_ID_NOT_FOUND))
        return None
    if group.state is not GroupState.EMPTY:
        shard.answer(answer, DeleteGroupResponse(Error.NON_EMPTY_GROUP))
        return None

    def on_written(error: Error | None) -> None:
        if error is None:
            shard.answer(answer, DeleteGroupResponse(Error.NONE))

    committed = [(topic, partition) for topic, partition, _ in shard.offsets.of_group(group.name)]
    waiting = [row for row in shard.pending_offsets.of_group(group.name) if row not in set(committed)]
    return _ending(
        shard,
        group,
        _forgetting(shard, group.name, committed + waiting, AppendCause.GROUP_DELETED, on_written),
        Cause.DELETED,
    )


def _ending(shard: Shard, group: ClassicGroup, write: Write, cause: Cause) -> Write:
    """The same write, which takes the group itself along, unless somebody joined before it was done."""
    forget, records = write.apply, list[Record](write.records)

    def apply() -> None:
        if forget is not None:
            forget()
        if group.state is GroupState.EMPTY:
            shard.delete_group(group, cause)

    write.apply = apply
    write.records = [*records, GroupTombstone(group.name)]
    return write


def delete_topics(shard: Shard, topics: Sequence[str]) -> list[Write]:
    """Topics are gone: so are the offsets committed for them (OffsetMetadataManager.onTopicsDeleted)."""
    writes = []
    for topic in topics:
        groups = [*shard.offsets.groups_with(topic), *shard.pending_offsets.groups_with(topic)]
        for group in dict.fromkeys(groups):
            committed = [(name, number) for name, number, _ in shard.offsets.of_group(group)]
            partitions = dict.fromkeys([*committed, *shard.pending_offsets.of_group(group)])
            gone = [row for row in partitions if row[0] == topic]
            writes.append(_forgetting(shard, group, gone, AppendCause.TOPICS_DELETED))
    return writes


def schedule_expiration(shard: Shard) -> None:
    """The next look at all groups (GroupCoordinatorShard.scheduleGroupMetadataExpiration)."""
    interval_ms = shard.config.offsets_retention_check_interval_ms
    shard.timers.set(TimerKind.EXPIRATION, "", "", shard.now_ms + interval_ms)


def on_expiration_timer(shard: Shard) -> list[Write]:
    """Offsets that have expired go, and empty groups that have none left."""
    writes = []
    for name in shard.groups.keys():  # noqa: SIM118  (a list: groups may go while we look)
        group = shard.groups.get(name)
        write = None if group is None else _expire(shard, group)
        if write is not None:
            writes.append(write)
    schedule_expiration(shard)
    return writes


def _expire(shard: Shard, group: ClassicGroup) -> Write | None:
    waits_for_transaction = bool(shard.pending_offsets.of_group(group.name))
    expired: list[_Partition] = []
    all_expired = True
    if group.name in shard.offsets:
        expired, all_expired = _expired_offsets(shard, group)
    ends = all_expired and not waits_for_transaction and group.state is GroupState.EMPTY
    if not expired and not ends:
        return None
    write = _forgetting(shard, group.name, expired, AppendCause.EXPIRED)
    return _ending(shard, group, write, Cause.EXPIRED) if ends else write


def _expired_offsets(shard: Shard, group: ClassicGroup) -> tuple[list[_Partition], bool]:
    """What has expired, and whether that is all there is (OffsetMetadataManager.cleanupExpiredOffsets)."""
    base_time_ms = _base_time(shard, group)
    if base_time_ms is None:
        return [], False
    compatibility = shard.config.compatibility
    expired, all_expired = [], True
    for topic, partition, stored in shard.offsets.of_group(group.name):
        if (
            not is_subscribed_to(group, topic, compatibility)
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


def _base_time(shard: Shard, group: ClassicGroup) -> _BaseTime | None:
    """Since when an offset counts as unused; None where this group's do not expire
    (ClassicGroup.offsetExpirationCondition).

    A group that manages partitions: since it became empty; while it is stable, topics that nobody
    reads any more, since the commit. Commits from outside of any group: since the commit.
    """
    if group.protocol_type is None:
        return lambda stored: stored.committed_at_ms
    if group.state is GroupState.EMPTY:
        return lambda stored: group.state_since_ms
    knows_topics = subscribed_topics(group, shard.config.compatibility) is not None
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE and knows_topics and group.state is GroupState.STABLE:
        return lambda stored: stored.committed_at_ms
    return None

"""The start offsets of share groups: altered, deleted, and the partitions that have one.

Kafka: GroupMetadataManager.alterShareGroupOffsets, sharePartitionsEligibleForOffsetDeletion,
completeDeleteShareGroupOffsets; GroupCoordinatorService around them.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from uuid import UUID

from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.messages import (
    AlterShareGroupOffsets,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets,
    DeleteShareGroupOffsetsResponse,
    ListSharePartitions,
    ListSharePartitionsResponse,
)
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.share.records import StatePartitions
from groupstorm.coordinator.share.state_partitions import initialized, refused, together, write_partitions
from groupstorm.coordinator.writes import answer_in_turn, then_in_turns
from groupstorm.turns import Turns

_UNKNOWN = "This server does not host this topic-partition."
_NOTHING_THERE = "There is no offset information to delete."
_IN_USE = "The group is not empty."


def _empty_group(shard: Shard, name: str) -> ShareGroup | None:
    """The group without members; None: there is none. Raises Refused."""
    if not name:
        raise Refused(Error.INVALID_GROUP_ID, "The group id is invalid.")
    group = shard.groups.get(name)
    if group is not None and not isinstance(group, ShareGroup):
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {name} is not a share group.")
    if group is not None and group.members:
        raise Refused(Error.NON_EMPTY_GROUP, _IN_USE)
    return group


def handle_list_share_partitions(shard: Shard, request: ListSharePartitions, reply: PendingReply) -> None:
    """Answer with the initialised partitions; a group that is not there has none."""
    group = shard.group_as(request.group, ShareGroup)
    known = None if group is None else group.state_partitions
    found = {} if known is None else {topic: sorted(numbers) for topic, numbers in known.initialized.items()}
    shard.answer(reply, ListSharePartitionsResponse(Error.NONE, found))


def handle_alter_share_offsets(
    shard: Shard, request: AlterShareGroupOffsets, reply: PendingReply
) -> Write | None:
    """Initialise partitions again, with other start offsets. A group that is not there is made."""
    name = request.group
    try:
        group = _empty_group(shard, name)
    except Refused as refusal:
        shard.answer(reply, AlterShareGroupOffsetsResponse(refusal.error, error_message=str(refusal)))
        return None
    starts: dict[UUID, dict[int, int]] = {}
    results: list[tuple[str, int, Error]] = []
    for topic_name, offsets in request.topics.items():
        topic = shard.topics.by_name.get(topic_name)
        for number, offset in offsets.items():
            if topic is not None and number < 0:
                where = f"{name} {urlsafe_b64encode(topic.id.bytes).decode().rstrip('=')} {number}"
                sentence = f"Initialize share group parameters has invalid partitionId - {where}"
                broken = AlterShareGroupOffsetsResponse(Error.UNKNOWN_SERVER_ERROR, error_message=sentence)
                shard.answer(reply, broken)
                return None
            is_there = topic is not None and number < topic.partitions
            results.append((topic_name, number, Error.NONE if is_there else Error.UNKNOWN_TOPIC_OR_PARTITION))
            if topic is not None and is_there:
                starts.setdefault(topic.id, {})[number] = offset
    if not starts:
        answer_in_turn(shard, request, reply, AlterShareGroupOffsetsResponse(Error.NONE, tuple(results)))
        return None
    asked = Initialization(0 if group is None else group.epoch, starts)

    def ask() -> Turns[Write | None]:
        made = shard.group_as(name, ShareGroup)
        error = yield from shard.persister.initialize(name, asked)
        shown = Error.COORDINATOR_NOT_AVAILABLE if error is None else error
        answered = tuple((topic, number, before or shown) for topic, number, before in results)
        shard.answer(reply, AlterShareGroupOffsetsResponse(Error.NONE, answered))
        if made is None or error is None:
            return None
        if error is NO_ERROR:
            return initialized(shard, made, asked)
        refused(shard, made, asked)
        return None

    known = (None if group is None else group.state_partitions) or StatePartitions()
    initializing = together(known.initializing, {topic: frozenset(one) for topic, one in starts.items()})
    news = known._replace(initializing=initializing, deleting=known.deleting.difference(initializing))
    return write_partitions(shard, name, news, then_in_turns(shard, name, ask))


def handle_delete_share_offsets(
    shard: Shard, request: DeleteShareGroupOffsets, reply: PendingReply
) -> Write | None:
    """Let the persister delete the state of all partitions of topics."""
    name = request.group
    try:
        group = _empty_group(shard, name)
        if group is None:
            raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
    except Refused as refusal:
        shard.answer(reply, DeleteShareGroupOffsetsResponse(refusal.error, error_message=str(refusal)))
        return None
    known = group.state_partitions
    failed: list[tuple[str, Error, str | None]] = []
    gone: dict[UUID, frozenset[int]] = {}
    names: dict[UUID, str] = {}
    for topic_name in request.topics if known is not None else ():
        topic = shard.topics.by_name.get(topic_name)
        if topic is None:
            failed.append((topic_name, Error.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN))
        elif known is not None and (topic.id in known.initialized or topic.id in known.deleting):
            again = frozenset(range(topic.partitions))
            gone[topic.id], names[topic.id] = known.initialized.get(topic.id, again), topic_name
        else:
            failed.append((topic_name, Error.UNKNOWN_TOPIC_OR_PARTITION, _NOTHING_THERE))
    if known is None or not gone:
        answer_in_turn(shard, request, reply, DeleteShareGroupOffsetsResponse(Error.NONE, tuple(failed)))
        return None

    def ask() -> Turns[Write | None]:
        error = yield from shard.persister.delete(name, gone)
        shown = Error.COORDINATOR_NOT_AVAILABLE if error is None else error
        done = [(topic_name, shown, None) for topic_name in names.values()]
        shard.answer(reply, DeleteShareGroupOffsetsResponse(Error.NONE, (*failed, *done)))
        left = group.state_partitions
        if left is None or error is not NO_ERROR:
            return None
        return write_partitions(shard, name, left._replace(deleting=left.deleting.difference(gone)))

    kept = {topic: numbers for topic, numbers in known.initialized.items() if topic not in gone}
    news = known._replace(initialized=kept, deleting=known.deleting.union(gone))
    return write_partitions(shard, name, news, then_in_turns(shard, name, ask))

"""The partitions of a share group whose state the persister initialises or deletes, by heartbeats or by
requests of administrators: only initialised ones are assigned.

Kafka: GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest, initializeShareGroupState,
uninitializeShareGroupState, maybeCleanupShareGroupState, shareGroupBuildPartitionDeleteRequest,
alterShareGroupOffsets, sharePartitionsEligibleForOffsetDeletion, completeDeleteShareGroupOffsets;
GroupCoordinatorService.persisterInitialize, deleteShareGroups and what calls the former.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from groupstorm.coordinator.changes import write_records
from groupstorm.coordinator.effects import Completion, PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused
from groupstorm.coordinator.modern.membership import group_of_kind
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import Partitions, ShareStatePartitionsRecord, StatePartitions
from groupstorm.coordinator.share.messages import (
    AlterShareGroupOffsets,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets,
    DeleteShareGroupOffsetsResponse,
    ListSharePartitions,
    ListSharePartitionsResponse,
)
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.timers import SHARE_INITIALIZATION
from groupstorm.coordinator.writes import answer_in_turn, submit, then_in_turns
from groupstorm.turns import Turns

#: The group's share.auto.offset.reset decides where it begins.
_BY_OPTION = -1


def together(one: Partitions, other: Partitions) -> dict[UUID, frozenset[int]]:
    if not one or not other:
        return dict(one or other)
    nothing: frozenset[int] = frozenset()
    return {topic: one.get(topic, nothing) | other.get(topic, nothing) for topic in {**one, **other}}


def _without(one: Partitions, other: Mapping[UUID, Iterable[int]]) -> dict[UUID, frozenset[int]]:
    rest = {topic: numbers.difference(other.get(topic, ())) for topic, numbers in one.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def missing_partitions(
    shard: Shard, group: ShareGroup, epoch: int, topics: Iterable[str], records: list[Record]
) -> Initialization | None:
    """The partitions of these topics that the persister has to be asked for, which are initialising then."""
    known = group.state_partitions or StatePartitions()
    waits = shard.now_ms - group.asked_at_ms < shard.config.share.initialize_retry_interval_ms
    settled = together(known.initialized, known.initializing if waits else {})
    missing: dict[UUID, frozenset[int]] = {}
    for name in topics:
        topic = shard.topics.by_name.get(name)
        if topic is not None:
            known_numbers = settled.get(topic.id, ()) if settled else ()
            if len(known_numbers) < topic.partitions:
                missing[topic.id] = frozenset(range(topic.partitions)).difference(known_numbers)
    if not missing:
        return None
    initializing = together(known.initializing, missing)
    news = known._replace(initializing=initializing, deleting=known.deleting.difference(initializing))
    records.append(ShareStatePartitionsRecord(group.name, news))
    # Kafka 4.4.0 skips no records of partitions that a known topic has got in the meantime
    earlier = {*known.initialized, *known.initializing} if shard.config.compatibility.is_4_4 else set()
    return Initialization(
        epoch,
        {
            topic: dict.fromkeys(sorted(numbers), 0 if topic in earlier else _BY_OPTION)
            for topic, numbers in missing.items()
        },
    )


def initialize_soon(shard: Shard, name: str, asked: Initialization) -> None:
    """Ask the persister as soon as the present request has its answer."""
    group = shard.group_as(name, ShareGroup)
    if group is not None:
        group.to_initialize.append(asked)
        shard.timers.set(SHARE_INITIALIZATION, name, "", shard.now_ms)


def initialize(shard: Shard, group: ShareGroup) -> Turns[None]:
    """Ask the persister, and write its answer. Partitions that it refuses are asked for again."""
    asked, group.to_initialize = group.to_initialize, []
    for one in asked:
        error = yield from shard.persister.initialize(group.name, one)
        if error is NO_ERROR:
            write = initialized(shard, group, one)
            yield len(one.starts)
            submit(shard, write)
        elif error is not None:
            refused(shard, group, one)


def initialized(shard: Shard, group: ShareGroup, asked: Initialization) -> Write:
    known = group.state_partitions or StatePartitions()
    confirmed = {topic: frozenset(numbers) for topic, numbers in asked.starts.items()}
    news = known._replace(
        initializing=_without(known.initializing, confirmed),
        initialized=together(known.initialized, confirmed),
    )

    def on_written(error: Error | None) -> None:
        if error is not None:
            refused(shard, group, asked)

    return write_partitions(shard, group.name, news, on_written)


def refused(shard: Shard, group: ShareGroup, asked: Initialization) -> None:
    known = group.state_partitions
    if known is not None and known.initializing:
        news = known._replace(initializing=_without(known.initializing, asked.starts))
        submit(shard, write_partitions(shard, group.name, news))


def write_partitions(
    shard: Shard, group: str, news: StatePartitions, on_written: Completion | None = None
) -> Write:
    record = ShareStatePartitionsRecord(group, news)
    return write_records(shard, group, [record], AppendCause.STATE_PARTITIONS, on_written)


def forget_topics(shard: Shard, topics: Iterable[UUID | None]) -> list[Write]:
    """Topics are gone, and with them the state of their partitions."""
    gone = set(topics)
    writes = []
    for group in shard.groups.values():
        if not isinstance(group, ShareGroup) or group.state_partitions is None:
            continue
        known = group.state_partitions
        initializing, initialized = (
            {topic: numbers for topic, numbers in one.items() if topic not in gone}
            for one in (known.initializing, known.initialized)
        )
        news = StatePartitions(initializing, initialized, known.deleting.difference(gone))
        if news != known:
            writes.append(write_partitions(shard, group.name, news))
    return writes


def forget_state(
    shard: Shard,
    group: ShareGroup,
    on_forgotten: Callable[[], Write | None],
    on_failed: Callable[[Error], None],
) -> Write | None:
    """Let the persister delete the state of the group, which is empty, and go on."""
    known = group.state_partitions
    if known is None:
        return on_forgotten()
    again = {
        topic: frozenset(range(shard.topics.by_name[name].partitions))
        for topic in known.deleting
        if (name := shard.topics.name(topic)) is not None
    }
    gone = together(together(known.initialized, known.initializing), again)

    def ask() -> Turns[Write | None]:
        error = (yield from shard.persister.delete(group.name, gone)) if gone else NO_ERROR
        if error is NO_ERROR:
            return on_forgotten()
        if error is not None:
            on_failed(error)
        return None

    news = StatePartitions(deleting=frozenset(gone))
    return write_partitions(shard, group.name, news, then_in_turns(shard, group.name, ask))


_UNKNOWN = "This server does not host this topic-partition."
_NOTHING_THERE = "There is no offset information to delete."
_IN_USE = "The group is not empty."


def _empty_group(shard: Shard, name: str) -> ShareGroup | None:
    """The group without members; None: there is none. Raises Refused."""
    if not name:
        raise Refused(Error.INVALID_GROUP_ID, "The group id is invalid.")
    if name not in shard.groups:
        return None
    group = group_of_kind(shard.groups[name], name, ShareGroup)
    if group.members:
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
    name, group = request.group, _empty_group(shard, request.group)
    starts: dict[UUID, dict[int, int]] = {}
    results: list[tuple[str, int, Error]] = []
    for topic_name, offsets in request.topics.items():
        topic = shard.topics.by_name.get(topic_name)
        for number, offset in offsets.items():
            if topic is not None and number < 0:
                where = f"{name} {urlsafe_b64encode(topic.id.bytes).decode().rstrip('=')} {number}"
                sentence = f"Initialize share group parameters has invalid partitionId - {where}"
                raise Refused(Error.UNKNOWN_SERVER_ERROR, sentence)
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
    name, group = request.group, _empty_group(shard, request.group)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
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

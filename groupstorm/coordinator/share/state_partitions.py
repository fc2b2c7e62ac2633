"""The partitions of a share group whose state the persister initialises or deletes: only initialised ones are
assigned.

Kafka: GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest, initializeShareGroupState,
uninitializeShareGroupState, maybeCleanupShareGroupState, shareGroupBuildPartitionDeleteRequest;
GroupCoordinatorService.persisterInitialize, deleteShareGroups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from groupstorm.coordinator.changes import write_records
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.pending_writes import Completion, Write
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import Partitions
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.share.records import ShareStatePartitionsRecord, StatePartitions
from groupstorm.coordinator.timers import SHARE_INITIALIZATION
from groupstorm.coordinator.writes import submit, then_in_turns
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

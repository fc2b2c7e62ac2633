"""A coordinator begins with the records of another, hands groups over, or gives up.

Kafka: GroupMetadataManager.replay, onLoaded, onUnloaded; OffsetMetadataManager.replay.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.coordinator.changes import cancel_member_timers, replay, watch_revocation
from groupstorm.coordinator.changes import restart_session as restart_member_session
from groupstorm.coordinator.classic.changes import answer_all_parked, delete_group, restart_session
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.group_records import restored_group, simple_group
from groupstorm.coordinator.classic.rebalances import prepare_rebalance
from groupstorm.coordinator.effects import Write
from groupstorm.coordinator.errors import CoordinatorFault, Error
from groupstorm.coordinator.failures import attempt
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.modern.member import UNREVOKED
from groupstorm.coordinator.offset_requests import apply_transaction_end
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.records import (
    EntryRecord,
    GroupMetadataRecord,
    GroupTombstone,
    OffsetCommitRecord,
    Record,
    TransactionEndRecord,
)
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import STREAMS_DELAY
from groupstorm.coordinator.writes import abandon
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def load(shard: Shard, records: Iterable[Record]) -> list[Write]:
    """Replay the records in their order, then begin the sessions of all members."""
    for record in records:
        _replay(shard, record)
    return [write for name in shard.groups.keys() for write in _on_loaded(shard, name)]  # noqa: SIM118


def _on_loaded(shard: Shard, name: str) -> list[Write]:
    group = shard.groups[name]
    shard.emit(events.GroupCreated(group.name, "loaded"))
    if not isinstance(group, ClassicGroup):
        _begin_member_sessions(shard, group)
        return []
    write = attempt(shard, name, None, _begin_classic_sessions, (shard, group))
    return [] if write is None else [write]


def _begin_classic_sessions(shard: Shard, group: ClassicGroup) -> Write | None:
    """Begin the members' sessions; a group with more than group.max.size members rebalances."""
    for member in group.members.values():
        restart_session(shard, group, member)
    if len(group.members) <= shard.config.max_size:
        return None
    return prepare_rebalance(shard, group, Cause.OVER_CAPACITY, None)


def _begin_member_sessions(shard: Shard, group: Group) -> None:
    """Begin the members' sessions, and the rebalance timeouts of those that have something to give up."""
    for member in group.members.values():
        timeout_ms = shard.group_options.modern(group.kind, group.name).session_timeout_ms
        restart_member_session(shard, group.name, member, timeout_ms)
        if member.state in UNREVOKED:
            watch_revocation(shard, group.name, member)


def _replay(shard: Shard, record: Record) -> None:
    shard.note_written([record])
    match record:
        case GroupMetadataRecord():
            shard.groups.put(record.group, restored_group(record))
        case GroupTombstone(group):
            shard.groups.remove(group)
        case OffsetCommitRecord():
            _replay_offset(shard, record)
        case TransactionEndRecord(producer_id, is_commit):
            apply_transaction_end(shard, producer_id, is_commit)
        case _:
            _replay_entry(shard, record)


def _replay_entry(shard: Shard, record: EntryRecord) -> None:
    group = replay(shard, record)
    if group is not None:
        group.take_undo()
        group.committed = True


def _replay_offset(shard: Shard, record: OffsetCommitRecord) -> None:
    where = (record.group, record.topic, record.partition)
    if record.committed is None:
        shard.offsets.remove(*where)
        shard.pending_offsets.remove(*where)
        return
    if record.group not in shard.groups:
        shard.groups.put(record.group, simple_group(record.group, record.committed_at_ms))
    number = shard.writes.next_number()
    stored = StoredOffset(record.committed, record.committed_at_ms, record.expires_at_ms, number)
    if record.producer_id is None:
        shard.offsets.put(*where, stored)
    else:
        shard.pending_offsets.put(record.producer_id, *where, stored)


def move(shard: Shard, names: Iterable[str]) -> list[Write]:
    """Another coordinator takes these groups over: unload each, and restore it from its written record."""
    writes = []
    for name in names:
        group = shard.groups.get(name)
        if group is not None:
            _unload(shard, group)
        shard.timers.cancel(STREAMS_DELAY, name)  # also that of a group whose creation failed
        if name in shard.misfits:
            raise CoordinatorFault(f"group {name!r} has records of two kinds of group")
        written = shard.written.get(name)
        if written is not None:
            shard.groups.put(name, restored_group(written))
        elif name in shard.written_entries:
            for record in written_records(shard, name):
                _replay_entry(shard, record)
        elif name in shard.offsets or shard.pending_offsets.of_group(name):
            shard.groups.put(name, simple_group(name, shard.now_ms))
        else:
            continue
        writes += _on_loaded(shard, name)
    return writes


def snapshot(shard: Shard) -> list[Record]:
    """The written record of every group, and all offsets in the order in which they were committed."""
    numbered = []
    for name in shard.groups.keys():  # noqa: SIM118
        numbered += [
            (stored.number, _offset_record(name, topic, partition, stored, None))
            for topic, partition, stored in shard.offsets.of_group(name)
        ]
    numbered += [
        (stored.number, _offset_record(group, topic, partition, stored, producer_id))
        for producer_id, group, topic, partition, stored in shard.pending_offsets.rows()
    ]
    offsets = [record for _, record in sorted(numbered, key=lambda row: row[0])]
    consumer = [record for name in shard.written_entries for record in written_records(shard, name)]
    return [*shard.written.values(), *consumer, *offsets]


def written_records(shard: Shard, name: str) -> list[EntryRecord]:
    """The written records of a consumer or streams group, in an order in which they can be replayed."""
    return list(shard.written_entries.get(name, {}).values())


def _offset_record(
    group: str, topic: str, partition: int, stored: StoredOffset, producer_id: int | None
) -> OffsetCommitRecord:
    times = (stored.committed_at_ms, stored.expires_at_ms)
    return OffsetCommitRecord(group, topic, partition, stored.committed, *times, producer_id)


def unload(shard: Shard) -> None:
    """The coordinator ends: answer every parked request, and everyone who waits for a write."""
    for name in shard.groups.keys():  # noqa: SIM118
        _unload(shard, shard.groups[name])


def _unload(shard: Shard, group: Group) -> None:
    """Answer every parked request NOT_COORDINATOR and forget the group; only classic groups have any."""
    if not isinstance(group, ClassicGroup):
        for member_id in group.members:
            cancel_member_timers(shard, group.name, member_id)
    else:
        answer_all_parked(shard, group, Error.NOT_COORDINATOR)
    delete_group(shard, group, Cause.UNLOADED)
    abandon(shard, group.name)

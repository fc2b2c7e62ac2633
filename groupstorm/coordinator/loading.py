"""A coordinator takes over: groups as their records say, sessions that begin anew; or gives up.

Kafka: GroupMetadataManager.replay, onLoaded, onUnloaded; OffsetMetadataManager.replay,
replayEndTransactionMarker.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.coordinator import events
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.group import ClassicGroup, Member
from groupstorm.coordinator.messages import JoinGroupResponse
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.rebalances import prepare_rebalance
from groupstorm.coordinator.records import (
    AppendCause,
    GroupMetadataRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    Record,
    TransactionEndRecord,
)
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import Cause, GroupState
from groupstorm.coordinator.subscriptions import take_subscriptions
from groupstorm.coordinator.writes import Write

#: The queue in which markers of transactions are written: they are of no group.
_NO_GROUP = ""


def load(shard: Shard, records: Iterable[Record]) -> list[Write]:
    """Everything that was written, in its order; then the sessions of all members begin."""
    for record in records:
        _replay(shard, record)
    return [write for name in shard.groups.keys() for write in _on_loaded(shard, name)]  # noqa: SIM118


def _replay(shard: Shard, record: Record) -> None:
    match record:
        case GroupMetadataRecord():
            shard.written[record.group] = record
            shard.groups.put(record.group, _group(record))
        case GroupTombstone(group):
            shard.written.pop(group, None)
            shard.groups.remove(group)
        case OffsetCommitRecord():
            _replay_offset(shard, record)
        case TransactionEndRecord(producer_id, is_commit):
            apply_transaction_end(shard, producer_id, is_commit)


def _replay_offset(shard: Shard, record: OffsetCommitRecord) -> None:
    where = (record.group, record.topic, record.partition)
    if record.committed is None:
        shard.offsets.remove(*where)
        shard.pending_offsets.remove(*where)
        return
    if record.group not in shard.groups:
        group = ClassicGroup(record.group)
        group.state_since_ms, group.committed = record.committed_at_ms, True
        shard.groups.put(record.group, group)
    number = shard.writes.next_number()
    stored = StoredOffset(record.committed, record.committed_at_ms, record.expires_at_ms, number)
    if record.producer_id is None:
        shard.offsets.put(*where, stored)
    else:
        shard.pending_offsets.put(record.producer_id, *where, stored)


def _group(record: GroupMetadataRecord) -> ClassicGroup:
    """The group of the last record: stable if it has members, whatever it was doing since."""
    group = ClassicGroup(record.group)
    group.state = GroupState.STABLE if record.roster else GroupState.EMPTY
    group.state_since_ms = record.state_since_ms
    group.generation, group.protocol_type = record.generation, record.protocol_type
    group.protocol, group.leader = record.protocol, record.leader
    for one in record.roster:
        group.add(_member(record, one), None)
    group.committed = True
    take_subscriptions(group, Compatibility.KAFKA_4_4_0)  # what was written was read once already
    return group


def _member(record: GroupMetadataRecord, one: MemberRecord) -> Member:
    member = Member(
        one.member_id,
        one.group_instance_id,
        (one.client_id, one.client_host),
        (one.session_timeout_ms, one.rebalance_timeout_ms),
        record.protocol_type or "",
        ((record.protocol or "", one.metadata),),
    )
    member.assignment = one.assignment
    return member


def _on_loaded(shard: Shard, name: str) -> list[Write]:
    group = shard.groups[name]
    shard.emit(events.GroupCreated(name, "loaded"))
    for member in group.members.values():
        shard.restart_session(group, member)
    if len(group.members) <= shard.config.max_size:
        return []
    write = prepare_rebalance(shard, group, Cause.OVER_CAPACITY, None)
    return [] if write is None else [write]


def move(shard: Shard, names: Iterable[str]) -> list[Write]:
    """These groups get another coordinator: who is parked is told, and what was written is read back."""
    writes = []
    for name in names:
        group = shard.groups.get(name)
        if group is None:
            continue
        _unload(shard, group)
        written = shard.written.get(name)
        if written is not None:
            shard.groups.put(name, _group(written))
        elif name in shard.offsets or shard.pending_offsets.of_group(name):
            shard.groups.put(name, _simple_group(shard, group))
        else:
            continue
        writes += _on_loaded(shard, name)
    return writes


def _simple_group(shard: Shard, before: ClassicGroup) -> ClassicGroup:
    """A group that only offsets speak of (OffsetMetadataManager.replay)."""
    group = ClassicGroup(before.name)
    group.state_since_ms, group.committed = shard.now_ms, True
    return group


def snapshot(shard: Shard) -> list[Record]:
    """What is written of every group, and all offsets in the order in which they were committed."""
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
    return [*shard.written.values(), *offsets]


def _offset_record(
    group: str, topic: str, partition: int, stored: StoredOffset, producer_id: int | None
) -> OffsetCommitRecord:
    times = (stored.committed_at_ms, stored.expires_at_ms)
    return OffsetCommitRecord(group, topic, partition, stored.committed, *times, producer_id)


def unload(shard: Shard) -> None:
    """The coordinator ends: nobody stays without an answer."""
    for name in shard.groups.keys():  # noqa: SIM118
        _unload(shard, shard.groups[name])


def _unload(shard: Shard, group: ClassicGroup) -> None:
    for member in group.members.values():
        refusal = JoinGroupResponse(Error.NOT_COORDINATOR, member_id=member.member_id)
        shard.answer_join(group, member, refusal)
        shard.answer_sync(group, member, Error.NOT_COORDINATOR)
    shard.delete_group(group, Cause.UNLOADED)


def end_transaction(shard: Shard, producer_id: int, is_commit: bool) -> Write:
    """The marker of a producer's transaction: its offsets count from now on, or never."""
    return Write(
        _NO_GROUP,
        [TransactionEndRecord(producer_id, is_commit)],
        AppendCause.TRANSACTION_END,
        apply=lambda: apply_transaction_end(shard, producer_id, is_commit),
    )


def apply_transaction_end(shard: Shard, producer_id: int, is_commit: bool) -> None:
    """Of an offset that was committed meanwhile outside of the transaction, the later one stays."""
    for group, topic, partition, stored in shard.pending_offsets.take(producer_id):
        present = shard.offsets.get(group, topic, partition)
        if is_commit and (present is None or stored.number > present.number):
            shard.offsets.put(group, topic, partition, stored)

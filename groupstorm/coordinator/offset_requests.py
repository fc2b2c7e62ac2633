"""OffsetCommit, TxnOffsetCommit and OffsetFetch.

Version notes
* OffsetCommit 7: group.instance.id (KIP-345). 9: GROUP_ID_NOT_FOUND where a group is not there (KIP-848).
* OffsetCommit 2-4 may say how long the offsets are kept; since 5 the broker's setting counts (KIP-211).
* OffsetFetch 7: require stable (KIP-447): wait for the writes in flight, and say of which partitions
  an offset waits for its transaction.

Kafka: OffsetMetadataManager.commitOffset, commitTransactionalOffset, fetchOffsets, fetchAllOffsets;
ClassicGroup.validateOffsetCommit.
"""

from __future__ import annotations

from groupstorm.coordinator import events
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.group import ClassicGroup
from groupstorm.coordinator.messages import (
    NO_MEMBER_ID,
    CommittedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    TxnOffsetCommit,
)
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.records import AppendCause, OffsetCommitRecord
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.writes import Write

_GROUP_ID_NOT_FOUND_SINCE = 9
_NOTHING = CommittedOffset(-1)
_NO_RETENTION = -1


def handle_commit(shard: Shard, request: OffsetCommit, answer: Answer) -> Write | None:
    """Store the offsets if the sender may; a member's commit counts as a heartbeat."""
    group = shard.groups.get(request.group)
    error = _validate(group, request)
    if error:
        shard.answer(answer, error_response(request, error))
        _tell(shard, request, error)
        return None
    if group is None:
        # Somebody who manages its partitions itself: its offsets get a group without members.
        group = shard.create_group(request.group, "offset-commit")
    if group.state in (STABLE, PREPARING_REBALANCE):
        shard.restart_session(group, group.members[request.member_id])
    if _is_kept(shard, request):
        return _store(shard, request, answer)
    results = [
        (topic, partition, NO_ERROR) for topic, offsets in request.offsets.items() for partition in offsets
    ]
    shard.writes.answer_in_turn(request, answer, OffsetCommitResponse(tuple(results)))
    return None


def handle_txn_commit(shard: Shard, request: TxnOffsetCommit, answer: Answer) -> Write | None:
    """Keep the offsets until the transaction ends; sessions do not feel it."""
    group = shard.groups.get(request.group)
    error = _validate_txn(group, request)
    if error:
        shard.answer(answer, error_response(request, error))
        _tell(shard, request, error)
        return None
    if group is None:
        shard.create_group(request.group, "offset-commit")
    return _store(shard, request, answer)


def _validate_txn(group: ClassicGroup | None, request: TxnOffsetCommit) -> Error:
    """As for OffsetCommit, but producers that name no member are believed, and may commit at any time:
    older versions had no place to name one."""
    outside = request.generation < 0
    if group is None:
        return NO_ERROR if outside else Error.ILLEGAL_GENERATION
    nameless = request.member_id == NO_MEMBER_ID and request.group_instance_id is None
    if outside and (nameless or group.state is EMPTY):
        return NO_ERROR
    error = group.validate(request.member_id, request.group_instance_id)
    return error or (NO_ERROR if request.generation == group.generation else Error.ILLEGAL_GENERATION)


def _validate(group: ClassicGroup | None, request: OffsetCommit) -> Error:
    """Members of the present generation may commit, except between join and sync; outsiders while
    the group is empty, or not there yet."""
    outside = request.generation < 0
    if group is None:
        known = request.version >= _GROUP_ID_NOT_FOUND_SINCE
        refused = Error.GROUP_ID_NOT_FOUND if known else Error.ILLEGAL_GENERATION
        return NO_ERROR if outside else refused
    if outside and group.state is EMPTY:
        return NO_ERROR
    if outside and request.member_id == NO_MEMBER_ID and request.group_instance_id is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if not error and request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if not error and group.state is COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return error


def _store(shard: Shard, request: OffsetCommit | TxnOffsetCommit, answer: Answer) -> Write | None:
    """Write what can be stored; a partition whose metadata is too long is refused alone."""
    limit = shard.config.offset_metadata_max_bytes
    written: list[tuple[str, int, StoredOffset]] = []
    expires_at_ms = _expires_at_ms(shard, request)
    results: list[tuple[str, int, Error]] = []
    for topic, offsets in request.offsets.items():
        for partition, committed in offsets.items():
            if committed.metadata and _java_length(committed.metadata) > limit:
                results.append((topic, partition, Error.OFFSET_METADATA_TOO_LARGE))
                continue
            results.append((topic, partition, NO_ERROR))
            stored = StoredOffset(committed, shard.now_ms, expires_at_ms, shard.writes.next_number())
            written.append((topic, partition, stored))
    response = OffsetCommitResponse(tuple(results))
    first_error = NO_ERROR if len(written) == len(results) else Error.OFFSET_METADATA_TOO_LARGE
    if not written:
        shard.writes.answer_in_turn(request, answer, response)
        _tell(shard, request, first_error)
        return None

    def on_written(error: Error | None) -> None:
        if error is None:
            shard.answer(answer, response)
        elif producer_id is None and shard.config.compatibility is Compatibility.KAFKA_4_3_1:
            shard.offsets.take_back(request.group, written)
        _tell(shard, request, error or first_error)

    def apply() -> None:
        for topic, partition, stored in written:
            if producer_id is None:
                shard.offsets.put(request.group, topic, partition, stored)
            else:
                shard.pending_offsets.put(producer_id, request.group, topic, partition, stored)

    producer_id = request.producer_id if isinstance(request, TxnOffsetCommit) else None
    cause = AppendCause.OFFSET_COMMIT if producer_id is None else AppendCause.TXN_OFFSET_COMMIT
    records = [
        OffsetCommitRecord(
            request.group, topic, number, row.committed, row.committed_at_ms, row.expires_at_ms, producer_id
        )
        for topic, number, row in written
    ]
    return Write(request.group, records, cause, on_written, apply)


def _is_kept(shard: Shard, request: OffsetCommit | TxnOffsetCommit) -> bool:
    """Members' offsets are not where the coordinator's driver knows their positions."""
    return shard.keeps_offsets or request.generation < 0


def _expires_at_ms(shard: Shard, request: OffsetCommit | TxnOffsetCommit) -> int | None:
    if isinstance(request, TxnOffsetCommit) or request.retention_ms == _NO_RETENTION:
        return None
    return shard.now_ms + request.retention_ms


def _java_length(text: str) -> int:
    """``String.length()``: UTF-16 code units (Kafka compares them with a number of bytes)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


def _tell(shard: Shard, request: OffsetCommit | TxnOffsetCommit, error: Error) -> None:
    if not _is_kept(shard, request):
        return
    partitions: list[str] = []
    positions: list[int] = []
    for topic, offsets in request.offsets.items():
        partitions += [f"{topic}-{number}" for number in offsets]
        positions += [committed.offset for committed in offsets.values()]
    shard.emit(
        events.OffsetsCommitted(
            request.group,
            request.member_id or None,
            request.generation,
            tuple(partitions),
            tuple(positions),
            error.name if error else None,
        )
    )


def handle_fetch(shard: Shard, request: OffsetFetch, answer: Answer) -> None:
    """What is committed; -1 where nothing is, also for groups that do not exist.

    With ``require_stable`` the answer waits for the group's writes in flight and tells what was
    committed when the request came.
    """
    known = shard.committed_group(request.group) is not None
    if request.topics is None:
        offsets = shard.offsets
        rows = (
            offsets.of_group(request.group) if request.require_stable else offsets.read_group(request.group)
        )
        found = [
            (topic, partition, *_found(shard, request, topic, partition, stored))
            for topic, partition, stored in (rows if known else ())
        ]
    else:
        found = [
            (topic, partition, *_found(shard, request, topic, partition, stored))
            for topic, partitions in request.topics.items()
            for partition in partitions
            for stored in (shard.offsets.get(request.group, topic, partition) if known else None,)
        ]
    response = OffsetFetchResponse(NO_ERROR, tuple(found))
    if request.require_stable:
        shard.writes.answer_in_turn(request, answer, response)
    else:
        shard.answer(answer, response)


def _found(
    shard: Shard, request: OffsetFetch, topic: str, partition: int, stored: StoredOffset | None
) -> tuple[CommittedOffset, Error]:
    if request.require_stable and shard.pending_offsets.is_pending(request.group, topic, partition):
        return _NOTHING, Error.UNSTABLE_OFFSET_COMMIT
    return (_NOTHING if stored is None else stored.committed), NO_ERROR

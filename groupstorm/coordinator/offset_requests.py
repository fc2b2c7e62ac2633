"""OffsetCommit, TxnOffsetCommit and OffsetFetch; and the end of a transaction with offsets.

Version notes
* OffsetCommit 7: group.instance.id (KIP-345). 9: GROUP_ID_NOT_FOUND if the group does not exist (KIP-848).
* OffsetCommit 2-4 may say how long the offsets are kept; since 5 the broker's setting counts (KIP-211).
* OffsetFetch 7: require stable (KIP-447): wait for the writes under way, and name the partitions of
  which an offset waits for its transaction.

Kafka: OffsetMetadataManager.commitOffset, commitTransactionalOffset, fetchOffsets, fetchAllOffsets,
replayEndTransactionMarker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from groupstorm.coordinator.classic.changes import create_group, restart_session
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.messages import (
    CommittedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    TxnOffsetCommit,
)
from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.offset_rules import (
    Commit,
    validate_commit,
    validate_fetch,
    validate_modern_commit,
)
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.records import AppendCause, OffsetCommitRecord, TransactionEndRecord
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.writes import answer_in_turn
from groupstorm.trace.events import coordinator as events

_NOTHING = CommittedOffset(-1)
_NO_RETENTION = -1
#: The name under which markers of transactions queue: they are of no group.
_NO_GROUP: Final = ""


def handle_commit(shard: Shard, request: Commit, reply: PendingReply) -> Write | None:
    """Store the offsets if the sender may commit, or keep them until the producer's transaction ends."""
    error = _accept_commit(shard, request)
    if error is not NO_ERROR:
        _refuse(shard, request, reply, error)
        return None
    if request.group not in shard.groups:
        # The sender manages its partitions itself: its offsets get a group without members.
        create_group(shard, request.group, "offset-commit")
    return _store(shard, request, reply)


def check_commit(shard: Shard, request: OffsetCommit, reply: PendingReply) -> None:
    """Handle a member's commit but for the offsets: they are neither stored nor emitted."""
    error = _accept_commit(shard, request)
    response = error_response(request, error)
    if error is NO_ERROR:
        answer_in_turn(shard, request, reply, response)
    else:
        shard.answer(reply, response)


def _accept_commit(shard: Shard, request: Commit) -> Error:
    """The error of a commit. An accepted commit of a member counts as a heartbeat, a producer's does not."""
    in_transaction = type(request) is TxnOffsetCommit
    if in_transaction and not request.group:
        return Error.INVALID_GROUP_ID
    group = shard.groups.get(request.group)
    if group is not None and not isinstance(group, ClassicGroup):
        modern = cast("ModernGroup[Any, Any]", group)
        return validate_modern_commit(modern, shard.topics, request, in_transaction)
    error = validate_commit(group, request, in_transaction)
    if in_transaction or error is not NO_ERROR or group is None:
        return error
    if group.state in (STABLE, PREPARING_REBALANCE):
        restart_session(shard, group, group.members[request.member_id])
    return error


def _store(shard: Shard, request: Commit, reply: PendingReply) -> Write | None:
    """Write the offsets. A partition whose metadata is too long is refused, the others are written."""
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
        answer_in_turn(shard, request, reply, response)
        _emit_commit(shard, request, first_error)
        return None

    def on_written(error: Error | None) -> None:
        if error is None:
            shard.answer(reply, response)
        elif producer_id is None and shard.config.compatibility.is_to_the_letter:
            shard.offsets.take_back(request.group, written)
        _emit_commit(shard, request, error or first_error)

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


def _expires_at_ms(shard: Shard, request: Commit) -> int | None:
    if isinstance(request, TxnOffsetCommit) or request.retention_ms == _NO_RETENTION:
        return None
    return shard.now_ms + request.retention_ms


def _java_length(text: str) -> int:
    """``String.length()``: UTF-16 code units (Kafka compares them with a number of bytes)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


def _refuse(shard: Shard, request: Commit, reply: PendingReply, error: Error) -> None:
    shard.answer(reply, error_response(request, error))
    _emit_commit(shard, request, error)


def _emit_commit(shard: Shard, request: Commit, error: Error) -> None:
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


def handle_fetch(shard: Shard, request: OffsetFetch, reply: PendingReply) -> None:
    """Answer with the committed offsets; -1 for a partition without one, and for groups that do not exist.

    With ``require_stable`` the answer waits for the group's writes under way. It has the offsets that were
    committed when the request came.
    """
    group = shard.committed_group(request.group)
    if isinstance(group, ModernGroup):
        error = validate_fetch(group, request)
        if error:
            shard.answer(reply, error_response(request, error))
            return
    rows: Iterable[tuple[str, int, StoredOffset | None]] = ()
    if request.topics is not None:
        known = group is not None and request.group in shard.offsets
        rows = [
            (topic, partition, shard.offsets.get(request.group, topic, partition) if known else None)
            for topic, partitions in request.topics.items()
            for partition in partitions
        ]
    elif group is not None:
        offsets = shard.offsets
        rows = (
            offsets.of_group(request.group) if request.require_stable else offsets.read_group(request.group)
        )
    waiting = frozenset(shard.pending_offsets.of_group(request.group)) if request.require_stable else ()
    found = [
        (topic, partition, _NOTHING, Error.UNSTABLE_OFFSET_COMMIT)
        if (topic, partition) in waiting
        else (topic, partition, _NOTHING if stored is None else stored.committed, NO_ERROR)
        for topic, partition, stored in rows
    ]
    response = OffsetFetchResponse(NO_ERROR, tuple(found))
    if request.require_stable:
        answer_in_turn(shard, request, reply, response)
    else:
        shard.answer(reply, response)


# the end of a transaction


def end_transaction(shard: Shard, producer_id: int, is_commit: bool) -> Write:
    """Write the marker of a producer's transaction: the pending offsets count from now on, or never."""
    return Write(
        _NO_GROUP,
        [TransactionEndRecord(producer_id, is_commit)],
        AppendCause.TRANSACTION_END,
        apply=lambda: apply_transaction_end(shard, producer_id, is_commit),
    )


def apply_transaction_end(shard: Shard, producer_id: int, is_commit: bool) -> None:
    """Take over the pending offsets. If an offset was committed outside of the transaction too, the later
    commit stays."""
    for group, topic, partition, stored in shard.pending_offsets.take(producer_id):
        present = shard.offsets.get(group, topic, partition)
        if is_commit and (present is None or stored.number > present.number):
            shard.offsets.put(group, topic, partition, stored)

"""OffsetCommit, TxnOffsetCommit and OffsetFetch; the end of a transaction with offsets; and the rules for the
offsets of groups: who may commit and fetch them, and when they expire.

Version notes
* OffsetCommit 7: group.instance.id (KIP-345). 9: GROUP_ID_NOT_FOUND if the group does not exist (KIP-848).
* OffsetCommit 2-4 may say how long the offsets are kept; since 5 the broker's setting counts (KIP-211).
* OffsetFetch 7: require stable (KIP-447): wait for the writes under way, and name the partitions of
  which an offset waits for its transaction.

Kafka: OffsetMetadataManager.commitOffset, commitTransactionalOffset, fetchOffsets, fetchAllOffsets,
replayEndTransactionMarker; validateOffsetCommit of ClassicGroup, ConsumerGroup and StreamsGroup,
validateOffsetFetch of the latter two, CommitPartitionValidator (KIP-1251),
ClassicGroup.offsetExpirationCondition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from groupstorm.coordinator.classic.changes import create_group, restart_session
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    NO_MEMBER_ID,
    TXN_NEW_ERRORS_SINCE,
    CommittedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    TxnOffsetCommit,
)
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.records import AppendCause, OffsetCommitRecord, TransactionEndRecord
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.topics import Topics
from groupstorm.coordinator.writes import answer_in_turn
from groupstorm.trace.events import coordinator as events

#: When the retention time of an offset begins.
BaseTime = Callable[[StoredOffset], int]

#: First version of OffsetCommit that knows GROUP_ID_NOT_FOUND (KIP-848).
_GROUP_ID_NOT_FOUND_SINCE = 9


#: A commit of a member, or of a producer for its transaction.
Commit = OffsetCommit | TxnOffsetCommit


def _is_nameless(request: Commit) -> bool:
    return request.member_id == NO_MEMBER_ID and request.group_instance_id is None


def validate_commit(group: ClassicGroup | None, request: Commit, in_transaction: bool) -> Error:
    """Members of the present generation may commit, except between join and sync. Others may commit while
    the group is empty or does not exist.

    A producer that names no member is believed, and may commit at any time: older versions have no field for
    the member.
    """
    outside = request.generation < 0
    if group is None:
        since = TXN_NEW_ERRORS_SINCE if in_transaction else _GROUP_ID_NOT_FOUND_SINCE
        refused = Error.GROUP_ID_NOT_FOUND if request.version >= since else Error.ILLEGAL_GENERATION
        return NO_ERROR if outside else refused
    if outside and group.state is EMPTY:
        return NO_ERROR
    if outside and _is_nameless(request):
        return NO_ERROR if in_transaction else Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if not error and request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if not error and not in_transaction and group.state is COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return error


def expiration_base_time(group: Group, compatibility: Compatibility) -> BaseTime | None:
    """When an offset began to be unused; None if the group's offsets do not expire.

    A classic group that manages partitions: when it became empty, and while it is stable, for topics that no
    member reads any more, at the commit. Commits from outside of any group, and other groups: at the commit.
    """
    if not isinstance(group, ClassicGroup) or group.protocol_type is None:
        return lambda stored: stored.committed_at_ms
    if group.state is EMPTY:
        return lambda stored: group.state_since_ms
    knows_topics = subscribed_topics(group, compatibility) is not None
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE and knows_topics and group.state is STABLE:
        return lambda stored: stored.committed_at_ms
    return None


#: First version of OffsetCommit for members of the consumer protocol.
_MEMBER_EPOCH_SINCE = 9


def validate_modern_commit(
    group: ModernGroup[M, Any], topics: Topics, request: Commit, in_transaction: bool
) -> Error:
    """Members may commit at their epoch, and at an older one for partitions that they have had since then.
    Others may commit while the group is empty. Share groups have no committed offsets.

    A producer that names no member is believed. A wrong epoch is a wrong generation to older producers.
    """
    if not group.keeps_offsets:
        return Error.GROUP_ID_NOT_FOUND
    if request.generation < 0 and not group.members:
        return NO_ERROR
    if in_transaction and request.generation == NO_GENERATION and _is_nameless(request):
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if not in_transaction and not member.speaks_classic and request.version < _MEMBER_EPOCH_SINCE:
        return Error.UNSUPPORTED_VERSION
    error = _validate_epoch(group, member, topics, request.generation, request.offsets)
    is_told = error is not Error.STALE_MEMBER_EPOCH or request.version >= TXN_NEW_ERRORS_SINCE
    return error if is_told else Error.ILLEGAL_GENERATION


def _validate_epoch(
    group: ModernGroup[M, Any],
    member: M,
    topics: Topics,
    epoch: int,
    offsets: Mapping[str, Mapping[int, Any]],
) -> Error:
    """Fence a newer epoch always, and an older one if the member got a partition only after it."""
    stale = Error.ILLEGAL_GENERATION if member.speaks_classic else Error.STALE_MEMBER_EPOCH
    if epoch == member.epoch:
        return NO_ERROR
    if epoch > member.epoch:
        return stale
    for name, partitions in offsets.items():
        for number in partitions:
            assigned_at = group.assigned_at(member, topics, name, number)
            if assigned_at is None or epoch < assigned_at:
                return stale
    return NO_ERROR


def validate_fetch(group: ModernGroup[M, Any], request: OffsetFetch) -> Error:
    """A fetch that names a member must name its epoch, unless the group has no offsets at all."""
    if not group.keeps_offsets or (request.member_id is None and request.member_epoch < 0):
        return NO_ERROR
    member = None if request.member_id is None else group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if request.member_epoch == member.epoch:
        return NO_ERROR
    return Error.ILLEGAL_GENERATION if member.speaks_classic else Error.STALE_MEMBER_EPOCH


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

"""ListOffsets, DeleteRecords and OffsetForLeaderEpoch: the offsets at which a partition's log begins and
ends.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import EACH_PARTITION, Api, Call, Done
from groupstorm.broker.apis.resources import NO_EPOCH, Found, answer_partitions, find_log
from groupstorm.broker.authorization import Operation
from groupstorm.broker.changes import RecordsDeleted
from groupstorm.broker.log.columns import NO_TIMESTAMP
from groupstorm.broker.log.partition import (
    LEADER_EPOCH,
    NO_OFFSET,
    PartitionLog,
    TimedOffset,
)
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns

_LATEST = -1
_EARLIEST = -2
_MAX_TIMESTAMP = -3
_EARLIEST_LOCAL = -4
_LATEST_TIERED = -5
_EARLIEST_PENDING_UPLOAD = -6
_READ_COMMITTED = 1

#: The version with which a special timestamp came.
_FIRST_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_NONE_FOUND = TimedOffset(NO_TIMESTAMP, NO_OFFSET)


def list_offsets(state: BrokerState, call: Call) -> Turns[Done]:
    """ListOffsets (key 2), versions 1-11.

    * Timestamps: -1 latest, -2 earliest; v7: -3 the highest timestamp (KIP-734); v8: -4 earliest local;
      v9: -5 latest tiered; v11: -6 earliest not yet uploaded. Nothing is tiered here: -4 and -6 are the
      earliest, -5 is none. A special timestamp above the version gets UNSUPPORTED_VERSION, as in Kafka.
    * v2: isolation level: the latest offset of committed reads is the last stable one. v4: the leader epoch
      is checked and answered. v10: a timeout, which matters only to tiered storage.
    * A time is answered with the first record of that time or later, see `PartitionLog.at_timestamp`.
    """
    return answer_partitions(state, call, "ListOffsetsTopicResponse", _listed_partition)


def _listed_partition(state: BrokerState, call: Call, topic: Found, asked: Any) -> Any:
    error, found = _look_up(state, call, asked, topic)
    return call.types.make(
        "ListOffsetsPartitionResponse",
        partition_index=asked.partition_index,
        error_code=error,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=NO_EPOCH if found.offset == NO_OFFSET else LEADER_EPOCH,
    )


def _look_up(state: BrokerState, call: Call, asked: Any, topic: Found) -> tuple[Error, TimedOffset]:
    epoch = getattr(asked, "current_leader_epoch", NO_EPOCH)
    log, error = find_log(call, topic, asked.partition_index, epoch)
    if log is None:
        return error, _NONE_FOUND
    if asked.timestamp < 0 and call.version < _FIRST_VERSION.get(asked.timestamp, call.version + 1):
        return Error.UNSUPPORTED_VERSION, _NONE_FOUND
    committed_only = getattr(call.message, "isolation_level", 0) == _READ_COMMITTED
    try:
        return Error.NONE, _find(asked.timestamp, log, committed_only)
    except OSError:
        return Error.KAFKA_STORAGE_ERROR, _NONE_FOUND


def _find(timestamp_ms: int, log: PartitionLog, committed_only: bool) -> TimedOffset:
    """Raises OSError."""
    end_offset = log.last_stable_offset if committed_only else log.end_offset
    if timestamp_ms >= 0 or timestamp_ms == _MAX_TIMESTAMP:
        found = log.at_timestamp(timestamp_ms) if timestamp_ms >= 0 else log.at_max_timestamp()
        return found if found.offset < end_offset else _NONE_FOUND
    if timestamp_ms == _LATEST_TIERED:
        return _NONE_FOUND
    return TimedOffset(NO_TIMESTAMP, end_offset if timestamp_ms == _LATEST else log.start_offset)


_HIGH_WATERMARK = -1
_NO_OFFSET = -1


def delete_records(state: BrokerState, call: Call) -> Turns[Done]:
    """DeleteRecords (key 21), versions 0-2. Offset -1 stands for the high watermark (KIP-107)."""
    return answer_partitions(state, call, "DeleteRecordsTopicResult", _deleted_partition)


def _deleted_partition(state: BrokerState, call: Call, found: Found, asked: Any) -> Any:
    error, low_watermark = _delete(state, call, found, asked)
    return call.types.make(
        "DeleteRecordsPartitionResult",
        partition_index=asked.partition_index,
        low_watermark=low_watermark,
        error_code=error,
    )


def _delete(state: BrokerState, call: Call, found: Found, asked: Any) -> tuple[Error, int]:
    """UnifiedLog.maybeIncrementLogStartOffset, Partition.deleteRecordsOnLeader."""
    topic, _ = found
    log, error = find_log(call, found, asked.partition_index)
    if topic is None or log is None:
        return error, _NO_OFFSET
    if topic.settings.is_compacted and not topic.settings.is_deleted:
        return Error.POLICY_VIOLATION, _NO_OFFSET
    offset = log.end_offset if asked.offset == _HIGH_WATERMARK else asked.offset
    if not 0 <= offset <= log.end_offset:
        return Error.OFFSET_OUT_OF_RANGE, _NO_OFFSET
    begins_at = max(offset, log.start_offset)
    state.carry_out(RecordsDeleted(topic.name, asked.partition_index, begins_at))
    return Error.NONE, log.start_offset


def offset_for_leader_epoch(state: BrokerState, call: Call) -> Turns[Done]:
    """OffsetForLeaderEpoch (key 23), versions 2-4: where a leader's epoch ended (KIP-101, KIP-320).

    Leaders never change here: there is one epoch, which ends at the end of the log, and no later one.
    """
    return answer_partitions(state, call, "OffsetForLeaderTopicResult", _epoch_partition, "topic")


def _epoch_partition(state: BrokerState, call: Call, found: Found, asked: Any) -> Any:
    log, error = find_log(call, found, asked.partition, asked.current_leader_epoch)
    is_known = error is Error.NONE and log is not None and asked.leader_epoch == LEADER_EPOCH
    return call.types.make(
        "EpochEndOffset",
        error_code=error,
        partition=asked.partition,
        leader_epoch=LEADER_EPOCH if is_known else NO_EPOCH,
        end_offset=log.end_offset if log is not None and is_known else NO_OFFSET,
    )


APIS = (
    Api(
        2, "ListOffsets", 1, 11, list_offsets, older=(6, 9), on_topics=Operation.DESCRIBE,
        errors=EACH_PARTITION,
    ),
    Api(21, "DeleteRecords", 0, 2, delete_records, on_topics=Operation.DELETE, errors=EACH_PARTITION),
    Api(
        23, "OffsetForLeaderEpoch", 2, 4, offset_for_leader_epoch, on_topics=Operation.DESCRIBE,
        on_all_topics=Operation.CLUSTER_ACTION, errors=EACH_PARTITION,
    ),
)  # fmt: skip

"""ListOffsets (key 2), versions 1-11.

* Timestamps: -1 latest, -2 earliest; v7: -3 the highest timestamp (KIP-734); v8: -4 earliest local;
  v9: -5 latest tiered; v11: -6 earliest not yet uploaded. Nothing is tiered here: -4 and -6 are the
  earliest, -5 is none. A special timestamp above the version gets UNSUPPORTED_VERSION, as in Kafka.
* v2: isolation level: the latest offset of committed reads is the last stable one. v4: the leader epoch is
  checked and answered. v10: a timeout, which matters only to tiered storage.
* A time is answered with the first record of that time or later, see `PartitionLog.at_timestamp`.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import EACH_PARTITION, Api, BrokerState, Call, Done
from groupstorm.broker.apis.lookup import NO_EPOCH, Found, answer_partitions, find_log
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.log.columns import NO_TIMESTAMP
from groupstorm.broker.log.partition import (
    LEADER_EPOCH,
    NO_OFFSET,
    PartitionLog,
    TimedOffset,
)
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


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    return answer_partitions(state, call, "ListOffsetsTopicResponse", _partition)


API = Api(2, "ListOffsets", 1, 11, handle, older=(6, 9), on_topics=Operation.DESCRIBE, errors=EACH_PARTITION)


def _partition(state: BrokerState, call: Call, topic: Found, asked: Any) -> Any:
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

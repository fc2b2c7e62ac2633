"""ListOffsets (key 2), versions 1-11.

* Timestamps: -1 latest, -2 earliest; v7: -3 the highest timestamp (KIP-734); v8: -4 earliest local;
  v9: -5 latest tiered; v11: -6 earliest not yet uploaded. Nothing is tiered here: -4 and -6 are the
  earliest, -5 is none. A special timestamp above the version gets UNSUPPORTED_VERSION, as in Kafka.
* A time is looked up by the batches' maximum timestamps, see `PartitionLog.at_timestamp`.
* v4: the leader epoch is checked and answered.
"""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done
from groupstorm.coordinator.server.log.partition import (
    LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    PartitionLog,
    TimedOffset,
)

_LATEST = -1
_EARLIEST = -2
_MAX_TIMESTAMP = -3
_EARLIEST_LOCAL = -4
_LATEST_TIERED = -5
_EARLIEST_PENDING_UPLOAD = -6
_NO_EPOCH = -1

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


def handle(state: BrokerState, call: Call) -> Done:
    topics = tuple(
        call.types.make(
            "ListOffsetsTopicResponse",
            name=topic.name,
            partitions=tuple(
                _partition(call, partition, state.topics.partition(topic.name, partition.partition_index))
                for partition in topic.partitions
            ),
        )
        for topic in call.message.topics
    )
    return Done(call.types.response(topics=topics))


API = Api(2, "ListOffsets", 1, 11, handle)


def _partition(call: Call, asked: Any, log: PartitionLog | None) -> Any:
    error, found = _look_up(call.version, asked, log)
    return call.types.make(
        "ListOffsetsPartitionResponse",
        partition_index=asked.partition_index,
        error_code=error,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=_NO_EPOCH if found.offset == NO_OFFSET else LEADER_EPOCH,
    )


def _look_up(version: int, asked: Any, log: PartitionLog | None) -> tuple[Error, TimedOffset]:
    if log is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION, _NONE_FOUND
    epoch = getattr(asked, "current_leader_epoch", _NO_EPOCH)
    if epoch not in (_NO_EPOCH, LEADER_EPOCH):
        error = Error.UNKNOWN_LEADER_EPOCH if epoch > LEADER_EPOCH else Error.FENCED_LEADER_EPOCH
        return error, _NONE_FOUND
    if asked.timestamp < 0 and version < _FIRST_VERSION.get(asked.timestamp, version + 1):
        return Error.UNSUPPORTED_VERSION, _NONE_FOUND
    return Error.NONE, _find(asked.timestamp, log)


def _find(timestamp_ms: int, log: PartitionLog) -> TimedOffset:
    if timestamp_ms >= 0:
        return log.at_timestamp(timestamp_ms)
    if timestamp_ms == _MAX_TIMESTAMP:
        return log.at_max_timestamp()
    if timestamp_ms == _LATEST_TIERED:
        return _NONE_FOUND
    return TimedOffset(NO_TIMESTAMP, log.end_offset if timestamp_ms == _LATEST else log.start_offset)

"""DeleteRecords (key 21), versions 0-2. Offset -1 stands for the high watermark (KIP-107)."""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import EACH_PARTITION, Api, BrokerState, Call, Done
from groupstorm.broker.apis.lookup import Found, answer_partitions, find_log
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns

_HIGH_WATERMARK = -1
_NO_OFFSET = -1


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    return answer_partitions(state, call, "DeleteRecordsTopicResult", _partition)


API = Api(21, "DeleteRecords", 0, 2, handle, on_topics=Operation.DELETE, errors=EACH_PARTITION)


def _partition(state: BrokerState, call: Call, found: Found, asked: Any) -> Any:
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
    state.delete_records(topic, asked.partition_index, offset)
    return Error.NONE, log.start_offset

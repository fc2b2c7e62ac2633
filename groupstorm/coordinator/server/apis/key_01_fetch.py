"""Fetch (key 1), versions 4-18.

* v4: isolation level; nothing is transactional here, so that the last stable offset is the high
  watermark. v5: log start offset. v7: fetch sessions (KIP-227): none is ever granted, session id 0,
  which clients understand as a full fetch every time. v9: the leader epoch is checked. v12: flexible.
  v13: topic ids instead of names (KIP-516). v15-18: fields for replicas and new leaders.
* It waits for min_bytes at most max_wait_ms (DelayedFetch); an error in any partition answers at once.
* Records of a partition without any are empty, never null: librdkafka rejects null (KAFKA-18646).
* The first batch of a response comes whatever the limits are (KIP-74).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done, Wait, milliseconds
from groupstorm.coordinator.server.apis.lookup import find_topic, same_topic
from groupstorm.coordinator.server.log.partition import LEADER_EPOCH, NO_OFFSET, PartitionLog
from groupstorm.coordinator.server.log.topics import Topic

_NO_SESSION = 0
_READ_COMMITTED = 1
_NO_EPOCH = -1
_NO_REPLICA = -1


class _Asked(NamedTuple):
    """One partition of the request: where to read, or why not."""

    topic_of_request: Any
    partition: Any
    log: PartitionLog | None
    error: Error


def handle(state: BrokerState, call: Call) -> Done | Wait:
    message = call.message
    if getattr(message, "session_id", _NO_SESSION) != _NO_SESSION:
        return Done(
            call.types.response(
                error_code=Error.FETCH_SESSION_ID_NOT_FOUND, session_id=_NO_SESSION, responses=()
            )
        )
    asked = [
        _ask(topic, error, topic_of_request, partition)
        for topic_of_request in message.topics
        for topic, error in (find_topic(state.topics, topic_of_request, "topic"),)
        for partition in topic_of_request.partitions
    ]
    max_bytes = min(message.max_bytes, state.config.fetch_max_bytes)
    max_wait_ms = milliseconds(message.max_wait)

    def is_ready() -> bool:
        return _is_ready(asked, message.min_bytes)

    def finish() -> Any:
        return _response(call, asked, max_bytes)

    if max_wait_ms <= 0 or not asked or is_ready():
        return Done(finish())
    logs = [one.log for one in asked if one.log is not None]
    return Wait(call.now_ms + max_wait_ms, logs, is_ready, finish)


API = Api(1, "Fetch", 4, 18, handle)


def _ask(topic: Topic | None, error: Error, topic_of_request: Any, partition: Any) -> _Asked:
    if topic is None:
        return _Asked(topic_of_request, partition, None, error)
    log = topic.partition(partition.partition)
    epoch = getattr(partition, "current_leader_epoch", _NO_EPOCH)
    if log is None:
        return _Asked(topic_of_request, partition, None, Error.UNKNOWN_TOPIC_OR_PARTITION)
    if epoch not in (_NO_EPOCH, LEADER_EPOCH):
        error = Error.UNKNOWN_LEADER_EPOCH if epoch > LEADER_EPOCH else Error.FENCED_LEADER_EPOCH
        return _Asked(topic_of_request, partition, log, error)
    return _Asked(topic_of_request, partition, log, Error.NONE)


def _error(asked: _Asked) -> Error:
    if asked.error is not Error.NONE or asked.log is None:
        return asked.error
    # asked for again whenever it is read: retention may have moved the start meanwhile
    return Error.NONE if asked.log.has_offset(asked.partition.fetch_offset) else Error.OFFSET_OUT_OF_RANGE


def _is_ready(asked: list[_Asked], min_bytes: int) -> bool:
    available = 0
    for one in asked:
        if _error(one) is not Error.NONE or one.log is None:
            return True
        available += one.log.readable_bytes(one.partition.fetch_offset, one.partition.partition_max_bytes)
        if available >= min_bytes:
            return True
    return available >= min_bytes


def _response(call: Call, asked: list[_Asked], max_bytes: int) -> Any:
    topics: dict[int, list[Any]] = {id(topic): [] for topic in call.message.topics}
    left = max_bytes
    anything = False
    for one in asked:
        error = _error(one)
        records: list[bytes] = []
        if error is Error.NONE and one.log is not None:
            limit = min(one.partition.partition_max_bytes, left)
            records = one.log.read(one.partition.fetch_offset, limit, at_least_one=not anything)
        data = b"".join(records)
        anything = anything or bool(data)
        left = max(0, left - len(data))
        topics[id(one.topic_of_request)].append(_partition(call, one, error, data))
    responses = tuple(
        call.types.make(
            "FetchableTopicResponse", partitions=tuple(topics[id(topic)]), **same_topic(topic, "topic")
        )
        for topic in call.message.topics
    )
    return call.types.response(error_code=Error.NONE, session_id=_NO_SESSION, responses=responses)


def _partition(call: Call, asked: _Asked, error: Error, records: bytes) -> Any:
    log = asked.log if error is Error.NONE else None
    return call.types.make(
        "PartitionData",
        partition_index=asked.partition.partition,
        error_code=error,
        high_watermark=log.end_offset if log is not None else NO_OFFSET,
        last_stable_offset=log.end_offset if log is not None else NO_OFFSET,
        log_start_offset=log.start_offset if log is not None else NO_OFFSET,
        aborted_transactions=() if call.message.isolation_level == _READ_COMMITTED else None,
        preferred_read_replica=_NO_REPLICA,
        records=records,
    )

"""Produce (key 0), versions 3-13, advertised from 0 (see ApiVersions).

* v3: record batches of magic 2, one per partition. v7: zstd. v8: an error message per partition.
  v13: topic ids instead of names.
* acks=0 has no response; where something failed Kafka closes the connection, which is the only way to
  tell such a producer that its metadata is stale.
* acks=-1 and 1 are the same with one replica.
* Batches are checked (magic, length, crc32c, sequence of idempotent producers) and never decoded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done, NoAnswer
from groupstorm.coordinator.server.apis.lookup import find_topic, same_topic
from groupstorm.coordinator.server.log.batches import BatchError, parse_produced
from groupstorm.coordinator.server.log.partition import NO_OFFSET
from groupstorm.coordinator.server.log.topics import Topic

_ACKS = (-1, 0, 1)


class _Written(NamedTuple):
    error: Error
    base_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    sentence: str | None = None


def handle(state: BrokerState, call: Call) -> Done | NoAnswer:
    message = call.message
    errors: set[Error] = set()
    responses = []
    for asked in message.topic_data:
        topic, error = find_topic(state.topics, asked)
        written = []
        for partition in asked.partition_data:
            result = _write(state, call, topic, error, partition)
            errors.add(result.error)
            written.append(_partition_response(call, partition.index, result))
        responses.append(
            call.types.make("TopicProduceResponse", partition_responses=tuple(written), **same_topic(asked))
        )
    if message.acks == 0:
        failed = sorted(error.name for error in errors if error is not Error.NONE)
        return NoAnswer(f"a producer with acks=0 met {', '.join(failed)}" if failed else None)
    return Done(call.types.response(responses=tuple(responses)))


API = Api(0, "Produce", 3, 13, handle, advertised_min_version=0)


def _write(state: BrokerState, call: Call, topic: Topic | None, error: Error, partition: Any) -> _Written:
    if call.message.transactional_id is not None:
        return _Written(Error.INVALID_TXN_STATE, sentence="transactions are not emulated")
    if topic is None:
        return _Written(error)
    log = topic.partition(partition.index)
    if log is None:
        return _Written(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if call.message.acks not in _ACKS:
        return _Written(Error.INVALID_REQUIRED_ACKS)
    try:
        batch = parse_produced(partition.records, call.version, state.config.message_max_bytes)
        base_offset = log.append(batch)
    except BatchError as problem:
        return _Written(problem.error, sentence=str(problem))
    state.appended.append(log)
    return _Written(Error.NONE, base_offset, log.start_offset)


def _partition_response(call: Call, index: int, written: _Written) -> Any:
    return call.types.make(
        "PartitionProduceResponse",
        index=index,
        error_code=written.error,
        base_offset=written.base_offset,
        log_append_time=None,  # message.timestamp.type=CreateTime
        log_start_offset=written.log_start_offset,
        record_errors=(),
        error_message=written.sentence,
    )

"""Produce (key 0), versions 3-13, advertised from 0 (see ApiVersions).

* v3: record batches of magic 2, one per partition. v7: zstd. v8: an error message per partition, and one per
  refused record (KIP-467).
  v12: producers of transaction version 2 add partitions to their transaction by writing to them (KIP-890).
  v13: topic ids instead of names.
* acks=0 has no response. If something fails, Kafka closes the connection: only so does such a producer learn
  that its metadata is stale.
* acks=-1 and 1 are the same: replicas are never behind. min.insync.replicas above the number of replicas
  is NOT_ENOUGH_REPLICAS for acks=-1.
* Transactional batches must belong to the producer's open transaction (KIP-98, KIP-890).
* A producer needs WRITE on each topic, and for transactional records on its transactional id.
* A producer above its quota is answered at once, with the time for which its connection is muted (KIP-219).
* Batches are checked (magic, length, crc32c, sequence of idempotent producers). Only the checks of
  `check_records` look at records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api, Call, Done, NoAnswer, timestamp
from groupstorm.broker.apis.resources import error_without, find_log, find_topic, same_topic
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.log.batches import (
    Batch,
    BatchError,
    RecordError,
    check_records,
    parse_produced,
    says_transactional,
    stamped,
)
from groupstorm.broker.log.partition import NO_OFFSET
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.quotas import PRODUCER_BYTE_RATE
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.turns import Turns, in_turns

_ALL = -1
_ACKS = (_ALL, 0, 1)
_FIRST_WITH_RECORD_ERRORS = 8
#: KIP-890: TRANSACTION_ABORTABLE is known, and partitions are added by writing.
_FIRST_TRANSACTION_ABORTABLE = 11
_FIRST_ADDING_PARTITIONS = 12


class _Written(NamedTuple):
    error: Error
    base_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    sentence: str | None = None
    log_append_time_ms: int | None = None
    record_errors: tuple[RecordError, ...] = ()


def produce(state: BrokerState, call: Call) -> Turns[Done | NoAnswer]:
    message = call.message
    errors: set[Error] = set()
    refused = yield from _transaction_error(state, call)
    responses = []
    for asked in message.topic_data:
        written = []
        for partition in asked.partition_data:
            topic, error = find_topic(state, call, asked) if refused is Error.NONE else (None, refused)
            if topic is not None and topic.is_internal:
                topic, error = None, Error.INVALID_TOPIC_EXCEPTION  # ReplicaManager.appendRecords
            result = _write(state, call, topic, error, partition)
            errors.add(result.error)
            written.append(_partition_response(call, partition.index, result))
            yield 5
        responses.append(
            call.types.make("TopicProduceResponse", partition_responses=tuple(written), **same_topic(asked))
        )
    throttle_ms = state.quotas.record(PRODUCER_BYTE_RATE, call.client, call.size_bytes, state.now_ms)
    if message.acks == 0:
        failed = sorted(error.name for error in errors if error is not Error.NONE)
        return NoAnswer(f"a producer with acks=0 met {', '.join(failed)}" if failed else None, throttle_ms)
    return Done(call.types.response(responses=tuple(responses), throttle_time=throttle_ms * MILLISECOND))


PRODUCE = Api(
    0, "Produce", 3, 13, produce, advertised_min_version=0, older=(9, 11), on_topics=Operation.WRITE,
    errors={"topic_data.partition_data": "responses.partition_responses"},
)  # fmt: skip


def _transaction_error(state: BrokerState, call: Call) -> Turns[Error]:
    """The error of a request with transactional records whose producer may not use its transactional id."""
    if state.authorizer is None:
        return Error.NONE
    said = yield from in_turns(
        says_transactional(partition.records)
        for topic in call.message.topic_data
        for partition in topic.partition_data
    )
    if not any(said):
        return Error.NONE
    name = call.message.transactional_id
    if name is None:
        return Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return error_without(state, call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)


def _write(state: BrokerState, call: Call, topic: Topic | None, error: Error, partition: Any) -> _Written:
    log, error = find_log(call, (topic, error), partition.index)
    if topic is None or log is None:
        return _Written(error)
    if call.message.acks not in _ACKS:
        return _Written(Error.INVALID_REQUIRED_ACKS)
    if call.message.acks == _ALL and log.settings.min_insync_replicas > topic.replication_factor:
        return _Written(Error.NOT_ENOUGH_REPLICAS)
    try:
        batch = parse_produced(partition.records, call.version, log.settings.max_message_bytes)
        if batch.is_transactional:
            _check_transaction(state, call, batch, (topic.name, partition.index))
        check_records(batch, log.settings, f"{topic.name}-{partition.index}", call.now_ms)
        if log.settings.log_append_time:
            batch = stamped(batch, call.now_ms)
        appended = log.append(batch)
    except BatchError as problem:
        return _Written(problem.error, sentence=str(problem), record_errors=problem.record_errors)
    state.note_append(topic, partition.index, appended)
    log_append_time_ms = call.now_ms if log.settings.log_append_time else None
    return _Written(Error.NONE, appended.base_offset, log.start_offset, None, log_append_time_ms)


def _check_transaction(state: BrokerState, call: Call, batch: Batch, partition: tuple[str, int]) -> None:
    """Raises BatchError if the partition is not part of the producer's transaction."""
    transactional_id = call.message.transactional_id
    if transactional_id is None:
        raise BatchError(Error.INVALID_RECORD, "transactional records come with a transactional id")
    who = (transactional_id, batch.producer_id, batch.producer_epoch)
    if call.version >= _FIRST_ADDING_PARTITIONS:
        error = state.transactions.add_partitions(*who, (partition,), call.now_ms)
        error = Error.INVALID_PRODUCER_EPOCH if error is Error.PRODUCER_FENCED else error
    else:
        error = state.transactions.verify(*who, partition)
    if error is Error.INVALID_TXN_STATE and call.version >= _FIRST_TRANSACTION_ABORTABLE:
        error = Error.TRANSACTION_ABORTABLE
    if error is Error.CONCURRENT_TRANSACTIONS:
        error = Error.NOT_ENOUGH_REPLICAS  # clients repeat the request (ReplicaManager)
    if error is not Error.NONE:
        raise BatchError(
            error, f"transaction {transactional_id}: {error.name} for {partition[0]}-{partition[1]}"
        )


def _partition_response(call: Call, index: int, written: _Written) -> Any:
    return call.types.make(
        "PartitionProduceResponse",
        index=index,
        error_code=written.error,
        base_offset=written.base_offset,
        log_append_time=timestamp(written.log_append_time_ms),
        log_start_offset=written.log_start_offset,
        record_errors=tuple(
            call.types.make("BatchIndexAndErrorMessage", batch_index=at, batch_index_error_message=message)
            for at, message in (written.record_errors if call.version >= _FIRST_WITH_RECORD_ERRORS else ())
        ),
        error_message=written.sentence,
    )


APIS = (PRODUCE,)

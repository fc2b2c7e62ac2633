"""The requests of transactional producers: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and
TxnOffsetCommit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from groupstorm.broker.apis.api import (
    EACH_PARTITION,
    AskCoordinator,
    Call,
    CoordinatorsApi,
    Done,
    producer_error,
    read,
)
from groupstorm.broker.apis.resources import (
    READ_GROUP,
    WRITE_TRANSACTIONAL_ID,
    answer_named,
    may,
    may_on_cluster,
    may_write_anywhere,
    named_partitions,
    topic_error,
)
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.state import BrokerState
from groupstorm.broker.transactions import NONE, Partition, Producer
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.plain_values import milliseconds
from groupstorm.turns import Turns, in_turns

_FIRST_SAYING_FENCED = 4


def init_producer_id(state: BrokerState, call: Call) -> Done:
    """InitProducerId (key 22), versions 0-5.

    * Without a transactional id every request gets a new producer id with epoch 0 (KIP-98).
    * Without one, a producer needs IDEMPOTENT_WRITE on the cluster or WRITE on any topic (KIP-679).
    * v3: a producer that recovers names what it had (KIP-360). v4: PRODUCER_FENCED; before,
      INVALID_PRODUCER_EPOCH. v6, two-phase commit (KIP-939), is not stable yet: Kafka does not advertise it.
    """
    producer = _init(state, call)
    response = call.types.response(
        error_code=producer_error(call, producer.error, _FIRST_SAYING_FENCED),
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    return Done(response)


def _init(state: BrokerState, call: Call) -> Producer:
    message = call.message
    expected = getattr(message, "producer_id", NONE), getattr(message, "producer_epoch", NONE)
    if (expected[0] == NONE) != (expected[1] == NONE):
        return Producer(Error.INVALID_REQUEST)
    transactional_id = message.transactional_id
    if transactional_id is None:
        if not may_write_anywhere(state, call):
            return Producer(Error.CLUSTER_AUTHORIZATION_FAILED)
        return Producer(Error.NONE, state.take_producer_id(), 0)
    if state.cluster.transactions.node_of(transactional_id) != call.node:
        return Producer(Error.NOT_COORDINATOR)
    timeout_ms = milliseconds(message.transaction_timeout)
    return state.transactions.init_producer_id(transactional_id, timeout_ms, expected, call.now_ms)


_FIRST_BATCHED_VERSION = 4


def add_partitions_to_txn(state: BrokerState, call: Call) -> Turns[Done]:
    """AddPartitionsToTxn (key 24), versions 0-5.

    * v0-3: one producer, before it writes to partitions for the first time in its transaction (KIP-98). v2:
      PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    * v4-5: brokers among each other, several transactions at once, or verification only (KIP-890). They need
      CLUSTER_ACTION; before, a producer needs WRITE on its transactional id and on each topic.
    * If one partition does not exist or may not be written, none is added: the others are
      OPERATION_NOT_ATTEMPTED.
    """
    message = call.message
    if call.version < _FIRST_BATCHED_VERSION:
        errors = yield from _denied(state, call)
        if not errors:
            errors = yield from _add(
                state,
                call,
                message.v3_and_below_transactional_id,
                message.v3_and_below_producer_id,
                message.v3_and_below_producer_epoch,
                message.v3_and_below_topics,
            )
        topics = yield from _topics(call, errors)
        return Done(call.types.response(results_by_topic_v3_and_below=topics))
    if not may_on_cluster(state, call, Operation.CLUSTER_ACTION):
        error = Error.CLUSTER_AUTHORIZATION_FAILED
        return Done(call.types.response(error_code=error, results_by_transaction=()))
    results = []
    for one in message.transactions:
        errors = yield from _transaction(state, call, one)
        topics = yield from _topics(call, errors)
        made = call.types.make(
            "AddPartitionsToTxnResult", transactional_id=one.transactional_id, topic_results=topics
        )
        results.append(made)
        yield 1
    return Done(call.types.response(error_code=Error.NONE, results_by_transaction=tuple(results)))


def _denied(state: BrokerState, call: Call) -> Turns[dict[Partition, Error]]:
    """The errors of a producer that may not use its transactional id or one of the topics; {} if it may."""
    if state.authorizer is None:
        return {}
    partitions = yield from _partitions(call.message.v3_and_below_topics)
    name = call.message.v3_and_below_transactional_id
    if not may(state, call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        return dict.fromkeys(partitions, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    errors = {topic: topic_error(state, call, topic) for topic in dict.fromkeys(row[0] for row in partitions)}
    if not any(errors.values()):
        return {}
    rows = yield from in_turns((row, errors[row[0]] or _unadded(state, row)) for row in partitions)
    return dict(rows)


def _unadded(state: BrokerState, row: Partition) -> Error:
    """The error of a partition of a request that fails because of some partition."""
    is_known = state.topics.partition(*row) is not None
    return Error.OPERATION_NOT_ATTEMPTED if is_known else Error.UNKNOWN_TOPIC_OR_PARTITION


def _transaction(state: BrokerState, call: Call, one: Any) -> Turns[dict[Partition, Error]]:
    who = (one.transactional_id, one.producer_id, one.producer_epoch)
    if one.verify_only:
        partitions = yield from _partitions(one.topics)
        rows = yield from in_turns((row, state.transactions.verify(*who, row)) for row in partitions)
        return dict(rows)
    return (yield from _add(state, call, *who, one.topics))


def _partitions(topics: Any) -> Turns[tuple[Partition, ...]]:
    return (yield from in_turns((topic.name, number) for topic in topics for number in topic.partitions))


def _add(
    state: BrokerState, call: Call, transactional_id: str, producer_id: int, epoch: int, topics: Any
) -> Turns[dict[Partition, Error]]:
    partitions = yield from _partitions(topics)
    if state.cluster.transactions.node_of(transactional_id) != call.node:
        return dict.fromkeys(partitions, Error.NOT_COORDINATOR)
    errors = {}
    for row in partitions:
        errors[row] = _unadded(state, row)
        yield 1
    if Error.UNKNOWN_TOPIC_OR_PARTITION in errors.values():
        return errors
    who = (transactional_id, producer_id, epoch)
    error = state.transactions.add_partitions(*who, partitions, call.now_ms)
    return dict.fromkeys(partitions, producer_error(call, error))


def _topics(call: Call, errors: dict[Partition, Error]) -> Turns[tuple[Any, ...]]:
    by_topic: dict[str, list[Any]] = {}
    for (name, number), error in errors.items():
        result = call.types.make(
            "AddPartitionsToTxnPartitionResult", partition_index=number, partition_error_code=error
        )
        by_topic.setdefault(name, []).append(result)
        yield 1
    return (
        yield from in_turns(
            call.types.make("AddPartitionsToTxnTopicResult", name=name, results_by_partition=tuple(results))
            for name, results in by_topic.items()
        )
    )


def add_offsets_to_txn(state: BrokerState, call: Call) -> Done:
    """AddOffsetsToTxn (key 25), versions 0-4: the transaction will commit offsets of a group (KIP-98).

    v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    """
    message = call.message
    if state.cluster.transactions.node_of(message.transactional_id) != call.node:
        return Done(call.types.response(error_code=Error.NOT_COORDINATOR))
    who = (message.transactional_id, message.producer_id, message.producer_epoch)
    partitions = (state.offsets_partition(message.group_id),)
    error = state.transactions.add_partitions(*who, partitions, call.now_ms)
    return Done(call.types.response(error_code=producer_error(call, error)))


_FIRST_OF_TRANSACTION_VERSION_2 = 5


def end_txn(state: BrokerState, call: Call) -> Done:
    """EndTxn (key 26), versions 0-5: commit or abort (KIP-98).

    * v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    * v5: the answer has the producer's id and epoch for its next transaction (KIP-890).
    * The broker writes the markers of few partitions before it answers; of many, as Kafka, behind the answer.
    """
    message = call.message
    if state.cluster.transactions.node_of(message.transactional_id) != call.node:
        return Done(call.types.response(error_code=Error.NOT_COORDINATOR))
    producer = state.transactions.end(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        message.committed,
        version_2=call.version >= _FIRST_OF_TRANSACTION_VERSION_2,
    )
    response = call.types.response(
        error_code=producer_error(call, producer.error),
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    return Done(response)


_FIRST_WITH_MEMBERS = 3
_FIRST_SAYING_ABORTABLE = 4
_FIRST_ADDING_THE_GROUP = 5


def txn_offset_commit(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    """TxnOffsetCommit (key 28), versions 0-6: offsets that count when the transaction is committed (KIP-98).

    * v2: leader epoch. v3: member, instance and generation (KIP-447). v4: TRANSACTION_ABORTABLE. v5: the
      group is added to the transaction by this request (KIP-890). v6: topic ids instead of names (KIP-1319).
    * Partitions that do not exist are answered here, as for OffsetCommit.
    """
    named = yield from named_partitions(state, call)
    finish = partial(answer_named, call, "TxnOffsetCommit", named)
    if not named.known:
        return Done((yield from finish(())))
    error = _check(state, call)
    if error is not Error.NONE:
        partitions = [(topic, number, error) for topic, asked in named.known.items() for number in asked]
        return Done((yield from finish([messages.OffsetCommitResponse(tuple(partitions))])))
    own: dict[str, Any] = {"offsets": named.offsets}
    if call.version < _FIRST_WITH_MEMBERS:
        own |= {"member_id": messages.NO_MEMBER_ID, "generation": messages.NO_GENERATION}
    return AskCoordinator(
        (read(messages.TxnOffsetCommit, call.message, call.version, call.client_id, **own),), finish
    )


def _check(state: BrokerState, call: Call) -> Error:
    message = call.message
    if not message.group_id:
        return Error.INVALID_GROUP_ID
    if state.cluster.groups.node_of(message.group_id) != call.node:
        return Error.NOT_COORDINATOR
    who = (message.transactional_id, message.producer_id, message.producer_epoch)
    partition = state.offsets_partition(message.group_id)
    if call.version >= _FIRST_ADDING_THE_GROUP:
        error = state.transactions.add_partitions(*who, (partition,), call.now_ms)
        return Error.INVALID_PRODUCER_EPOCH if error is Error.PRODUCER_FENCED else error
    error = state.transactions.verify(*who, partition)
    if error is Error.INVALID_TXN_STATE and call.version >= _FIRST_SAYING_ABORTABLE:
        return Error.TRANSACTION_ABORTABLE
    return error


APIS = (
    CoordinatorsApi(
        22, "InitProducerId", 0, 5, init_producer_id, older=(4, 5), needs=(WRITE_TRANSACTIONAL_ID,),
    ),
    CoordinatorsApi(
        24, "AddPartitionsToTxn", 0, 5, add_partitions_to_txn, older=(3, 5), on_topics=Operation.WRITE,
        errors={"v3_and_below_topics.partitions": "results_by_topic_v3_and_below.results_by_partition"},
    ),
    CoordinatorsApi(
        25, "AddOffsetsToTxn", 0, 4, add_offsets_to_txn, older=(3, 4),
        needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP),
    ),
    CoordinatorsApi(26, "EndTxn", 0, 5, end_txn, older=(3, 4), needs=(WRITE_TRANSACTIONAL_ID,)),
    CoordinatorsApi(
        28, "TxnOffsetCommit", 0, 6, txn_offset_commit, older=(3, 4),
        needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP), on_topics=Operation.READ, errors=EACH_PARTITION,
    ),
)  # fmt: skip

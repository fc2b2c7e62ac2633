"""AddPartitionsToTxn (key 24), versions 0-5.

* v0-3: one producer, before it writes to partitions for the first time in its transaction (KIP-98). v2:
  PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
* v4-5: brokers among each other, several transactions at once, or verification only (KIP-890). They need
  CLUSTER_ACTION; before, a producer needs WRITE on its transactional id and on each topic.
* If one partition does not exist or may not be written, none is added: the others are
  OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import BrokerState, Call, CoordinatorsApi, Done, producer_error
from groupstorm.broker.apis.rights import may, may_on_cluster, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.transactions import Partition
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_FIRST_BATCHED_VERSION = 4


def handle(state: BrokerState, call: Call) -> Turns[Done]:
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


API = CoordinatorsApi(
    24, "AddPartitionsToTxn", 0, 5, handle, older=(3, 5), on_topics=Operation.WRITE,
    errors={"v3_and_below_topics.partitions": "results_by_topic_v3_and_below.results_by_partition"},
)  # fmt: skip


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
    if not state.coordinates_transactions(call, transactional_id):
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

"""DescribeProducers, DescribeTransactions and ListTransactions."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from groupstorm.broker.apis.api import Api, Call, CoordinatorsApi, Done, timestamp
from groupstorm.broker.apis.resources import (
    SENTENCES,
    error_without,
    find_log,
    find_topic,
    may,
    may_describe_topic,
)
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.state import BrokerState
from groupstorm.broker.transactions import NONE, Transaction, TransactionState
from groupstorm.coordinator.consumer.regexes import matcher_of
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.protocol.codec.shape import EPOCH
from groupstorm.turns import Turns, in_turns

_NONE = -1
_UNKNOWN = "This server does not host this topic-partition."


def describe_producers(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeProducers (key 61), version 0: the producers of partitions, and their open transactions
    (KIP-664).

    Needs READ on each topic. The times of producers are not kept: the last timestamp is -1.
    """
    topics = []
    for asked in call.message.topics:
        partitions = []
        for index in asked.partition_indexes:
            partitions.append((yield from _partition(state, call, asked, index)))
        topics.append(call.types.make("TopicResponse", name=asked.name, partitions=tuple(partitions)))
    return Done(call.types.response(topics=tuple(topics)))


def _partition(state: BrokerState, call: Call, asked: Any, index: int) -> Turns[Any]:
    found = topic, _ = find_topic(state, call, asked)
    log, error = find_log(call, found, index)
    if topic is not None and error is Error.TOPIC_AUTHORIZATION_FAILED:
        error = Error.NONE  # a coordinator's topic has no records, and so no producers
    producers = yield from in_turns(_producers(call, log) if log is not None else ())
    is_unknown = topic is None and error is Error.UNKNOWN_TOPIC_OR_PARTITION
    sentence = _UNKNOWN if is_unknown else SENTENCES.get(error)
    return call.types.make(
        "PartitionResponse",
        partition_index=index,
        error_code=error,
        error_message=sentence,
        active_producers=producers,
    )


def _producers(call: Call, log: PartitionLog) -> list[Any]:
    opened = log.transactions.open
    return [
        call.types.make(
            "ProducerState",
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            last_sequence=one.batches[-1].last_sequence if one.batches else _NONE,
            last_timestamp=_NONE,
            coordinator_epoch=0 if opened or not one.batches else _NONE,
            current_txn_start_offset=opened.get(one.producer_id, _NONE),
        )
        for one in log.producers.kept()
    ]


def describe_transactions(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeTransactions (key 65), version 0: transactional ids and their transactions (KIP-664).

    Needs DESCRIBE on each transactional id. Topics that the client may not describe are left out.
    """
    found = yield from in_turns(_described(state, call, one) for one in call.message.transactional_ids)
    return Done(call.types.response(transaction_states=found))


def _described(state: BrokerState, call: Call, transactional_id: str) -> Any:
    error = error_without(state, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    known = state.transactions.get(transactional_id)
    if error is Error.NONE and not transactional_id:
        error = Error.INVALID_REQUEST
    elif error is Error.NONE and state.cluster.transactions.node_of(transactional_id) != call.node:
        error = Error.NOT_COORDINATOR
    elif error is Error.NONE and known is None:
        error = Error.TRANSACTIONAL_ID_NOT_FOUND
    shown = known if error is Error.NONE else None
    values: dict[str, Any] = {
        "transaction_state": "",
        "transaction_timeout": datetime.timedelta(0),
        "transaction_start_time": EPOCH,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": (),
    }
    about = values if shown is None else _facts(state, call, shown)
    return call.types.make("TransactionState", error_code=error, transactional_id=transactional_id, **about)


def _facts(state: BrokerState, call: Call, transaction: Transaction) -> dict[str, Any]:
    partitions = sorted(one for one in transaction.partitions if may_describe_topic(state, call, one[0]))
    topics = tuple(
        call.types.make("TopicData", topic=name, partitions=tuple(index for _, index in of_topic))
        for name, of_topic in groupby(partitions, key=lambda one: one[0])
    )
    started_ms = transaction.started_ms
    return {
        "transaction_state": transaction.state.value,
        "transaction_timeout": datetime.timedelta(milliseconds=transaction.timeout_ms),
        "transaction_start_time": None if started_ms == NONE else timestamp(started_ms),
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "topics": topics,
    }


#: TransactionState of Kafka's; transactions are never in the last two here.
_STATES = {*TransactionState, "Dead", "PrepareEpochFence"}
_ANY_DURATION = -1


def list_transactions(state: BrokerState, call: Call) -> Turns[Done]:
    """ListTransactions (key 66), versions 0-2: the transactional ids that a broker coordinates (KIP-664).

    The client sees those that it may describe. v1: by the duration of the transaction (KIP-994). v2: by a
    regular expression.
    """
    message = call.message
    pattern = getattr(message, "transactional_id_pattern", None)
    try:
        matches = matcher_of(pattern) if pattern else None
    except InputError:
        return Done(_response(call, Error.INVALID_REGULAR_EXPRESSION, (), ()))
    found = []
    for one in state.transactions:
        if (
            state.cluster.transactions.node_of(one.transactional_id) == call.node
            and _is_wanted(call, one)
            and (matches is None or matches(one.transactional_id))
            and may(state, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one.transactional_id)
        ):
            found.append(one)
        yield 1
    unknown = tuple(name for name in message.state_filters if name not in _STATES)
    return Done(_response(call, Error.NONE, unknown, found))


def _is_wanted(call: Call, transaction: Transaction) -> bool:
    message = call.message
    duration_ms = getattr(message, "duration_filter", _ANY_DURATION)
    if message.state_filters and transaction.state not in message.state_filters:
        return False
    if message.producer_id_filters and transaction.producer_id not in message.producer_id_filters:
        return False
    return duration_ms < 0 or call.now_ms - transaction.started_ms > duration_ms


def _response(call: Call, error: Error, unknown: tuple[str, ...], found: Iterable[Transaction]) -> Any:
    states = tuple(
        call.types.make(
            "TransactionState",
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            transaction_state=one.state.value,
        )
        for one in found
    )
    return call.types.response(error_code=error, unknown_state_filters=unknown, transaction_states=states)


APIS = (
    Api(
        61, "DescribeProducers", 0, 0, describe_producers, on_topics=Operation.READ,
        errors={"topics.partition_indexes": "topics.partitions"},
    ),
    CoordinatorsApi(
        65, "DescribeTransactions", 0, 0, describe_transactions, older=(None, 0),
        errors={"transactional_ids": "transaction_states"},
    ),
    CoordinatorsApi(66, "ListTransactions", 0, 2, list_transactions, older=(None, 1)),
)  # fmt: skip

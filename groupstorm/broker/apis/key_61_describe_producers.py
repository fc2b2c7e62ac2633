"""DescribeProducers (key 61), version 0: the producers of partitions, and their open transactions (KIP-664).

Needs READ on each topic. The times of producers are not kept: the last timestamp is -1.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.lookup import find_log, find_topic
from groupstorm.broker.apis.rights import SENTENCES
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_NONE = -1
_UNKNOWN = "This server does not host this topic-partition."


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    topics = []
    for asked in call.message.topics:
        partitions = []
        for index in asked.partition_indexes:
            partitions.append((yield from _partition(state, call, asked, index)))
        topics.append(call.types.make("TopicResponse", name=asked.name, partitions=tuple(partitions)))
    return Done(call.types.response(topics=tuple(topics)))


API = Api(
    61, "DescribeProducers", 0, 0, handle, on_topics=Operation.READ,
    errors={"topics.partition_indexes": "topics.partitions"},
)  # fmt: skip


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

"""DescribeTransactions (key 65), version 0: transactional ids and their transactions (KIP-664).

Needs DESCRIBE on each transactional id. Topics that the client may not describe are left out.
"""

from __future__ import annotations

import datetime
from itertools import groupby
from typing import Any

from groupstorm.broker.apis.api import BrokerState, Call, CoordinatorsApi, Done, timestamp
from groupstorm.broker.apis.rights import error_without, may_describe_topic
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.transactions import NONE, Transaction
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.shape import EPOCH
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    found = yield from in_turns(_described(state, call, one) for one in call.message.transactional_ids)
    return Done(call.types.response(transaction_states=found))


API = CoordinatorsApi(
    65, "DescribeTransactions", 0, 0, handle, older=(None, 0),
    errors={"transactional_ids": "transaction_states"},
)  # fmt: skip


def _described(state: BrokerState, call: Call, transactional_id: str) -> Any:
    error = error_without(state, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    known = state.transactions.get(transactional_id)
    if error is Error.NONE and not transactional_id:
        error = Error.INVALID_REQUEST
    elif error is Error.NONE and not state.coordinates_transactions(call, transactional_id):
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

"""ListTransactions (key 66), versions 0-2: the transactional ids that a broker coordinates (KIP-664).

The client sees those that it may describe. v1: by the duration of the transaction (KIP-994). v2: by a regular
expression.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupstorm.broker.apis.api import BrokerState, Call, CoordinatorsApi, Done
from groupstorm.broker.apis.rights import may
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.transactions import Transaction, TransactionState
from groupstorm.coordinator.consumer.regexes import matcher_of
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.turns import Turns

#: TransactionState of Kafka's; transactions are never in the last two here.
_STATES = {*TransactionState, "Dead", "PrepareEpochFence"}
_ANY_DURATION = -1


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    message = call.message
    pattern = getattr(message, "transactional_id_pattern", None)
    try:
        matches = matcher_of(pattern) if pattern else None
    except InputError:
        return Done(_response(call, Error.INVALID_REGULAR_EXPRESSION, (), ()))
    found = []
    for one in state.transactions:
        if (
            state.coordinates_transactions(call, one.transactional_id)
            and _is_wanted(call, one)
            and (matches is None or matches(one.transactional_id))
            and may(state, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one.transactional_id)
        ):
            found.append(one)
        yield 1
    unknown = tuple(name for name in message.state_filters if name not in _STATES)
    return Done(_response(call, Error.NONE, unknown, found))


API = CoordinatorsApi(66, "ListTransactions", 0, 2, handle, older=(None, 1))


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

"""InitProducerId (key 22), versions 0-5.

* Without a transactional id every request gets a new producer id with epoch 0 (KIP-98).
* Without one, a producer needs IDEMPOTENT_WRITE on the cluster or WRITE on any topic (KIP-679).
* v3: a producer that recovers names what it had (KIP-360). v4: PRODUCER_FENCED; before,
  INVALID_PRODUCER_EPOCH. v6, two-phase commit (KIP-939), is not stable yet: Kafka does not advertise it.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import BrokerState, Call, CoordinatorsApi, Done, milliseconds, producer_error
from groupstorm.broker.apis.rights import WRITE_TRANSACTIONAL_ID, may_write_anywhere
from groupstorm.broker.transactions import NONE, Producer
from groupstorm.coordinator.errors import Error

_FIRST_SAYING_FENCED = 4


def handle(state: BrokerState, call: Call) -> Done:
    producer = _init(state, call)
    response = call.types.response(
        error_code=producer_error(call, producer.error, _FIRST_SAYING_FENCED),
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    return Done(response)


API = CoordinatorsApi(22, "InitProducerId", 0, 5, handle, older=(4, 5), needs=(WRITE_TRANSACTIONAL_ID,))


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
    if not state.coordinates_transactions(call, transactional_id):
        return Producer(Error.NOT_COORDINATOR)
    timeout_ms = milliseconds(message.transaction_timeout)
    return state.transactions.init_producer_id(transactional_id, timeout_ms, expected, call.now_ms)

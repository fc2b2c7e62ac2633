"""InitProducerId (key 22), versions 0-6.

* Without a transactional id every request gets a new producer id with epoch 0 (KIP-98).
* Transactions are not emulated: a transactional id gets INVALID_REQUEST, which clients do not retry.
"""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done

_NO_PRODUCER = -1


def handle(state: BrokerState, call: Call) -> Done:
    if call.message.transactional_id is not None:
        return Done(
            call.types.response(
                error_code=Error.INVALID_REQUEST, producer_id=_NO_PRODUCER, producer_epoch=_NO_PRODUCER
            )
        )
    producer_id = state.next_producer_id
    state.next_producer_id += 1
    return Done(call.types.response(error_code=Error.NONE, producer_id=producer_id, producer_epoch=0))


API = Api(22, "InitProducerId", 0, 6, handle)

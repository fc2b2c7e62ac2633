"""EndTxn (key 26), versions 0-5: commit or abort (KIP-98).

* v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
* v5: the answer has the producer's id and epoch for its next transaction (KIP-890).
* The broker writes the markers of few partitions before it answers; of many, as Kafka, behind the answer.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import BrokerState, Call, CoordinatorsApi, Done, producer_error
from groupstorm.broker.apis.rights import WRITE_TRANSACTIONAL_ID
from groupstorm.coordinator.errors import Error

_FIRST_OF_TRANSACTION_VERSION_2 = 5


def handle(state: BrokerState, call: Call) -> Done:
    message = call.message
    if not state.coordinates_transactions(call, message.transactional_id):
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


API = CoordinatorsApi(26, "EndTxn", 0, 5, handle, older=(3, 4), needs=(WRITE_TRANSACTIONAL_ID,))

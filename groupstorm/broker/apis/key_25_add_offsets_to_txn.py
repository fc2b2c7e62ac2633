"""AddOffsetsToTxn (key 25), versions 0-4: the transaction will commit offsets of a group (KIP-98).

v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import BrokerState, Call, CoordinatorsApi, Done, producer_error
from groupstorm.broker.apis.rights import READ_GROUP, WRITE_TRANSACTIONAL_ID
from groupstorm.coordinator.errors import Error


def handle(state: BrokerState, call: Call) -> Done:
    message = call.message
    if not state.coordinates_transactions(call, message.transactional_id):
        return Done(call.types.response(error_code=Error.NOT_COORDINATOR))
    who = (message.transactional_id, message.producer_id, message.producer_epoch)
    partitions = (state.offsets_partition(message.group_id),)
    error = state.transactions.add_partitions(*who, partitions, call.now_ms)
    return Done(call.types.response(error_code=producer_error(call, error)))


API = CoordinatorsApi(
    25, "AddOffsetsToTxn", 0, 4, handle, older=(3, 4), needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP)
)

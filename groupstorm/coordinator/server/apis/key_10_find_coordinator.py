"""FindCoordinator (key 10), versions 0-6.

* v0 asks for groups only; v1 adds the key type; v4 asks for several keys at once (KIP-699).
* There is one broker, which coordinates every group. Transactions and share groups are not emulated:
  their key types get INVALID_REQUEST, which clients do not retry.
"""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done

_GROUP = 0
_NO_NODE = -1
_FIRST_BATCHED_VERSION = 4


def handle(state: BrokerState, call: Call) -> Done:
    message, types = call.message, call.types
    key_type = getattr(message, "key_type", _GROUP)
    if call.version < _FIRST_BATCHED_VERSION:
        return Done(types.response(**_answer(state, call, key_type)))
    coordinators = tuple(
        types.make("Coordinator", key=key, **_answer(state, call, key_type))
        for key in message.coordinator_keys
    )
    return Done(types.response(coordinators=coordinators))


API = Api(10, "FindCoordinator", 0, 6, handle)


def _answer(state: BrokerState, call: Call, key_type: int) -> dict[str, Any]:
    if key_type != _GROUP:
        sentence = f"key type {key_type}: only the coordinators of groups are emulated"
        return {
            "error_code": Error.INVALID_REQUEST,
            "error_message": sentence,
            "node_id": _NO_NODE,
            "host": "",
            "port": -1,
        }
    # From version 4 on Kafka leaves the message of a success empty, before it says NONE.
    message = "NONE" if call.version < _FIRST_BATCHED_VERSION else ""
    return {
        "error_code": Error.NONE,
        "error_message": message,
        "node_id": state.config.node_id,
        "host": call.reached_at.host,
        "port": call.reached_at.port,
    }

"""FindCoordinator (key 10), versions 0-6.

* v0 asks for groups only; v1 adds the key type; v4 asks for several keys at once (KIP-699).
* The first request for a coordinator creates the internal topic. Kafka answers COORDINATOR_NOT_AVAILABLE
  until the topic exists (AutoTopicCreationManager); here it exists at once.
* Groups and transactional ids are spread over the brokers by their partitions of the internal topics. Share
  groups are not emulated: their key type gets INVALID_REQUEST, which clients do not retry.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Api, BrokerState, Call, Done
from groupstorm.broker.apis.internal_topics import coordinators_of, ensure_internal_topic
from groupstorm.broker.apis.rights import SENTENCES, group_error, may
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_GROUP, _TRANSACTION = 0, 1
_NO_NODE = -1
_FIRST_BATCHED_VERSION = 4


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    message, types = call.message, call.types
    key_type = getattr(message, "key_type", _GROUP)
    if call.version < _FIRST_BATCHED_VERSION:
        return Done(types.response(**_answer(state, call, key_type, message.key)))
    coordinators = yield from in_turns(
        (
            types.make("Coordinator", key=key, **_answer(state, call, key_type, key))
            for key in message.coordinator_keys
        ),
        work=2,
    )
    return Done(types.response(coordinators=coordinators))


API = Api(
    10, "FindCoordinator", 0, 6, handle, older=(3, 6), on_groups=Operation.DESCRIBE,
    errors={"coordinator_keys": "coordinators"},
)  # fmt: skip


def _error(state: BrokerState, call: Call, key_type: int, key: str) -> Error:
    if key_type == _GROUP:
        return group_error(state, call, key)
    known = may(state, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
    return Error.NONE if known else Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _answer(state: BrokerState, call: Call, key_type: int, key: str) -> dict[str, Any]:
    if key_type not in (_GROUP, _TRANSACTION):
        sentence = f"key type {key_type}: only coordinators of groups and of transactions are emulated"
        return {
            "error_code": Error.INVALID_REQUEST,
            "error_message": sentence,
            "node_id": _NO_NODE,
            "host": "",
            "port": -1,
        }
    error = _error(state, call, key_type, key)
    if error is not Error.NONE:
        sentence = SENTENCES[error] if call.version < _FIRST_BATCHED_VERSION else ""
        return {"error_code": error, "error_message": sentence, "node_id": _NO_NODE, "host": "", "port": -1}
    # From version 4 on Kafka leaves the message empty, before it says NONE.
    message = "NONE" if call.version < _FIRST_BATCHED_VERSION else ""
    topic = OFFSETS_TOPIC if key_type == _GROUP else TRANSACTIONS_TOPIC
    ensure_internal_topic(state, topic)
    node = coordinators_of(state, topic).node_of(key)
    endpoint = state.endpoint(node, call)
    return {
        "error_code": Error.NONE,
        "error_message": message,
        "node_id": node,
        "host": endpoint.host,
        "port": endpoint.port,
    }

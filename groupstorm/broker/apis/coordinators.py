"""FindCoordinator, and the internal topics that say which broker coordinates a group or a transaction.

Kafka creates these topics when a client first asks for a coordinator; auto.create.topics.enable does not
count (AutoTopicCreationManager). Their settings say how many partitions they have. The leader of a group's or
a transactional id's partition coordinates it. The coordinators keep their state themselves, and the topics
hold no records. Clients may neither read nor change them, as users of a secured cluster may not.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import SENTENCES, error_without, group_error
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.cluster import Coordinators
from groupstorm.broker.log.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Topic
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

#: Kafka's defaults of offsets.topic.replication.factor and transaction.state.log.replication.factor.
_REPLICAS = 3
#: Kafka's default of transaction.state.log.min.isr.
_IN_SYNC_REPLICAS = 2
_SEGMENT_BYTES = str(100 * 1024 * 1024)


def ensure_internal_topic(state: BrokerState, name: str) -> Topic:
    """The topic of the group or of the transaction coordinators. It is created if it is missing."""
    topic = state.topics.get(name)
    if topic is not None:
        return topic
    count = min(_REPLICAS, len(state.cluster.nodes))
    coordinators = _coordinators_of(state, name)
    return state.create_topic(
        name, coordinators.partitions, count, _configs(name, count), coordinators.replicas(count)
    )


def move_internal_topic(state: BrokerState, name: str) -> None:
    """The leaders of an internal topic follow its coordinators, after these have moved."""
    topic = state.topics.get(name)
    if topic is not None:
        state.topics.place(topic, _coordinators_of(state, name).replicas(topic.replication_factor))


def _coordinators_of(state: BrokerState, name: str) -> Coordinators:
    """The leaders of an internal topic."""
    return state.cluster.groups if name == OFFSETS_TOPIC else state.cluster.transactions


def _configs(name: str, replicas: int) -> dict[str, str]:
    common = {"cleanup.policy": "compact", "segment.bytes": _SEGMENT_BYTES}
    if name == OFFSETS_TOPIC:
        return {**common, "compression.type": "producer"}
    return {
        **common,
        "compression.type": "uncompressed",
        "min.insync.replicas": str(min(_IN_SYNC_REPLICAS, replicas)),
        "unclean.leader.election.enable": "false",
    }


_GROUP, _TRANSACTION = 0, 1
_NOWHERE = {"node_id": -1, "host": "", "port": -1}
_FIRST_BATCHED_VERSION = 4


def find_coordinator(state: BrokerState, call: Call) -> Turns[Done]:
    """FindCoordinator (key 10), versions 0-6.

    * v0 asks for groups only; v1 adds the key type; v4 asks for several keys at once (KIP-699).
    * The first request for a coordinator creates the internal topic. Kafka answers COORDINATOR_NOT_AVAILABLE
      until the topic exists (AutoTopicCreationManager); here it exists at once.
    * Groups and transactional ids are spread over the brokers by their partitions of the internal topics.
      Share groups are not emulated: their key type gets INVALID_REQUEST, which clients do not retry.
    """
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


def _answer(state: BrokerState, call: Call, key_type: int, key: str) -> dict[str, Any]:
    is_batched = call.version >= _FIRST_BATCHED_VERSION
    if key_type == _GROUP:
        topic, error = OFFSETS_TOPIC, group_error(state, call, key)
    elif key_type == _TRANSACTION:
        topic = TRANSACTIONS_TOPIC
        error = error_without(state, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
    else:
        sentence = f"key type {key_type}: only coordinators of groups and of transactions are emulated"
        return {**_NOWHERE, "error_code": Error.INVALID_REQUEST, "error_message": sentence}
    if error is not Error.NONE:
        sentence = "" if is_batched else SENTENCES[error]
        return {**_NOWHERE, "error_code": error, "error_message": sentence}
    ensure_internal_topic(state, topic)
    node = _coordinators_of(state, topic).node_of(key)
    # From version 4 on Kafka leaves the message empty, before it says NONE.
    said = {"error_code": Error.NONE, "error_message": "" if is_batched else "NONE"}
    address = state.address(node, call.reached_at)
    return {**said, **{name: address[name] for name in _NOWHERE}}


APIS = (
    Api(
        10, "FindCoordinator", 0, 6, find_coordinator, older=(3, 6), on_groups=Operation.DESCRIBE,
        errors={"coordinator_keys": "coordinators"},
    ),
)  # fmt: skip

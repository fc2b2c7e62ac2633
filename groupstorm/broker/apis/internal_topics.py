"""The topics of the coordinators, which Kafka creates when a client first asks for a coordinator.

As in AutoTopicCreationManager their creation does not depend on auto.create.topics.enable. Their settings
say how many partitions they have. The leader of a group's or a transactional id's partition coordinates it.

The coordinators keep their state themselves, and the topics hold no records. Clients see the topics as users
of a secured cluster do: they may neither read nor change them.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import OFFSETS_TOPIC, BrokerState
from groupstorm.broker.cluster import Coordinators
from groupstorm.broker.log.topics import Topic

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
    coordinators = coordinators_of(state, name)
    return state.create_topic(
        name, coordinators.partitions, count, _configs(name, count), coordinators.replicas(count)
    )


def move_internal_topic(state: BrokerState, name: str) -> None:
    """The leaders of an internal topic follow its coordinators, after these have moved."""
    topic = state.topics.get(name)
    if topic is not None:
        state.topics.place(topic, coordinators_of(state, name).replicas(topic.replication_factor))


def coordinators_of(state: BrokerState, name: str) -> Coordinators:
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

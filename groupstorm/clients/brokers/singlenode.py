"""The options of a Kafka of one node, in a process or in a container."""

from __future__ import annotations

from collections.abc import Mapping

#: Internal topics on the only node, with few partitions for a quick start.
INTERNAL_TOPICS: Mapping[str, str] = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

#: The most memory that the node may use.
HEAP = "-Xmx512m"

#: How long the node may take to start.
START_TIMEOUT_S = 60.0

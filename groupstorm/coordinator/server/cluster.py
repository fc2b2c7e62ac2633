"""The brokers of this process: where each listens, what it leads and which groups it coordinates.

All of them share one state: what a broker does not lead or coordinate it refuses, as in a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupstorm.coordinator.server.config import Endpoint
from groupstorm.javahash import signed, string_hash

#: Partitions of __consumer_offsets and __transaction_state (offsets.topic.num.partitions,
#: transaction.state.log.num.partitions).
DEFAULT_PARTITIONS = 50


class Cluster:
    """``nodes``: the brokers' ids. Coordinators are spread by the partitions of the internal topics, whose
    leaders they are in Kafka (GroupMetadataManager's partitionFor, TransactionStateManager.partitionFor)."""

    def __init__(self, nodes: Sequence[int] = (1,), coordinator_partitions: int = DEFAULT_PARTITIONS) -> None:
        self.nodes = tuple(nodes)
        #: Where the others listen, as far as they do already.
        self.ports: dict[int, int] = {}
        self._partitions = coordinator_partitions
        self._moved: dict[int, int] = {}

    @property
    def controller(self) -> int:
        """Who is said to be the controller: any broker does what it is asked, as in KRaft."""
        return self.nodes[0]

    def endpoint(self, node: int, reached_at: Endpoint, advertised: Endpoint | None) -> Endpoint:
        """What a client that reached us there is told about a node.

        Advertised brokers have consecutive ports, the first one that of the setting.
        """
        if advertised is not None:
            return Endpoint(advertised.host, advertised.port + self.nodes.index(node))
        return Endpoint(reached_at.host, self.ports.get(node, reached_at.port))

    def replicas(self, first: int, partition: int, count: int) -> tuple[int, ...]:
        """``count`` brokers for a partition, the leader in front; topics begin at different ones."""
        size = len(self.nodes)
        return tuple(self.nodes[(first + partition + step) % size] for step in range(count))

    def partition_of(self, key: str) -> int:
        """The partition of the internal topic that a group's or a transactional id's state is in."""
        return (signed(string_hash(key)) & 0x7FFF_FFFF) % self._partitions

    def coordinator(self, key: str) -> int:
        """The broker that coordinates this group or transactional id."""
        if len(self.nodes) == 1:
            return self.nodes[0]
        partition = self.partition_of(key)
        return self._moved.get(partition, self.nodes[partition % len(self.nodes)])

    def move_coordinator(self, key: str, node: int | None = None) -> int:
        """Another broker, the next one unless one is named, takes over the partition that this group is in.

        Gives that broker. Raises ValueError for one that there is not.
        """
        if node is None:
            node = self.nodes[(self.nodes.index(self.coordinator(key)) + 1) % len(self.nodes)]
        if node not in self.nodes:
            raise ValueError(f"there is no broker {node}: {', '.join(map(str, self.nodes))}")
        self._moved[self.partition_of(key)] = node
        return node

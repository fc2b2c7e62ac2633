"""The brokers of this process: where each listens, which partitions it leads, which groups it coordinates.

All of them share one state. A broker refuses requests for the partitions and groups of the others, as in a
cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from groupstorm.javahash import partition_for
from groupstorm.protocol.endpoints import Endpoint

#: Kafka's default of offsets.topic.num.partitions and transaction.state.log.num.partitions.
DEFAULT_PARTITIONS = 50


class Coordinators:
    """The coordinators of groups, or of transactional ids: the leaders of the internal topic's partitions
    (GroupMetadataManager.partitionFor, TransactionStateManager.partitionFor)."""

    def __init__(self, nodes: Sequence[int], partitions: int) -> None:
        self._nodes = nodes
        self.partitions = partitions
        self._moved: dict[int, int] = {}

    def partition_of(self, key: str) -> int:
        """The partition of the internal topic that holds the state of a group or a transactional id."""
        return partition_for(key, self.partitions)

    def node_of(self, key: str) -> int:
        """The broker that coordinates this group or transactional id."""
        if len(self._nodes) == 1:
            return self._nodes[0]
        return self._leader(self.partition_of(key))

    def _leader(self, partition: int) -> int:
        return self._moved.get(partition, self._nodes[partition % len(self._nodes)])

    def replicas(self, count: int) -> list[tuple[int, ...]]:
        """``count`` brokers for each partition of the internal topic, the leader in front."""
        size = len(self._nodes)
        first = [self._nodes.index(self._leader(partition)) for partition in range(self.partitions)]
        return [tuple(self._nodes[(leader + step) % size] for step in range(count)) for leader in first]

    def move(self, key: str, node: int | None = None) -> None:
        """Another broker, the next one unless ``node`` names one, takes over the partition of this key.

        Raises ValueError if there is no such broker.
        """
        if node is None:
            node = self._nodes[(self._nodes.index(self.node_of(key)) + 1) % len(self._nodes)]
        if node not in self._nodes:
            raise ValueError(f"there is no broker {node}: {', '.join(map(str, self._nodes))}")
        self._moved[self.partition_of(key)] = node


class Cluster:
    """``nodes``: the brokers' ids; the other two: how many partitions the internal topics have."""

    def __init__(
        self,
        nodes: Sequence[int] = (1,),
        group_partitions: int = DEFAULT_PARTITIONS,
        transaction_partitions: int = DEFAULT_PARTITIONS,
        racks: Sequence[str] = (),
    ) -> None:
        """``racks``: one of each broker, one of all, or none."""
        self.nodes = tuple(nodes)
        of_each = [*racks] * len(self.nodes) if len(racks) == 1 else racks
        self._racks = dict(zip(self.nodes, of_each, strict=False))
        self._by_rack = _alternating(self.nodes, self._racks)
        #: The ports of the brokers that listen already.
        self.ports: dict[int, int] = {}
        #: The protocol of their listeners, as Kafka names it.
        self.protocol = "PLAINTEXT"
        self.groups = Coordinators(self.nodes, group_partitions)
        self.transactions = Coordinators(self.nodes, transaction_partitions)

    @property
    def controller(self) -> int:
        """The broker that Metadata calls the controller; every broker can do its work, as in KRaft."""
        return self.nodes[0]

    def endpoint(self, node: int, reached_at: Endpoint, advertised: Endpoint | None) -> Endpoint:
        """The address of a node for a client that has connected to ``reached_at``.

        Advertised brokers have consecutive ports, the first one that of the setting.
        """
        if advertised is not None:
            return Endpoint(advertised.host, advertised.port + self.nodes.index(node))
        return Endpoint(reached_at.host, self.ports.get(node, reached_at.port))

    def rack(self, node: int) -> str | None:
        """The rack of a broker, as Metadata names it."""
        return self._racks.get(node)

    def replicas(self, first: int, partition: int, count: int) -> tuple[int, ...]:
        """``count`` brokers for a partition, the leader in front; topics begin at different ones.

        The replicas of a partition are in as many racks as there are (KIP-36, StripedReplicaPlacer).
        """
        size = len(self.nodes)
        leader = self.nodes[(first + partition) % size]
        at = self._by_rack.index(leader)
        others = [self._by_rack[(at + step) % size] for step in range(1, size)]
        spread = _other_racks_first(leader, others, self._racks)
        return (leader, *spread[: count - 1])


def _alternating(nodes: Sequence[int], racks: Mapping[int, str]) -> list[int]:
    """One broker of each rack in turn, as long as the rack has more."""
    of_rack: dict[str | None, list[int]] = {}
    for node in nodes:
        of_rack.setdefault(racks.get(node), []).append(node)
    rounds = zip_longest(*of_rack.values())
    return [node for one_each in rounds for node in one_each if node is not None]


def _other_racks_first(leader: int, others: Sequence[int], racks: Mapping[int, str]) -> list[int]:
    """The other brokers; the first of each rack stand in front of the rest."""
    seen = {racks.get(leader)}
    first: list[int] = []
    rest: list[int] = []
    for node in others:
        (rest if racks.get(node) in seen else first).append(node)
        seen.add(racks.get(node))
    return first + rest

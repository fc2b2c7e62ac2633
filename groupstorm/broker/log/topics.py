"""The topics: names, ids, partitions and configurations."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from groupstorm.broker.cluster import Cluster
from groupstorm.broker.config import BrokerConfig
from groupstorm.broker.log.columns import RecordStore
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.topic_configs import LogSettings
from groupstorm.coordinator.errors import Error, Refused

MAX_NAME_LENGTH = 249
#: Kafka creates at most so many partitions in one request (ReplicationControlManager, KAFKA-19130).
MAX_PARTITIONS_PER_REQUEST = 10_000
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
#: The internal topics of coordinators that are emulated.
COORDINATORS_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
INTERNAL_TOPICS = frozenset({*COORDINATORS_TOPICS, "__share_group_state"})

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: uuid.UUID
    partitions: list[PartitionLog]
    replicas: list[tuple[int, ...]]
    """The brokers of each partition, its leader in front."""
    number: int
    """Counts topics; each begins at another broker."""
    configs: dict[str, str]
    settings: LogSettings

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        return len(self.replicas[0])

    def partition(self, index: int) -> PartitionLog | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


def check_name(name: str) -> None:
    """Raises Refused for a name that Kafka refuses (Topic.validate)."""
    if name in ("", ".", "..") or len(name) > MAX_NAME_LENGTH or not _LEGAL_NAME.fullmatch(name):
        raise Refused(
            Error.INVALID_TOPIC_EXCEPTION,
            f"topic {name[:MAX_NAME_LENGTH]!r}: a name is 1 to {MAX_NAME_LENGTH} characters out of"
            " a-z A-Z 0-9 . _ - and neither . nor ..",
        )


class Topics:
    """All topics, in the order of their creation. ``changes`` counts creations, growths, deletions and moves.

    Limits, and the brokers at which topics begin, do not depend on internal topics.
    """

    def __init__(
        self,
        broker: BrokerConfig | None = None,
        new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4,
        cluster: Cluster | None = None,
    ) -> None:
        """``cluster``: the brokers among which partitions are spread; by default there is one."""
        self.changes = 0
        self._broker = broker or BrokerConfig()
        self.cluster = cluster or Cluster((self._broker.node_id,))
        self._new_topic_id = new_topic_id
        self._partitions = 0
        self._created = 0
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._by_collision_key: dict[str, str] = {}
        #: The topics whose cleanup.policy has compact, by name.
        self.compacted: dict[str, Topic] = {}
        #: The batches of all logs.
        self.store = RecordStore()

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def get_by_id(self, topic_id: uuid.UUID | None) -> Topic | None:
        return None if topic_id is None else self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionLog | None:
        topic = self._by_name.get(name)
        return None if topic is None else topic.partition(index)

    def check_new(self, name: str, partitions: int) -> None:
        """Raises Refused if this topic cannot be created now."""
        check_name(name)
        if name in self._by_name:
            raise Refused(Error.TOPIC_ALREADY_EXISTS, f"topic {name} exists already")
        other = self._by_collision_key.get(_collision_key(name))
        if other is not None:
            raise Refused(
                Error.INVALID_TOPIC_EXCEPTION, f"topic {name} collides with {other}: . and _ count as one"
            )
        if partitions < 1:
            raise Refused(Error.INVALID_PARTITIONS, f"topic {name}: a topic has 1 partition or more")
        if name in INTERNAL_TOPICS:
            return
        self._check_partitions(name, partitions)
        most = self._broker.groupstorm_max_topics
        if len(self._by_name) - sum(one in self._by_name for one in INTERNAL_TOPICS) >= most:
            raise Refused(Error.POLICY_VIOLATION, f"topic {name}: groupstorm.max.topics={most} are there")

    def _check_partitions(self, name: str, more: int) -> None:
        if more > MAX_PARTITIONS_PER_REQUEST:
            raise Refused(
                Error.POLICY_VIOLATION,
                f"topic {name}: {more} partitions, allowed at once are {MAX_PARTITIONS_PER_REQUEST}",
            )
        most = self._broker.groupstorm_max_partitions
        if self._partitions + more > most:
            sentence = f"topic {name}: with {more} more, partitions exceed groupstorm.max.partitions={most}"
            raise Refused(Error.POLICY_VIOLATION, sentence)

    def create(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[tuple[int, ...]] | None = None,
    ) -> Topic:
        """Create a topic with a lasting id; ``configs`` and ``replicas`` (per partition, its leader in front)
        have been checked. Raises Refused."""
        self.check_new(name, partitions)
        own = dict(configs or {})
        topic = Topic(
            name,
            self._new_topic_id(),
            [],
            list(replicas or ()),
            self._created,
            own,
            LogSettings(own, self._broker),
        )
        self._add(topic, partitions, replication_factor)
        return topic

    def _add(self, topic: Topic, partitions: int, replication_factor: int) -> None:
        name = topic.name
        self._note_compaction(topic)
        self._created = max(self._created, topic.number + (not topic.is_internal))
        self._by_name[name] = topic
        self._by_id[topic.topic_id] = topic
        self._by_collision_key[_collision_key(name)] = name
        self._grow(topic, partitions, replication_factor)

    def restore(
        self,
        name: str,
        topic_id: uuid.UUID,
        number: int,
        replicas: Sequence[tuple[int, ...]],
        configs: Mapping[str, str],
    ) -> None:
        """Create a topic of the journal again. If its brokers no longer exist, it gets others.

        Raises Refused.
        """
        nodes = self.cluster.nodes
        if not {node for one in replicas for node in one} <= set(nodes):
            factor = min(len(replicas[0]), len(nodes))
            replicas = [self.cluster.replicas(number, index, factor) for index in range(len(replicas))]
        self.check_new(name, len(replicas))
        topic = Topic(
            name, topic_id, [], list(replicas), number, dict(configs), LogSettings(configs, self._broker)
        )
        self._add(topic, len(replicas), len(replicas[0]))

    def check_grown(self, topic: Topic, partitions: int) -> None:
        """Raises Refused if the topic cannot have so many partitions."""
        present = len(topic.partitions)
        if partitions <= present:
            raise Refused(
                Error.INVALID_PARTITIONS,
                f"topic {topic.name} has {present} partition(s); {partitions} would not be an increase",
            )
        self._check_partitions(topic.name, partitions - present)

    def grow(self, topic: Topic, partitions: int, replicas: Sequence[tuple[int, ...]] | None = None) -> None:
        """Add partitions to the topic; ``replicas`` of the new ones have been checked.

        Raises Refused.
        """
        self.check_grown(topic, partitions)
        replication_factor = topic.replication_factor
        topic.replicas.extend(replicas or ())
        self._grow(topic, partitions, replication_factor)

    def _grow(self, topic: Topic, partitions: int, replication_factor: int) -> None:
        for index in range(len(topic.replicas), partitions):
            topic.replicas.append(self.cluster.replicas(topic.number, index, replication_factor))
        more = partitions - len(topic.partitions)
        topic.partitions.extend(PartitionLog(topic.settings, self.store) for _ in range(more))
        self._partitions += 0 if topic.is_internal else more
        self.changes += 1

    def place(self, topic: Topic, replicas: Sequence[tuple[int, ...]]) -> None:
        """Give the topic's partitions other brokers, the leader in front."""
        topic.replicas[:] = replicas
        self.changes += 1

    def delete(self, topic: Topic) -> None:
        """Delete the topic and its records."""
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        del self._by_collision_key[_collision_key(topic.name)]
        self.compacted.pop(topic.name, None)
        self._partitions -= 0 if topic.is_internal else len(topic.partitions)
        for log in topic.partitions:
            log.is_gone = True
        self.changes += 1

    def take_settings(self, broker: BrokerConfig) -> None:
        """The broker's settings have changed: those of topics that have none of their own change, too."""
        self._broker = broker
        for topic in self:
            topic.settings.update(topic.configs, broker)

    def configure(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Replace the topic's configurations; they have been checked."""
        topic.configs.clear()
        topic.configs.update(configs)
        topic.settings.update(topic.configs, self._broker)
        self._note_compaction(topic)

    def _note_compaction(self, topic: Topic) -> None:
        if topic.settings.is_compacted:
            self.compacted[topic.name] = topic
        else:
            self.compacted.pop(topic.name, None)


def _collision_key(name: str) -> str:
    """Metrics write dots as underscores, so that two such topics would share theirs (Topic.hasCollision)."""
    return name.replace(".", "_")

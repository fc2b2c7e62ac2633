"""The broker's topics: names, ids, partitions. There is one broker, so each partition has one replica."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.log.partition import PartitionLog

MAX_NAME_LENGTH = 249
#: Kafka creates at most so many partitions in one request (ReplicationControlManager, KAFKA-19130).
MAX_PARTITIONS_PER_REQUEST = 10_000
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicError(ValueError):
    """A topic that cannot be made; ``error`` is what the client is told."""

    def __init__(self, error: Error, sentence: str) -> None:
        super().__init__(sentence)
        self.error = error


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: uuid.UUID
    partitions: list[PartitionLog]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> PartitionLog | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


def check_name(name: str) -> None:
    """Raises TopicError for a name that Kafka refuses (Topic.validate)."""
    if name in ("", ".", "..") or len(name) > MAX_NAME_LENGTH or not _LEGAL_NAME.fullmatch(name):
        raise TopicError(
            Error.INVALID_TOPIC_EXCEPTION,
            f"topic {name[:MAX_NAME_LENGTH]!r}: a name is 1 to {MAX_NAME_LENGTH} characters out of"
            " a-z A-Z 0-9 . _ - and neither . nor ..",
        )


class Topics:
    """All topics, in the order of their creation. ``changes`` counts what was created."""

    def __init__(self, retention_bytes: int = -1, new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        self.changes = 0
        self._retention_bytes = retention_bytes
        self._new_topic_id = new_topic_id
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._by_collision_key: dict[str, str] = {}

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
        """Raises TopicError if this topic cannot be created now."""
        check_name(name)
        if name in self._by_name:
            raise TopicError(Error.TOPIC_ALREADY_EXISTS, f"topic {name} exists already")
        other = self._by_collision_key.get(_collision_key(name))
        if other is not None:
            raise TopicError(
                Error.INVALID_TOPIC_EXCEPTION, f"topic {name} collides with {other}: . and _ count as one"
            )
        if partitions < 1:
            raise TopicError(Error.INVALID_PARTITIONS, f"topic {name}: a topic has 1 partition or more")
        if partitions > MAX_PARTITIONS_PER_REQUEST:
            raise TopicError(
                Error.POLICY_VIOLATION,
                f"topic {name}: {partitions} partitions, allowed at once are {MAX_PARTITIONS_PER_REQUEST}",
            )

    def create(self, name: str, partitions: int) -> Topic:
        """A new topic with an id that stays. Raises TopicError."""
        self.check_new(name, partitions)
        logs = [PartitionLog(self._retention_bytes) for _ in range(partitions)]
        topic = Topic(name, self._new_topic_id(), logs)
        self._by_name[name] = topic
        self._by_id[topic.topic_id] = topic
        self._by_collision_key[_collision_key(name)] = name
        self.changes += 1
        return topic


def _collision_key(name: str) -> str:
    """Metrics write dots as underscores, so that two such topics would share theirs (Topic.hasCollision)."""
    return name.replace(".", "_")

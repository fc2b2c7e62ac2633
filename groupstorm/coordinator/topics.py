"""The topics of the cluster as the coordinator knows them: what members may subscribe to and are assigned.

Kafka: CoordinatorMetadataImage, GroupMetadataManager.onMetadataUpdate, Utils.computeTopicHash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID


class Topic(NamedTuple):
    """A topic that exists. ``racks``: for each partition the racks of its replicas, if brokers have racks."""

    id: UUID
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics:
    """The topics by name and by id. ``version`` counts the updates."""

    def __init__(self) -> None:
        self.by_name: dict[str, Topic] = {}
        self.version = 0
        #: The version in which a topic was created last: regular expressions resolved before it are stale.
        self.last_version_with_new_topics = 0
        self._names: dict[UUID, str] = {}
        self._hashes: dict[str, bytes] = {}

    def update(self, changed: Mapping[str, Topic], removed: Iterable[str]) -> list[str]:
        """Take a new image of the cluster; the names of the topics that differ in it.

        ``changed``: topics that are new or grew, ``removed``: topics that no longer exist. A topic that is
        both was gone again before anybody could see it.
        """
        self.version += 1
        touched = []
        gone_names = dict.fromkeys(removed)
        if self.version == 1:
            self.last_version_with_new_topics = 1
        for name, topic in changed.items():
            before = self.by_name.get(name)
            if before == topic or name in gone_names:
                continue
            if before is None or before.id != topic.id:
                self.last_version_with_new_topics = self.version
            self.by_name[name] = topic
            self._names[topic.id] = name
            touched.append(name)
        for name in gone_names:
            gone = self.by_name.pop(name, None)
            if gone is not None:
                self._names.pop(gone.id, None)
                touched.append(name)
        for name in touched:
            self._hashes.pop(name, None)
        return touched

    def name(self, topic_id: UUID) -> str | None:
        """The name of the topic with this id; None if there is none."""
        return self._names.get(topic_id)

    def topic_id(self, name: str) -> UUID | None:
        """The id of the topic with this name; None if there is none."""
        topic = self.by_name.get(name)
        return None if topic is None else topic.id

    def hash_of(self, names: Iterable[str]) -> int:
        """A number that changes if one of these topics does; 0 if none of them exists.

        Kafka takes XXH3 of the same fields (Utils.computeGroupHash); only equality matters.
        """
        known = sorted(name for name in names if name in self.by_name)
        if not known:
            return 0
        hashes = self._hashes
        joined = b"".join([hashes.get(name) or self._hash(name) for name in known])
        digest = hashlib.blake2b(joined, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def _hash(self, name: str) -> bytes:
        topic = self.by_name[name]
        racks = [sorted(racks) for racks in topic.racks]
        content = repr((name, topic.id.hex, topic.partitions, racks)).encode()
        made = self._hashes[name] = hashlib.blake2b(content, digest_size=8).digest()
        return made

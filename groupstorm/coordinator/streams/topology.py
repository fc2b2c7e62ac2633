"""A topology as the members of a streams group send it. Kafka: StreamsTopology, StreamsGroupTopologyValue."""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.javahash import JavaHashMap, hash_order


class TopicInfo(NamedTuple):
    """An internal topic. ``partitions`` and ``replication``: 0 if the topology does not fix them."""

    name: str
    partitions: int = 0
    replication: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(NamedTuple):
    """Topics that must have the same number of partitions, as indexes into those of their subtopology."""

    sources: tuple[int, ...] = ()
    source_regexes: tuple[int, ...] = ()
    repartition: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A subtopology. ``sinks``: repartition topics that it writes, ``repartition``: those that it reads."""

    id: str
    sources: tuple[str, ...] = ()
    source_regexes: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    repartition: tuple[TopicInfo, ...] = ()
    changelogs: tuple[TopicInfo, ...] = ()
    copartition: tuple[CopartitionGroup, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every topic of which the subtopology reads records."""
        return *self.sources, *(topic.name for topic in self.repartition)

    @property
    def required(self) -> tuple[str, ...]:
        """Every topic that must exist."""
        return *self.inputs, *(topic.name for topic in self.changelogs)


class Topology(NamedTuple):
    """A topology; its subtopologies have different ids."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    def in_order(self) -> list[Subtopology]:
        """The subtopologies in the order of Kafka's map."""
        table: JavaHashMap[str, Subtopology] = JavaHashMap()
        for subtopology in self.subtopologies:
            table.put(subtopology.id, subtopology)
        return table.values()

    def required_topics(self) -> list[str]:
        """The topics that the topology reads, in the order of Kafka's set."""
        return hash_order(topic for one in self.in_order() for topic in one.required)

    def readers(self) -> dict[str, str]:
        """Topic -> id of the subtopology that reads it; the last one in Kafka's order if several do."""
        return {topic: one.id for one in self.in_order() for topic in one.inputs}

    def is_same_as(self, other: Topology) -> bool:
        """Whether both have the same epoch and subtopologies, in whatever order."""
        return self.epoch == other.epoch and set(self.subtopologies) == set(other.subtopologies)

    def check(self) -> None:
        """`CoordinatorFault` where Kafka cannot make the topology: an epoch below 0, or an id twice."""
        if self.epoch < 0:
            raise CoordinatorFault("Topology epoch must be non-negative.")
        if len({one.id for one in self.subtopologies}) < len(self.subtopologies):
            raise CoordinatorFault("Two subtopologies of the topology have the same id.")

"""A topology as the members of a streams group send it, and its topics, checked and counted: numbers of
partitions, tasks, and internal topics to create.

Kafka: StreamsTopology, StreamsGroupTopologyValue, InternalTopicManager, RepartitionTopics,
CopartitionedTopicsEnforcer, ChangelogTopics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

from groupstorm.coordinator.errors import CoordinatorFault, Error, Refused
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import JavaHashMap, hash_order
from groupstorm.turns import Turns


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


_LISTED_MAX = 3


class Status(IntEnum):
    """The codes of a heartbeat's statuses (StreamsGroupHeartbeatResponse.Status)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class ConfiguredSubtopology(NamedTuple):
    """A subtopology, its internal topics with the partitions that they must have, and its number of tasks."""

    tasks: int
    topics: Subtopology


class ConfiguredTopology(NamedTuple):
    """A topology against the topics of the cluster.

    ``subtopologies``: sorted by id; None while the numbers of tasks cannot be known. ``problem``: what keeps
    the group from being ready, and Kafka's words for it. ``to_create``: internal topics that do not exist.
    """

    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    problem: tuple[Status, str] | None = None
    to_create: Mapping[str, TopicInfo] = {}


class _Problem(Exception):
    """The topics are not as the topology needs them (TopicConfigurationException)."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def configure(topology: Topology, topics: Topics) -> Turns[ConfiguredTopology]:
    """Decide how many partitions internal topics have, and how many tasks subtopologies.

    `Refused` (STREAMS_INVALID_TOPOLOGY) if that cannot be decided whatever topics there are.
    """
    configuration = _Configuration(topology, topics)
    try:
        return (yield from configuration.decide())
    except _Problem as problem:
        return ConfiguredTopology(None, (problem.status, str(problem)))


class _Configuration:
    """A topology in progress; ``_decided``: internal topic -> partitions."""

    def __init__(self, topology: Topology, topics: Topics) -> None:
        self._topology = topology
        self._topics = topics
        self._subtopologies = topology.in_order()
        self._groups = [[topic_names(one, group) for group in one.copartition] for one in self._subtopologies]
        self._repartition = [topic for one in self._subtopologies for topic in one.repartition]
        self._repartition_names = {topic.name for topic in self._repartition}
        self._fixed = {topic.name for topic in self._repartition if topic.partitions}
        self._decided: dict[str, int] = {}

    def decide(self) -> Turns[ConfiguredTopology]:
        work = len(self._subtopologies)
        missing = sorted(
            {topic for one in self._subtopologies for topic in one.sources if self._existing(topic) is None}
        )
        if missing:
            raise _Problem(Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")
        yield work
        self._decide_repartition_topics()
        yield work
        for groups in self._groups:
            for group in groups:
                self._enforce_copartitioning(group)
        changelogs: dict[str, int] = {}
        for one in self._subtopologies:
            if not one.inputs:
                raise _invalid(f"No source topics found for subtopology {one.id}")
            tasks = max(map(self._count, one.inputs))
            changelogs.update(dict.fromkeys((topic.name for topic in one.changelogs), tasks))
        self._decided.update(changelogs)
        yield work
        configured = {
            one.id: self._configured(one) for one in sorted(self._subtopologies, key=lambda one: one.id)
        }
        yield work
        to_create = self._to_create(configured)
        if not to_create:
            return ConfiguredTopology(configured)
        detail = f"Internal topics are missing: {_summary(list(to_create))}"
        return ConfiguredTopology(configured, (Status.MISSING_INTERNAL_TOPICS, detail), to_create)

    def _existing(self, topic: str) -> int | None:
        known = self._topics.by_name.get(topic)
        return None if known is None else known.partitions

    def _count(self, topic: str) -> int:
        """The partitions that the topic has, or is to have."""
        count = self._existing(topic)
        count = self._decided.get(topic) if count is None else count
        if count is None:
            raise CoordinatorFault(f"Number of partitions is not set for topic: {topic}")
        return count

    def _decide_repartition_topics(self) -> None:
        """A subtopology's sinks get the partitions of the largest topic that it reads and that is known.

        Kafka goes through all subtopologies, round after round, and takes one up as soon as it knows one of
        its topics. ``due`` has the same turns, as round and place, without those that decide nothing.
        """
        counts = {topic.name: topic.partitions for topic in self._repartition if topic.partitions}
        readers: dict[str, list[int]] = {}
        for place, one in enumerate(self._subtopologies):
            for topic in one.repartition:
                readers.setdefault(topic.name, []).append(place)
        due = [
            (0, place)
            for place, one in enumerate(self._subtopologies)
            if one.sources or any(topic.name in counts for topic in one.repartition)
        ]  # in order, as a heap has to be
        seen = {place for _, place in due}
        while due:
            at, place = heappop(due)
            one = self._subtopologies[place]
            known = [counts[topic.name] for topic in one.repartition if topic.name in counts]
            known += [self._count(topic) for topic in one.sources]
            for sink in one.sinks:
                if sink not in counts:
                    counts[sink] = max(known)
                    for reader in readers.get(sink, ()):
                        if reader not in seen:
                            seen.add(reader)
                            heappush(due, (at + (reader <= place), reader))
        if any(sink not in counts for one in self._subtopologies for sink in one.sinks):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
        if any(topic.name not in counts for topic in self._repartition):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, "
                "because a repartition source topic is never used as a sink topic."
            )
        self._decided.update(counts)

    def _enforce_copartitioning(self, group: list[str]) -> None:
        if not group:
            return
        fixed, names = self._fixed, self._repartition_names
        internal = {topic: self._count(topic) for topic in group if topic in names}
        external = {topic: self._count(topic) for topic in group if topic not in names}
        if external:
            partitions = _same(external, external.values())
        elif fixed:
            # Kafka looks at the fixed topics of the whole topology
            partitions = _same(internal, [self._count(topic) for topic in hash_order(sorted(fixed))])
        else:
            partitions = max(internal.values(), default=0)
        for topic in hash_order(internal):
            if topic in fixed and internal[topic] != partitions:
                raise _Problem(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{internal[topic]}] of repartition topic [{topic}] doesn't match "
                    f"number of partitions [{partitions}] of the source topic.",
                )
        self._decided.update(dict.fromkeys(internal, partitions))

    def _configured(self, one: Subtopology) -> ConfiguredSubtopology:
        topics = Subtopology(
            one.id,
            tuple(dict.fromkeys(one.sources)),
            one.source_regexes,
            tuple(dict.fromkeys(one.sinks)),
            self._internal(one.repartition),
            self._internal(one.changelogs),
            one.copartition,
        )
        return ConfiguredSubtopology(max(map(self._count, one.inputs)), topics)

    def _internal(self, topics: tuple[TopicInfo, ...]) -> tuple[TopicInfo, ...]:
        if len(topics) > 1 and len({topic.name for topic in topics}) < len(topics):
            raise CoordinatorFault("a subtopology names an internal topic twice")
        configured = []
        for name, partitions, replication, configs in topics:
            if partitions < 0:
                raise CoordinatorFault("Number of partitions must be at least 1.")
            configured.append(TopicInfo(name, partitions or self._decided[name], replication, configs))
        return tuple(configured)

    def _to_create(self, configured: Mapping[str, ConfiguredSubtopology]) -> dict[str, TopicInfo]:
        """The internal topics that do not exist, in the order of Kafka's table, which holds all at first."""
        named = [
            {topic.name: topic for topic in topics}
            for one in configured.values()
            for topics in (one.topics.repartition, one.topics.changelogs)
        ]
        expected = {name: topic for topics in named for name, topic in topics.items()}
        found = {name: self._existing(name) for name in expected}
        if any(count is not None and count != expected[name].partitions for name, count in found.items()):
            self._refuse_existing(expected, found)
        if None not in found.values():
            return {}
        table: JavaHashMap[str, TopicInfo] = JavaHashMap()
        for topics in named:
            for name in hash_order(topics):
                table.put(name, topics[name])
        return {name: topic for name, topic in table.items() if found[name] is None}

    def _refuse_existing(self, expected: Mapping[str, TopicInfo], found: Mapping[str, int | None]) -> None:
        for name in self._topology.required_topics():
            if name in expected and found[name] not in (None, expected[name].partitions):
                raise _Problem(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {name} has different number of partitions: "
                    f"expected {expected[name].partitions}, found {found[name]}",
                )


def topic_names(one: Subtopology, group: CopartitionGroup) -> list[str]:
    """The topics of a copartition group, in the order of Kafka's set."""
    if any(not 0 <= at < len(one.sources) for at in group.sources) or any(
        not 0 <= at < len(one.repartition) for at in group.repartition
    ):
        raise CoordinatorFault(f"a copartition group of subtopology {one.id} names a topic that it has not")
    sources = [one.sources[at] for at in group.sources]
    return hash_order([*sources, *(one.repartition[at].name for at in group.repartition)])


def _same(named: Mapping[str, int], counts: Collection[int]) -> int:
    if len(set(counts)) > 1:
        listed = ", ".join(f"{topic}={named[topic]}" for topic in sorted(named))
        raise _Problem(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(counts))


def _summary(topics: list[str]) -> str:
    more = len(topics) - _LISTED_MAX
    return ", ".join(topics[:_LISTED_MAX]) + (f" and {more} additional topics" if more > 0 else "")


def _invalid(detail: str) -> Refused:
    return Refused(Error.STREAMS_INVALID_TOPOLOGY, detail)

"""Topics of a topology, checked and counted: numbers of partitions, tasks, and internal topics to create.

Kafka: InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import CoordinatorFault, Refused
from groupstorm.coordinator.streams.topology import CopartitionGroup, Subtopology, TopicInfo, Topology
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import JavaHashMap, hash_order

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


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Decide how many partitions internal topics have, and how many tasks subtopologies.

    `Refused` (STREAMS_INVALID_TOPOLOGY) if that cannot be decided whatever topics there are.
    """
    configuration = _Configuration(topology, topics)
    try:
        return configuration.decide()
    except _Problem as problem:
        return ConfiguredTopology(None, (problem.status, str(problem)))


class _Configuration:
    """A topology in progress; ``_decided``: internal topic -> partitions."""

    def __init__(self, topology: Topology, topics: Topics) -> None:
        self._topology = topology
        self._topics = topics
        self._subtopologies = topology.in_order()
        self._groups = [[topic_names(one, group) for group in one.copartition] for one in self._subtopologies]
        self._decided: dict[str, int] = {}

    def decide(self) -> ConfiguredTopology:
        missing = sorted(
            {topic for one in self._subtopologies for topic in one.sources if self._existing(topic) is None}
        )
        if missing:
            raise _Problem(Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")
        self._decide_repartition_topics()
        for groups in self._groups:
            for group in groups:
                self._enforce_copartitioning(group)
        changelogs: dict[str, int] = {}
        for one in self._subtopologies:
            if not one.inputs:
                raise _invalid(f"No source topics found for subtopology {one.id}")
            tasks = max(self._count(topic) for topic in one.inputs)
            changelogs.update(dict.fromkeys((topic.name for topic in one.changelogs), tasks))
        self._decided.update(changelogs)
        configured = {
            one.id: self._configured(one) for one in sorted(self._subtopologies, key=lambda one: one.id)
        }
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
        """A subtopology's sinks get the partitions of the largest topic that it reads and that is known."""
        counts = {
            topic.name: topic.partitions
            for one in self._subtopologies
            for topic in one.repartition
            if topic.partitions
        }
        is_open = True
        while is_open:
            is_open = False
            has_progress = False
            for one in self._subtopologies:
                for sink in one.sinks:
                    if sink in counts:
                        continue
                    known = [counts[topic.name] for topic in one.repartition if topic.name in counts]
                    known += [self._count(topic) for topic in one.sources]
                    if known:
                        counts[sink] = max(known)
                        has_progress = True
                    else:
                        is_open = True
            if is_open and not has_progress:
                raise _invalid(
                    "Failed to compute number of partitions for all repartition topics. "
                    "There may be loops in the topology that cannot be resolved."
                )
        if any(topic.name not in counts for one in self._subtopologies for topic in one.repartition):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, "
                "because a repartition source topic is never used as a sink topic."
            )
        self._decided.update(counts)

    def _enforce_copartitioning(self, group: list[str]) -> None:
        if not group:
            return
        repartition = [topic for one in self._subtopologies for topic in one.repartition]
        fixed = {topic.name for topic in repartition if topic.partitions}
        names = {topic.name for topic in repartition}
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
        topics = one._replace(
            sources=tuple(dict.fromkeys(one.sources)),
            sinks=tuple(dict.fromkeys(one.sinks)),
            repartition=self._internal(one.repartition),
            changelogs=self._internal(one.changelogs),
        )
        return ConfiguredSubtopology(max(self._count(topic) for topic in one.inputs), topics)

    def _internal(self, topics: tuple[TopicInfo, ...]) -> tuple[TopicInfo, ...]:
        if len({topic.name for topic in topics}) < len(topics):
            raise CoordinatorFault("a subtopology names an internal topic twice")
        if any(topic.partitions < 0 for topic in topics):
            raise CoordinatorFault("Number of partitions must be at least 1.")
        return tuple(
            topic._replace(partitions=topic.partitions or self._decided[topic.name]) for topic in topics
        )

    def _to_create(self, configured: Mapping[str, ConfiguredSubtopology]) -> dict[str, TopicInfo]:
        table: JavaHashMap[str, TopicInfo] = JavaHashMap()
        for one in configured.values():
            for topics in (one.topics.repartition, one.topics.changelogs):
                by_name = {topic.name: topic for topic in topics}
                for name in hash_order(by_name):
                    table.put(name, by_name[name])
        for name in self._topology.required_topics():
            found = self._existing(name)
            expected = None if found is None else table.remove(name)
            if expected is not None and expected.partitions != found:
                raise _Problem(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {name} has different number of partitions: "
                    f"expected {expected.partitions}, found {found}",
                )
        return dict(table.items())


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

"""The topics of a scenario: their names and how many partitions each has at the beginning."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.storms.scenario.settings import Settings


def topic_partitions(settings: Settings) -> Mapping[str, int]:
    """The scenario's topics with their partitions: those of `topic_partitions`, or topic-0, topic-1, ..."""
    given = settings.value("topic_partitions")
    if given is not None:
        assert isinstance(given, Mapping)
        return given
    partitions = settings.integer("partitions")
    return {f"topic-{number}": partitions for number in range(settings.integer("topics"))}


def topic_names(settings: Settings) -> tuple[str, ...]:
    """The names of the scenario's topics, in their order."""
    return tuple(topic_partitions(settings))


def partitions_of(settings: Settings, topic: str) -> int:
    """The number of a topic's partitions at the beginning; for one that a step creates, `partitions`."""
    given, partitions = settings.value("topic_partitions"), settings.integer("partitions")
    return given.get(topic, partitions) if isinstance(given, Mapping) else partitions

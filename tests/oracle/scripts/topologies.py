"""Random topologies of Kafka Streams applications, right and wrong ones."""

from __future__ import annotations

import random
from typing import Any

Topology = dict[str, Any]

#: The last one never is among a script's first topics.
SOURCES = ("in1", "in2", "in3", "Aa", "BB", "late")


def random_topology(generator: random.Random) -> Topology:
    """Subtopologies in a chain of repartition topics, with changelogs; one in ten has something wrong."""
    count = generator.choice([1, 1, 2, 3, 4])
    unread = generator.sample(SOURCES[:-1], len(SOURCES) - 1)  # no two subtopologies read one topic
    subtopologies = [_subtopology(generator, number, count, unread) for number in range(count)]
    if generator.random() < 0.1:
        _spoil(generator, subtopologies)
    if generator.random() < 0.3:
        generator.shuffle(subtopologies)
    return {"epoch": 1, "subtopologies": subtopologies}


def _subtopology(generator: random.Random, number: int, count: int, unread: list[str]) -> dict[str, Any]:
    """A subtopology reads topics of its own, the repartition topic that the one before it writes, or both."""
    reads_repartition = number > 0 and generator.random() < 0.7
    subtopology: dict[str, Any] = {"id": str(number)}
    if not reads_repartition or generator.random() < 0.3:
        number_of = min(len(unread), generator.choice([1, 1, 2]))
        subtopology["sources"] = [unread.pop() for _ in range(number_of)]
        if number == 0 and generator.random() < 0.05:
            subtopology["sources"].append("late")
    if reads_repartition:
        subtopology["repartition"] = [_topic(generator, f"app-rep{number - 1}-repartition", 0.2)]
    if number + 1 < count:
        subtopology["sinks"] = [f"app-rep{number}-repartition"]
    for store in range(generator.choice([0, 1, 1, 2])):
        subtopology.setdefault("changelogs", []).append(
            _topic(generator, f"app-store{number}{store}-changelog", 0)
        )
    sources, repartition = subtopology.get("sources", []), subtopology.get("repartition", [])
    if generator.random() < 0.2 and len(sources) + len(repartition) > 1:
        subtopology["copartition"] = [
            {"sources": list(range(len(sources))), "repartition": list(range(len(repartition)))}
        ]
    return subtopology


def _topic(generator: random.Random, name: str, fixed_share: float) -> str | dict[str, Any]:
    if generator.random() < 0.4:
        return name
    topic: dict[str, Any] = {"name": name}
    if generator.random() < fixed_share:
        topic["partitions"] = generator.randint(1, 6)
    if generator.random() < 0.3:
        topic["replication"] = generator.choice([1, 3])
    if generator.random() < 0.4:
        topic["configs"] = generator.choice([{"cleanup.policy": "compact"}, {"a": "1", "b": "2"}])
    return topic


def _spoil(generator: random.Random, subtopologies: list[dict[str, Any]]) -> None:
    """Make one thing wrong."""
    last = subtopologies[-1]
    match generator.choice(["loop", "unwritten", "twice", "regex", "changelog", "no source", "empty"]):
        case "loop":
            last.setdefault("sinks", []).append("app-loop-repartition")
            subtopologies[0].setdefault("repartition", []).append("app-loop-repartition")
        case "unwritten":
            last.setdefault("repartition", []).append("app-unwritten-repartition")
        case "twice":
            subtopologies.append(dict(last))
        case "regex":
            last["regex"] = ["in.*"]
        case "changelog":
            last.setdefault("changelogs", []).append({"name": "app-fixed-changelog", "partitions": 2})
        case "no source":
            last.pop("sources", None)
        case _:
            subtopologies.clear()

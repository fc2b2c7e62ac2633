"""Random cases for the broker's assignors."""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.assignors import drawing
from tests.oracle.assignors.drawing import Partition, happens
from tests.oracle.assignors.sizes import Size
from tests.oracle.running import Case

ASSIGNORS = ("uniform", "range")

#: A bucket with more keys becomes a tree in Java, whose order `groupstorm.javahash` leaves out.
_BUCKET_MAX = 8


def draw_case(generator: random.Random, case_id: str, assignor: str, size: Size) -> Case:
    """A case of that id and size for that assignor."""
    names = drawing.topic_names(generator, size.topics)
    counts = drawing.partition_counts(generator, names, size.partitions_max)
    ids = drawing.member_ids(generator, size.members)
    topics_of = drawing.subscriptions(generator, ids, names)
    targets = _targets(generator, drawing.owners(generator, ids, counts, topics_of), counts)
    instances = _instances(generator, size.members)
    case: Case = {
        "id": case_id,
        "assignor": assignor,
        "topics": _topics(generator, counts),
        "members": [
            _member(generator, member, topics_of[member], targets[member], instance)
            for member, instance in zip(ids, instances, strict=True)
        ],
    }
    if happens(generator, 0.7):
        case["emit_records"] = True
    return case


def _topics(generator: random.Random, counts: Mapping[str, int]) -> dict[str, Any]:
    """Topics with ids; at times all in one bucket of a hash table, unless that would make a tree of it."""
    colliding = len(counts) <= _BUCKET_MAX and happens(generator, 0.15)
    low = generator.getrandbits(64)
    topics = {}
    for number, (name, count) in enumerate(counts.items()):
        bits = generator.getrandbits(128)
        if colliding:
            high = number << 32 | number  # the words of it cancel out: only the lower half counts
            bits = high << 64 | low
        text = urlsafe_b64encode(bits.to_bytes(16)).decode().rstrip("=")
        topics[name] = {"partitions": count, "id": text}
    return topics


def _targets(
    generator: random.Random, owned: Mapping[str, Sequence[Partition]], counts: Mapping[str, int]
) -> dict[str, list[Partition]]:
    """Draw what each member had, at times with what it cannot have had."""
    contested, haunted = happens(generator, 0.08), happens(generator, 0.05)
    every = drawing.partitions_of(counts)
    targets = {}
    for member, partitions in owned.items():
        target = list(partitions)
        if contested:
            target += drawing.claims(generator, every)
        if haunted:
            target += drawing.nonexistent(generator, counts)
        if happens(generator, 0.3):
            generator.shuffle(target)
        targets[member] = target
    return targets


def _instances(generator: random.Random, count: int) -> list[str | None]:
    """Static ids, each of one member: of nobody, some or all."""
    share = generator.choice((0.0, 0.3, 0.3, 1.0))
    numbers = generator.sample(range(10 * count), count)
    return [f"i{number}" if happens(generator, share) else None for number in numbers]


def _member(
    generator: random.Random, member: str, topics: list[str], target: list[Partition], instance: str | None
) -> dict[str, Any]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in target:
        by_topic.setdefault(topic, []).append(number)
    found: dict[str, Any] = {"id": member, "topics": topics, "target": by_topic}
    if instance is not None:
        found["instance"] = instance
    if happens(generator, 0.05):
        found["rack"] = "r1"
    return found

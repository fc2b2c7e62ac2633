"""Draws of the random cases of both sides: names, subscriptions, and who had which partition before."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

Partition = tuple[str, int]

#: A topic that nobody has made.
NO_TOPIC = "gone"

#: The highest number that Kafka's PartitionComparator can compare with -1: it subtracts them as ints.
_HIGHEST = 2**31 - 2

#: Texts whose order differs by code point and by UTF-16 unit, and texts beyond ASCII.
_LETTERS = ("a", "b", "Z", "é", "Ω", "ж", "漢", "\uffae", "\U0001d4b3", "\U0001f600")
#: Strings of one hash code: they share a bucket whatever the table's size.
_COLLIDING = ("AaAa", "AaBB", "BBAa", "BBBB")


def happens(generator: random.Random, probability: float) -> bool:
    return generator.random() < probability


def _mixed(generator: random.Random, number: int) -> str:
    return f"{generator.choice(_LETTERS)}{generator.randrange(1000)}-{number}"


def _as_clients_name_themselves(generator: random.Random, number: int) -> str:
    bits = f"{generator.getrandbits(128):032x}"
    uuid = "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))
    return f"consumer-{number % 3}-{uuid}"


_MEMBER_STYLES: tuple[Callable[[random.Random, int], str], ...] = (
    lambda _, number: f"m{number}",
    lambda _, number: f"consumer-{number:04d}",
    _as_clients_name_themselves,
    _mixed,
    _mixed,
)

_TOPIC_STYLES: tuple[Callable[[random.Random, int], str], ...] = (
    lambda _, number: f"t{number}",
    lambda _, number: f"topic-{number}",
    lambda generator, number: f"{generator.choice(('orders', 'clicks', 'Z', 'a.b_c'))}.{number}",
    _mixed,
)


def member_ids(generator: random.Random, count: int) -> list[str]:
    """Distinct ids in any order."""
    style = generator.choice(_MEMBER_STYLES)
    ids = [style(generator, number) for number in range(count)]
    if count > len(_COLLIDING) and happens(generator, 0.06):
        ids[: len(_COLLIDING)] = _COLLIDING
    generator.shuffle(ids)
    return ids


def topic_names(generator: random.Random, count: int) -> list[str]:
    """Distinct names in any order."""
    style = generator.choice(_TOPIC_STYLES)
    names = [style(generator, number) for number in range(count)]
    generator.shuffle(names)
    return names


def partition_counts(generator: random.Random, names: Sequence[str], most: int) -> dict[str, int]:
    """Partitions of each topic: all the same, or each another number, and at times none."""
    if happens(generator, 0.3):
        return dict.fromkeys(names, generator.randint(1, most))
    least = 0 if happens(generator, 0.25) else 1
    return {name: generator.randint(least, most) for name in names}


def subscriptions(
    generator: random.Random, members: Sequence[str], names: Sequence[str]
) -> dict[str, list[str]]:
    """Draw the subscription of each member: all to the same, or not; at times what does not exist, or
    nothing."""
    everybodys = list(names) if happens(generator, 0.8) else _some(generator, names)
    if happens(generator, 0.1):
        everybodys.append(NO_TOPIC)
    draw = generator.choices((_same, _nearly_same, _own), (55, 15, 30))[0]
    odd = happens(generator, 0.12)
    found = {}
    for member in members:
        topics = draw(generator, everybodys, names)
        found[member] = _oddly(generator, topics) if odd else topics
    return found


def _some(generator: random.Random, names: Sequence[str]) -> list[str]:
    return generator.sample(names, generator.randint(1, len(names)))


def _same(generator: random.Random, everybodys: list[str], names: Sequence[str]) -> list[str]:
    return generator.sample(everybodys, len(everybodys)) if happens(generator, 0.5) else list(everybodys)


def _nearly_same(generator: random.Random, everybodys: list[str], names: Sequence[str]) -> list[str]:
    """Draw subscriptions that are equal but for one topic, now and then."""
    topics = list(everybodys)
    if happens(generator, 0.3):
        topics.pop(generator.randrange(len(topics)))
    return topics or list(everybodys)


def _own(generator: random.Random, everybodys: list[str], names: Sequence[str]) -> list[str]:
    topics = _some(generator, names)
    if happens(generator, 0.05):
        topics.append(NO_TOPIC)
    return topics


def _oddly(generator: random.Random, topics: list[str]) -> list[str]:
    """At times nothing at all, or a topic listed twice."""
    kind = generator.random()
    if kind < 0.1:
        return []
    if kind < 0.2:
        return [*topics, generator.choice(topics)]
    return topics


def partitions_of(counts: Mapping[str, int]) -> list[Partition]:
    return [(topic, number) for topic, count in counts.items() for number in range(count)]


def owners(
    generator: random.Random,
    members: Sequence[str],
    counts: Mapping[str, int],
    subscribed: Mapping[str, Sequence[str]],
) -> dict[str, list[Partition]]:
    """Draw what each member had: nothing, shares as an assignor deals them, or something as chance deals it.

    Mostly of topics that it subscribes to, and each partition one member's.
    """
    owned: dict[str, list[Partition]] = {member: [] for member in members}
    if happens(generator, 0.15):
        return owned
    partitions = partitions_of(counts)
    if happens(generator, 0.4):
        generator.shuffle(partitions)
    kept = generator.choice((0.5, 0.9, 1.0))
    by_chance = generator.choice((0.0, 0.0, 0.1, 0.5, 1.0))
    left_topics = generator.choice((0.0, 0.0, 0.05, 0.5))
    newcomers = generator.randrange(len(members)) if happens(generator, 0.3) else 0
    old = members[newcomers:]
    for place, (topic, number) in enumerate(partitions):
        if happens(generator, kept):
            member = generator.choice(old) if happens(generator, by_chance) else old[place % len(old)]
            if topic in subscribed[member] or happens(generator, left_topics):
                owned[member].append((topic, number))
    return owned


def claims(generator: random.Random, partitions: Sequence[Partition]) -> Iterator[Partition]:
    """A few partitions that somebody else may have as well."""
    if partitions and happens(generator, 0.5):
        yield from generator.sample(partitions, min(len(partitions), generator.randint(1, 3)))


def nonexistent(generator: random.Random, counts: Mapping[str, int]) -> Iterator[Partition]:
    """At times a partition that does not exist: the topic is gone, was made anew smaller, or never had it."""
    if happens(generator, 0.3):
        topic = generator.choice((*counts, NO_TOPIC))
        count = counts.get(topic, 0)
        yield topic, generator.choice((count, count + 1, 50_000, -1, _HIGHEST))

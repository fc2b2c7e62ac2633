"""The sizes of random groups: most are small, a few are as large as Kafka's users have them."""

from __future__ import annotations

import random
from typing import NamedTuple


class Size(NamedTuple):
    """``members`` and ``topics`` are exact, ``partitions_max`` holds for each topic."""

    members: int
    topics: int
    partitions_max: int


class _Class(NamedTuple):
    """Bounds of a class of sizes; ``share``: how many of a thousand random groups are of it."""

    share: int
    members: tuple[int, int]
    topics: tuple[int, int]
    partitions: tuple[int, int]


_SMALL = _Class(875, (1, 14), (1, 6), (1, 12))

_CLASSES = (
    _SMALL,
    _Class(50, (1, 9), (1, 40), (1, 4)),
    _Class(60, (15, 90), (1, 8), (4, 60)),
    _Class(12, (91, 500), (1, 12), (20, 120)),
    _Class(3, (1_000, 2_000), (1, 5), (200, 800)),
)


def any_size(generator: random.Random) -> Size:
    """A size of any class."""
    (drawn,) = generator.choices(_CLASSES, [one.share for one in _CLASSES])
    return _size(generator, drawn)


def small(generator: random.Random) -> Size:
    """A size that golden cases have, which are kept in the repository."""
    return _size(generator, _SMALL)


def _size(generator: random.Random, drawn: _Class) -> Size:
    return Size(
        generator.randint(*drawn.members),
        generator.randint(*drawn.topics),
        generator.randint(*drawn.partitions),
    )

"""The order in which the partitions of an answer stand, and with it the next order of a session."""

from __future__ import annotations

from collections.abc import Callable, Collection

from groupstorm.javahash import signed
from groupstorm.share_records.ports import TopicPartition

#: Scala's mutable maps begin with so many buckets, and double them when three quarters are taken.
_BUCKETS_MIN = 16


def in_hash_order(
    partitions: Collection[TopicPartition], hash_of: Callable[[TopicPartition], int]
) -> list[TopicPartition]:
    """Partitions as a ``mutable.HashMap`` of Scala yields them; ``hash_of``: their unsigned hash codes.

    Kafka copies an answer of more than four partitions into another map, which this order does not follow.
    """
    if len(partitions) < 2:
        return list(partitions)
    spread = {one: number ^ number >> 16 for one in partitions for number in (hash_of(one),)}
    buckets = _BUCKETS_MIN
    while 4 * len(spread) >= 3 * buckets:
        buckets *= 2
    return sorted(spread, key=lambda one: (spread[one] & buckets - 1, signed(spread[one])))

"""The lag of a group: from the ends of the logs and from its committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class LogEnds(NamedTuple):
    """The first offset of a partition's log, and the offset that its next record gets."""

    start: int
    end: int


class Progress(NamedTuple):
    """A group at one moment. All by partition as Kafka prints it (orders-0).

    ``ends``: of all partitions of the topics that count; ``committed``: the group's offsets; ``assigned``:
    the partitions that its members have.
    """

    ends: Mapping[str, LogEnds]
    committed: Mapping[str, int]
    assigned: Collection[str]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the group has committed in or that its members have partitions of."""
        return topics_of([*self.committed, *self.assigned])

    def lag(self) -> dict[str, int | None]:
        """Records behind the committed offset, for every partition that is assigned or has one; None for one
        without a committed offset, as `kafka-consumer-groups` prints -."""
        shown = sorted({*self.committed, *self.assigned} & {*self.ends}, key=_in_order)
        return {
            one: self.ends[one].end - self.committed[one] if one in self.committed else None for one in shown
        }

    def behind(self, topics: Collection[str]) -> dict[str, int]:
        """The partitions of these topics whose end is not committed, and how many records each has left.
        A partition without committed offset counts from its beginning."""
        left = {
            one: ends.end - self.committed.get(one, ends.start)
            for one, ends in self.ends.items()
            if one.rpartition("-")[0] in topics
        }
        return {one: left[one] for one in sorted(left, key=_in_order) if left[one] > 0}


def topics_of(partitions: Iterable[str]) -> tuple[str, ...]:
    """The topics of partitions as Kafka prints them, in order."""
    return tuple(sorted({one.rpartition("-")[0] for one in partitions}))


def _in_order(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)

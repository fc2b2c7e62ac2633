"""Read the bytes of a subscription as partition numbers, and write partition numbers as an assignment."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error, pack
from typing import NamedTuple

from groupstorm.assignors.consumer.indexed import PartitionIndex
from groupstorm.assignors.userdata.consumer_protocol import HIGHEST_VERSION
from groupstorm.assignors.userdata.wire import (
    INT16,
    INT32,
    nullable_bytes,
    read_array_length,
    read_partitions_of_topic,
    string,
)

ASSIGNMENT_HEADER = INT16.pack(HIGHEST_VERSION)
NO_USER_DATA = nullable_bytes(None)
_ONE = INT32.pack(1)
_ONE_PARTITION = ASSIGNMENT_HEADER + _ONE
_INT32_BYTES = 4
#: An array's length and its first element.
_LENGTH_AND_FIRST = Struct(">ii")


class Owned(NamedTuple):
    """Owned partitions as numbers.

    ``listed``: how many there are in the bytes; ``nonexistent``: whether some do not exist although
    their topic does.
    """

    numbers: list[int]
    listed: int
    nonexistent: bool


NOTHING = Owned([], 0, nonexistent=False)


class PartitionCodec:
    """Reads and writes topic partitions (`userdata.wire`) as the numbers of an index."""

    def __init__(self, index: PartitionIndex) -> None:
        self._index = index
        self._topic_bytes = [string(topic) for topic in index.topics]
        self._number_of_bytes = {data: number for number, data in enumerate(self._topic_bytes)}
        self._topic_and_one = [data + _ONE for data in self._topic_bytes]

    def read(self, data: bytes, at: int) -> tuple[Owned, int]:
        """The topic partitions at that position, and the position behind them. `UserDataError` on garbage."""
        count, at = read_array_length(data, at)
        if not count:
            return NOTHING, at
        index = self._index
        first, counts, number_of_bytes = index.first, index.counts, self._number_of_bytes
        read_length_and_first = _LENGTH_AND_FIRST.unpack_from
        numbers: list[int] = []
        unnumbered = 0
        nonexistent = False
        for _ in range(count):
            # usually one partition of a topic of the index
            try:
                behind_topic = at + 2 + (data[at] << 8 | data[at + 1])
                topic = number_of_bytes[data[at:behind_topic]]
                length, partition = read_length_and_first(data, behind_topic)
            except (IndexError, KeyError, error):
                length = 0
            if length == 1 and 0 <= partition < counts[topic]:
                numbers.append(first[topic] + partition)
                at = behind_topic + 2 * _INT32_BYTES
                continue
            name, partitions, at = read_partitions_of_topic(data, at)
            known = index.ids(name, partitions)
            if len(known) < len(partitions):
                unnumbered += len(partitions) - len(known)
                nonexistent = nonexistent or name in index.number_of_topic
            numbers += known
        return Owned(numbers, len(numbers) + unnumbered, nonexistent), at

    def write_assignments(self, assigned: Sequence[Sequence[int]]) -> list[bytes]:
        """ConsumerProtocol.serializeAssignment for several members, without user data."""
        return [self._write_assignment(numbers) for numbers in assigned]

    def _write_assignment(self, numbers: Sequence[int]) -> bytes:
        topic_of, partition_of = self._index.topic_of, self._index.partition_of
        if len(numbers) == 1:
            topic, partition = topic_of[numbers[0]], partition_of[numbers[0]]
            return _ONE_PARTITION + self._topic_and_one[topic] + INT32.pack(partition) + NO_USER_DATA
        topics = [topic_of[number] for number in numbers]
        partitions = [partition_of[number] for number in numbers]
        if len(set(topics)) == len(topics):
            body = self._write_singles(topics, partitions)
        else:
            body = self._write_groups(topics, partitions)
        return b"".join([ASSIGNMENT_HEADER, *body, NO_USER_DATA])

    def _write_singles(self, topics: Sequence[int], partitions: Sequence[int]) -> list[bytes]:
        """One partition of each topic."""
        count = len(topics)
        parts: list[bytes] = [INT32.pack(count)] * (1 + 2 * count)
        topic_and_one = self._topic_and_one
        parts[1::2] = [topic_and_one[topic] for topic in topics]
        parts[2::2] = Struct("4s" * count).unpack(pack(f">{count}i", *partitions))
        return parts

    def _write_groups(self, topics: Sequence[int], partitions: Sequence[int]) -> list[bytes]:
        groups: dict[int, list[int]] = {}
        for topic, partition in zip(topics, partitions, strict=True):
            if topic in groups:
                groups[topic].append(partition)
            else:
                groups[topic] = [partition]
        lengths_and_partitions: list[int] = []
        for group in groups.values():
            lengths_and_partitions.append(len(group))
            lengths_and_partitions += group
        packed = pack(f">{len(lengths_and_partitions)}i", *lengths_and_partitions)
        parts = [INT32.pack(len(groups))]
        at = 0
        for topic, group in groups.items():
            end = at + (1 + len(group)) * _INT32_BYTES
            parts += (self._topic_bytes[topic], packed[at:end])
            at = end
        return parts

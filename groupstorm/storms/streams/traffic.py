"""Bytes of records that are read and written, within a rack and between racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition

INPUT, CHANGELOG, RESTORE, STANDBY = "input", "changelog", "restore", "standby"
_KINDS = (INPUT, CHANGELOG, RESTORE, STANDBY)


class TrafficSum(NamedTuple):
    """The bytes of a whole run for one ``cause``."""

    cause: str
    bytes: int
    cross_rack_bytes: int


class Traffic:
    """``racks``: per partition the racks of its replicas, the leader's first; empty if none are known."""

    def __init__(
        self, racks: Mapping[TopicPartition, tuple[str, ...]], record_bytes: int, from_follower: bool
    ) -> None:
        self._racks = racks
        self._record_bytes = record_bytes
        self._from_follower = from_follower
        self._all: Counter[str] = Counter()
        self._crossing: Counter[str] = Counter()

    def read(self, cause: str, partition: TopicPartition, rack: str | None, records: int) -> None:
        """Read from the leader, or from a replica in the reader's rack if that is allowed (KIP-392)."""
        near = self._racks.get(partition, ())
        self._count(cause, records, rack not in (near if self._from_follower else near[:1]))

    def write(self, cause: str, partition: TopicPartition, rack: str | None, records: int) -> None:
        """Write to the leader. Replication between brokers is not counted."""
        self._count(cause, records, rack not in self._racks.get(partition, ())[:1])

    def _count(self, cause: str, records: int, crosses: bool) -> None:
        read = records * self._record_bytes
        self._all[cause] += read
        if crosses:
            self._crossing[cause] += read

    def sums(self) -> Iterator[TrafficSum]:
        """The sums of all causes; none if there are no racks."""
        for cause in _KINDS if self._racks else ():
            yield TrafficSum(cause, self._all[cause], self._crossing[cause])

"""Records without records: logs and positions as functions of time.

Every partition gets ``record_rate`` records a second from time 0. Its owner goes on from a position
at ``process_rate`` records a second until it has caught up. Integers only; times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.assignors.userdata import TopicPartition

MICROSECONDS = 1_000_000


def names(partitions: tuple[TopicPartition, ...]) -> tuple[str, ...]:
    """Partitions as a trace names them: topic-partition."""
    return tuple(map(str, partitions))


class Records:
    """What the whole group knows of the partitions: committed offsets and the furthest positions."""

    def __init__(self, record_rate: int, process_rate: int) -> None:
        self.record_rate = record_rate
        self.process_rate = process_rate
        self.committed: dict[TopicPartition, int] = {}
        self.furthest: dict[TopicPartition, int] = {}
        self.holders: dict[TopicPartition, list[Work]] = {}

    def log_end(self, now_us: int) -> int:
        return self.record_rate * now_us // MICROSECONDS

    def position(self, start: int, start_us: int, now_us: int) -> int:
        """Where an owner is that began at ``start`` at ``start_us`` and was not held up since."""
        reached = start + self.process_rate * (now_us - start_us) // MICROSECONDS
        return min(self.log_end(now_us), reached)

    def note(self, partition: TopicPartition, position: int) -> None:
        """Somebody stopped processing ``partition`` at ``position``."""
        if position > self.furthest.get(partition, 0):
            self.furthest[partition] = position

    def reached(self, partition: TopicPartition, now_us: int) -> int:
        """The furthest position that anybody has processed, if those who do now go on until then."""
        reached = self.furthest.get(partition, 0)
        for work in self.holders.get(partition, ()):
            reached = max(reached, work.position(partition, now_us))
        return reached


class Work:
    """What one process owns and how far it is on each partition."""

    __slots__ = (
        "_records",
        "_running",
        "_standing",
        "owner",
    )

    def __init__(self, records: Records, owner: str) -> None:
        self.owner = owner
        self._records = records
        self._running: dict[TopicPartition, tuple[int, int]] = {}  # position, since when
        self._standing: dict[TopicPartition, int] = {}

    def start(
        self, partitions: tuple[TopicPartition, ...], committed: tuple[int, ...], now_us: int
    ) -> tuple[int, ...]:
        """Begin at the committed offsets; at the end of the log where there is none (-1), as
        auto.offset.reset=latest has it. Returns the positions."""
        end = self._records.log_end(now_us)
        positions = tuple(end if offset < 0 else offset for offset in committed)
        for partition, position in zip(partitions, positions, strict=True):
            self._running[partition] = (position, now_us)
            self._records.holders.setdefault(partition, []).append(self)
        return positions

    def stop(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        """Stand still on these, still owning them; returns the positions."""
        positions = []
        for partition in partitions:
            position = self.position(partition, now_us)
            if self._running.pop(partition, None) is not None:
                self._standing[partition] = position
                self._records.note(partition, position)
            positions.append(position)
        return tuple(positions)

    def resume_some(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        """Go on with these, which stand still; returns the positions."""
        for partition in partitions:
            self._running[partition] = (self._standing.pop(partition), now_us)
        return tuple(self._running[partition][0] for partition in partitions)

    def resume(self, now_us: int) -> None:
        """Go on with everything that stands still."""
        for partition, position in self._standing.items():
            self._running[partition] = (position, now_us)
        self._standing.clear()

    def drop(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        """Own these no longer; returns the positions that were reached."""
        positions = self.stop(partitions, now_us)
        for partition in partitions:
            if self._standing.pop(partition, None) is not None:
                self._records.holders[partition].remove(self)
        return positions

    def stands_still(self, partition: TopicPartition) -> bool:
        return partition in self._standing

    def position(self, partition: TopicPartition, now_us: int) -> int:
        running = self._running.get(partition)
        if running is not None:
            return self._records.position(*running, now_us)
        return self._standing.get(partition, 0)

    def positions(self, now_us: int) -> dict[TopicPartition, int]:
        """The positions of all that it owns, in order."""
        return {partition: self.position(partition, now_us) for partition in self.partitions}

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """What has been begun and not dropped, in order."""
        return tuple(sorted((*self._running, *self._standing)))

    def __contains__(self, partition: object) -> bool:
        return partition in self._running or partition in self._standing


def lag(records: Records, works: Iterable[Work], partitions: Iterable[TopicPartition], now_us: int) -> int:
    """Records of these partitions that nobody has processed yet."""
    furthest = dict(records.furthest)
    for work in works:
        for partition in work.partitions:
            furthest[partition] = max(work.position(partition, now_us), furthest.get(partition, 0))
    end = records.log_end(now_us)
    return sum(end - furthest.get(partition, 0) for partition in partitions)

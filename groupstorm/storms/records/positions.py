"""Records without records: what processes have processed and committed, and the partitions that they own.

The ends of logs and the positions are functions of time (`logs`, `world/poll_loop`). Integers only;
times in microseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import offset_commit
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommit
from groupstorm.storms.records.logs import RecordLogs, ends_at
from groupstorm.storms.scenario.setting_names import EARLIEST
from groupstorm.storms.world.poll_loop import PollLoop


class _Names(dict[TopicPartition, str]):
    """The names of partitions, made when they are first wanted: whenever an owner or its pace changes."""

    def __missing__(self, partition: TopicPartition) -> str:
        name = self[partition] = str(partition)
        return name


_NAMES: Final = _Names()


def names(partitions: Iterable[TopicPartition]) -> tuple[str, ...]:
    """The names of partitions in a trace: topic-partition."""
    return tuple([_NAMES[partition] for partition in partitions])


class Records:
    """The records of all partitions: their logs, committed offsets, furthest positions, present owners."""

    def __init__(self, logs: RecordLogs) -> None:
        self.logs = logs
        self.committed: dict[TopicPartition, int] = {}
        self.furthest: dict[TopicPartition, int] = {}
        self.holders: dict[TopicPartition, list[Work]] = {}
        self._deleted: set[TopicPartition] = set()

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """The coordinator has accepted these offsets."""
        self.committed.update(positions)
        for partition in self._deleted.intersection(positions):
            del self.committed[partition]

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions were deleted, and with them the group's offsets."""
        for partition in partitions:
            self.committed.pop(partition, None)
            self.furthest.pop(partition, None)
            self._deleted.add(partition)

    def created(self, partitions: Iterable[TopicPartition], now_us: int) -> None:
        """These partitions exist from now on, perhaps under the names of deleted ones.

        An owner that has not noticed the deletion goes on in the new log, which is empty: its next fetch gets
        OFFSET_OUT_OF_RANGE (auto.offset.reset).
        """
        self._deleted.difference_update(partitions)
        for partition in partitions:
            self.logs.create(partition, now_us)
            for work in self.holders.get(partition, ()):
                work.begin_anew(partition, now_us)

    def note(self, partitions: Iterable[TopicPartition], positions: Iterable[int]) -> None:
        """An owner stopped processing the partitions at these positions."""
        furthest = self.furthest
        for partition, position in zip(partitions, positions, strict=True):
            if position and (partition not in furthest or position > furthest[partition]):
                furthest[partition] = position

    def reached(self, partition: TopicPartition, now_us: int) -> int:
        """The furthest position that any process has reached, if its present owners go on until then."""
        reached = self.furthest.get(partition, 0)
        for work in self.holders.get(partition, ()):
            reached = max(reached, work.position(partition, now_us))
        return reached


class Work:
    """The partitions that one process owns, and its position on each: running or standing still.

    ``reset``: its auto.offset.reset.
    """

    def __init__(self, records: Records, owner: str, loop: PollLoop, reset: str) -> None:
        self.owner = owner
        self.loop = loop
        self.reset = reset
        self.records = records

    def start(
        self, partitions: tuple[TopicPartition, ...], committed: tuple[int, ...], now_us: int
    ) -> tuple[int, ...]:
        """Begin at the committed offsets. Returns the positions.

        Without one (-1), or if the log has been created anew and does not reach that far, begin as
        auto.offset.reset says.
        """
        logs, earliest = self.records.logs, self.reset == EARLIEST
        ends = ends_at(logs.curves(partitions), now_us)
        positions = tuple(
            [
                offset if 0 <= offset <= end else 0 if earliest else end
                for offset, end in zip(committed, ends, strict=True)
            ]
        )
        self.loop.own(partitions, positions, now_us)
        for partition in partitions:
            self.records.holders.setdefault(partition, []).append(self)
        return positions

    def begin_anew(self, partition: TopicPartition, now_us: int) -> None:
        """Go on at the beginning of the partition's new log."""
        stands_still = self.loop.held(partition)
        self.loop.release((partition,), now_us)
        self.loop.own((partition,), (0,), now_us)
        if stands_still:
            self.loop.hold((partition,), now_us)

    def stop(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        """Stop processing these but keep them; returns the positions."""
        positions = self.loop.hold(partitions, now_us)
        self.records.note(partitions, positions)
        return positions

    def resume_some(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        """Process these again, which stand still; returns the positions."""
        self.loop.go_on(partitions, now_us)
        positions = self.loop.positions(now_us)
        return tuple([positions[partition] for partition in partitions])

    def drop(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        """Give these up; returns the positions reached."""
        positions = self.stop(partitions, now_us)
        for partition in self.loop.release(partitions, now_us):
            self.records.holders[partition].remove(self)
        return positions

    def stands_still(self, partition: TopicPartition) -> bool:
        return self.loop.held(partition)

    def position(self, partition: TopicPartition, now_us: int) -> int:
        """The position of the process; 0 if it does not own the partition."""
        return self.loop.positions(now_us).get(partition, 0)

    def positions(self, now_us: int) -> dict[TopicPartition, int]:
        """The positions on all partitions of the process, in order."""
        return self.loop.positions(now_us)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of the process, in order."""
        return self.loop.partitions

    def __contains__(self, partition: object) -> bool:
        return partition in self.loop


def caught_up(
    records: Records, works: Iterable[Work], partitions: Collection[TopicPartition], now_us: int
) -> bool:
    """Whether all records of these partitions have been processed.

    What arrived since an owner polled last does not count, if that owner took everything then.
    """
    logs, holders, furthest = records.logs, records.holders, dict(records.furthest)
    at_rest: set[TopicPartition] = set()
    behind: list[Work] = []
    for work in works:
        if work.loop.keeps_up(now_us):
            at_rest.update(work.loop.processed_partitions)
        else:
            behind.append(work)
    for work in behind:
        for partition, position in work.positions(now_us).items():
            furthest[partition] = reached = max(position, furthest.get(partition, 0))
            waits = reached < logs.end(partition, now_us) and len(holders[partition]) == 1
            if waits and partition in partitions:
                return False
    return all(
        partition in at_rest or logs.end(partition, now_us) <= furthest.get(partition, 0)
        for partition in partitions
    )


def commit_request(
    config: ConsumerConfig, positions: Mapping[TopicPartition, int], sent: Generation
) -> OffsetCommit:
    """A commit of these positions, sent in that generation."""
    offsets: dict[str, dict[int, CommittedOffset]] = {}
    for (topic, partition), position in positions.items():
        offsets.setdefault(topic, {})[partition] = CommittedOffset(position)
    return offset_commit(config, sent, offsets)

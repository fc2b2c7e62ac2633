"""Records on which an application works for long: the same for every owner of their partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.records.positions import Records
from groupstorm.storms.scenario.slow_work import SlowRecord, SlowRecordList
from groupstorm.storms.world.clock import Clock

NEVER_DONE_US: Final = 100 * 24 * 3_600_000_000
"""The work on a record that kills the process: the process dies before."""

LOOK_US: Final = 500_000
"""The interval at which the world looks whether an owner has come to such a record."""


class SlowRecordTimes:
    """`record_times.SlowRecords` of a scenario. Of several entries for one record the first one counts.

    ``fatal``: the records that kill a process, and after how long.
    """

    __slots__ = ("_entries", "_every", "_logs", "_named", "_of_number", "_of_partition", "fatal")

    def __init__(self, entries: SlowRecordList, logs: RecordLogs) -> None:
        self._entries: dict[TopicPartition, list[SlowRecord]] = {}
        self._logs = logs
        self._of_partition: dict[TopicPartition, tuple[list[int], dict[int, int]]] = {}
        self.fatal: dict[TopicPartition, tuple[int, int]] = {}
        #: (number, extra time): each so-manieth record of every partition.
        self._every: list[tuple[int, int]] = []
        #: The entry of each record that one names, and the entries of so-manieth records.
        self._named: dict[tuple[TopicPartition, int], SlowRecord] = {}
        self._of_number = {one.every: one for one in reversed(entries.records) if one.every is not None}
        for entry in entries.records:
            if entry.every is not None:
                self._every.append((entry.every, entry.work_us))
            else:
                named = TopicPartition(entry.topic, entry.partition)
                self._entries.setdefault(named, []).append(entry)
        self._find(self._entries)

    def created(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions were created now: other records arrive at the times that entries name."""
        self._find([partition for partition in partitions if partition in self._entries])

    def _find(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.fatal.pop(partition, None)
            extra: dict[int, int] = {}
            for entry in self._entries[partition]:
                arrived = self._logs.end(partition, entry.at_us or 0)
                offset = entry.offset if entry.offset is not None else arrived
                self._named.setdefault((partition, offset), entry)
                extra.setdefault(offset, NEVER_DONE_US if entry.crashes else entry.work_us)
                if entry.crashes:
                    self.fatal.setdefault(partition, (offset, entry.work_us))
            self._of_partition[partition] = (sorted(extra), extra)

    def extra_us(self, partition: TopicPartition, first: int, last: int) -> tuple[tuple[int, int], ...]:
        found: dict[int, int] = {}
        if partition in self._of_partition:
            offsets, extra = self._of_partition[partition]
            for offset in offsets[bisect_left(offsets, first) : bisect_left(offsets, last)]:
                found[offset] = extra[offset]
        for number, work_us in self._every:
            for offset in range(-(-first // number) * number, last, number):
                found.setdefault(offset, work_us)
        return tuple(sorted(found.items()))

    def entry(self, partition: TopicPartition, offset: int) -> tuple[int, str]:
        """Return the microseconds of work on the record, and its outcome; (0, "") if it is not slow."""
        found = self._named.get((partition, offset))
        numbers = [number for number, _ in self._every if not offset % number]
        if found is None and numbers:
            found = self._of_number[numbers[0]]
        return (0, "") if found is None else (found.work_us, found.outcome)

    def next_offset(self, partition: TopicPartition, first: int) -> int | None:
        candidates = [-(-first // number) * number for number, _ in self._every]
        if partition in self._of_partition:
            offsets, _ = self._of_partition[partition]
            at = bisect_left(offsets, first)
            candidates += offsets[at : at + 1]
        return min(candidates, default=None)


class FatalRecords:
    """Kills the owner that works on a fatal record, when it has done so for its time.

    ``crash`` ends the process of that name.
    """

    def __init__(
        self,
        clock: Clock,
        records: Records,
        times: SlowRecordTimes,
        crash: Callable[[str, TopicPartition], None],
    ) -> None:
        self._clock = clock
        self._records = records
        self._fatal = times.fatal
        self._crash = crash
        #: (partition, name of the owner) -> since when it has worked on the record.
        self._since_us: dict[tuple[TopicPartition, str], int] = {}
        if self._fatal:
            clock.after(LOOK_US, self._look)

    def _look(self) -> None:
        now_us = self._clock.now_us
        reached: dict[tuple[TopicPartition, str], int] = {}
        for partition, (offset, work_us) in self._fatal.items():
            if self._records.logs.end(partition, now_us) <= offset:
                continue
            for work in tuple(self._records.holders.get(partition, ())):
                if work.position(partition, now_us) != offset:
                    continue
                key = partition, work.owner
                reached[key] = self._since_us.get(key, now_us)
                if now_us - reached[key] >= work_us:
                    del reached[key]
                    self._crash(work.owner, partition)
        self._since_us = reached
        self._clock.after(LOOK_US, self._look)

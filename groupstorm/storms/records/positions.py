"""Records without records: what processes have processed and committed, the partitions that they own, and the
rows of rates: one whenever partitions get records at another rate, and those of a member's processing.

The ends of logs and the positions are functions of time (`logs`, `world/poll_loop`). Integers only;
times in microseconds.

A row of processing has positions, and rates for the time until the next row. It is right at its instant. A
reader lets each position go on by its rate, but not beyond the log's end, so a member that keeps up needs no
second row. One that is behind gets one every ten seconds, and the rates are those that lead to the next
row's positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import offset_commit
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommit
from groupstorm.storms.records.logs import RATE_SECONDS, RECORD, RecordLogs, ends_at
from groupstorm.storms.scenario.setting_names import EARLIEST
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import mean_rate
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


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


class Timetable(Protocol):
    """A clock that calls back; times in microseconds since the scenario began."""

    @property
    def now_us(self) -> int: ...

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None: ...

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None: ...


class Host(Protocol):
    """The world whose partitions get records."""

    settings: Settings
    group: str
    records: Records

    @property
    def clock(self) -> Timetable: ...

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    def trace(self, source: Source, event: TracedEvent) -> None: ...


class RecordRateRows:
    """Writes the rows of a run: partitions of which none speaks have the rate of `scenario_started`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[TopicPartition, int] = {}
        self._general = mean_rate(host.settings) * RATE_SECONDS
        self._next_us = -1

    def look(self, created: Collection[TopicPartition] = ()) -> None:
        """Write a row if partitions get records at another rate than was known; look again at each change.

        The logs of partitions that were ``created`` now are empty, whatever a row said before.
        """
        host, now_us = self._host, self._host.clock.now_us
        logs = host.records.logs
        changed: list[TopicPartition] = []
        for partition in host.partitions:
            rate = logs.rate(partition, now_us)
            known = self._known.get(partition, self._general)
            if rate != known or (partition in created and (rate or self._general)):
                self._known[partition] = rate
                changed.append(partition)
        if changed:
            of = tuple(changed)
            ends = tuple(logs.end(partition, now_us) for partition in of)
            rates = tuple(self._known[partition] for partition in of)
            host.trace(Source.WORLD, RecordRatesChanged(host.group, names(of), ends, rates))
        change_us = logs.next_change_us(now_us)
        if change_us is not None and change_us != self._next_us:
            self._next_us = change_us
            host.clock.at(change_us, self.look)


#: The interval between two rows about a member that is behind.
REVIEW_US: Final = 10_000_000

#: If polls are further apart than this, a member that keeps up is behind between two polls.
_SMOOTH_US: Final = 1_000_000

#: No rate is so far above that of the log; else products with times might exceed 64 bits.
_FASTER: Final = 1_000_000


#: Partitions, positions, rates.
EmitRow = Callable[[tuple[str, ...], tuple[int, ...], tuple[int, ...]], None]


class ProcessingRates:
    """Writes the rows of one process. ``loop`` is the process's."""

    def __init__(self, clock: Timetable, loop: PollLoop, emit: EmitRow) -> None:
        self._clock = clock
        self._loop = loop
        self._emit = emit
        self._review = 0
        #: The rates of the logs of which the last row says that the member keeps up with them.
        self._said: dict[TopicPartition, int] = {}

    def changed(self, began: bool) -> None:
        """The process owns other partitions, or goes on after a pause. ``began``: positions are new."""
        if began or self._loop.rates(self._clock.now_us).keys() != self._said.keys():
            self._said = {}
            self._write()

    def stop(self) -> None:
        """The process is gone, or stands still."""
        self._review += 1
        self._said = {}

    def finish(self) -> None:
        """The run is over: where the process stands if it is behind."""
        if not self._said:
            self._write()
        self._review += 1

    def _again(self, review: int) -> None:
        if review == self._review:
            self._write()

    def _write(self) -> None:
        loop, now_us = self._loop, self._clock.now_us
        self._review += 1
        loop.forget(now_us)
        arriving = loop.rates(now_us)
        if not arriving:
            return
        next_us: int | None = now_us + REVIEW_US
        assert next_us is not None
        caught_up_us = loop.caught_up_us(now_us, next_us) if loop.longest_interval_us <= _SMOOTH_US else None
        positions = loop.positions(now_us)
        if caught_up_us is None:
            later = loop.positions(next_us)
            rates = {tp: (later[tp] - positions[tp]) * RECORD // REVIEW_US for tp in arriving}
            self._said = {}
            self._row(positions, rates)
        else:
            if arriving != self._said:
                self._row(positions, self._keeping_up(positions, arriving, caught_up_us - now_us))
            self._said = arriving
            sure_until_us = loop.sure_until_us(now_us)
            if sure_until_us:
                next_us = None if sure_until_us < 0 else sure_until_us
        if next_us is not None:
            self._clock.at(next_us, self._again, self._review)

    def _keeping_up(
        self, positions: dict[TopicPartition, int], arriving: dict[TopicPartition, int], within_us: int
    ) -> dict[TopicPartition, int]:
        """Rates that reach the ends of the logs within this time and stay there."""
        loop, now_us = self._loop, self._clock.now_us
        spare = (loop.capacity - sum(arriving.values())) // len(arriving)
        least = {rate: max(min(spare, 9 * rate + _FASTER), 1_000) for rate in set(arriving.values())}
        rates: dict[TopicPartition, int] = {}
        for (partition, rate), end in zip(arriving.items(), loop.log_ends(now_us), strict=True):
            missing = end - positions[partition]
            needed = missing * RECORD // within_us if within_us else 0
            rates[partition] = rate + (needed if needed > least[rate] else least[rate])
        return rates

    def _row(self, positions: dict[TopicPartition, int], rates: dict[TopicPartition, int]) -> None:
        partitions = tuple(rates)
        self._emit(
            names(partitions),
            tuple([positions[partition] for partition in partitions]),
            tuple([rates[partition] for partition in partitions]),
        )

"""The figures of a share group (KIP-932): deliveries, locks, consumers, from rows about ranges of records.

How far a partition was processed is its start offset: all records before it are done. The curve of the lag
and the age of the oldest record that is not done follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from groupstorm.history.gaps import Handler
from groupstorm.history.ownership import Ownership
from groupstorm.history.records import Owner
from groupstorm.trace.events import share as events

_SECOND_US = 1_000_000
#: Causes of `ShareRecordsReturned`: these records were not given back, but taken.
_TAKEN = frozenset({"closed", "connection-closed", "lock-expired"})


@dataclass(frozen=True, slots=True)
class ShareTotals:
    """Sums over a share group's trace; None if the group is none."""

    is_group: bool = False
    delivery_counts: Mapping[str, int] | None = None
    redeliveries_by_cause: Mapping[str, int] | None = None
    lock_lost_us: int | None = None
    in_flight_max: int | None = None
    archived: int | None = None
    dead_lettered: int | None = None
    accepted: int | None = None
    out_of_order: int | None = None
    #: The time from the first consumer's start until the first record was delivered.
    first_record_us: int | None = None
    #: The time from the first delivery to the last acknowledgement.
    working_us: int | None = None
    consumer_us: int | None = None
    busy_us: int | None = None
    #: The time from the first consumer's start to the end.
    span_us: int | None = None
    without_records: int | None = None
    #: Records that were done in the last half of the time, and how long that is.
    done_lately: int = 0
    lately_us: int = 0


NO_SHARES = ShareTotals()


@dataclass(slots=True)
class SharedPartition:
    """``start``: all records before its position are done. ``done``: ranges behind that are, first -> end."""

    start: Owner
    done: dict[int, int] = field(default_factory=dict)
    #: The last record that was acknowledged so far.
    furthest: int = -1


@dataclass(slots=True)
class RunningConsumer:
    """``since_us``: of its life, and ``busy_us`` of the time in which it has records, not counted yet."""

    since_us: int
    held: int = 0
    busy_us: int | None = None
    has_got: bool = False


class ShareFigures:
    """Adds up what becomes of records. ``handlers``: by the type of the row."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._partitions: dict[str, SharedPartition] = {}
        self._consumers: dict[str, RunningConsumer] = {}
        self._is_group = False
        self._started_us: int | None = None
        self._first_record_us: int | None = None
        self._working_from_us: int | None = None
        self._accepted_us = self._from_us = 0
        self._deliveries: Counter[int] = Counter()
        self._redelivered: Counter[str] = Counter()
        #: Second -> records that were done in it.
        self._done_in: Counter[int] = Counter()
        self._forget()
        self.handlers: Mapping[type, Handler] = {
            events.ShareConsumerStarted: self._started,
            events.ShareConsumerGone: self._gone,
            events.SharePartitionsLoaded: self._loaded,
            events.ShareRecordsAcquired: self._acquired,
            events.ShareRecordsAccepted: self._accepted,
            events.ShareRecordsReturned: self._returned,
            events.ShareRecordsArchived: self._archived,
        }

    @property
    def is_deserted(self) -> bool:
        return self._is_group and not self._consumers

    def _forget(self) -> None:
        self._deliveries.clear()
        self._redelivered.clear()
        self._done_in.clear()
        self._lock_lost_us = self._in_flight_max = self._archived_count = self._dead_lettered = 0
        self._accepted_count = self._out_of_order = self._consumer_us = self._busy_us = 0
        self._without_records = 0

    def begin_window(self, from_us: int) -> None:
        """Forget what was; times that last count from now on."""
        self._forget()
        self._from_us = from_us
        if self._working_from_us is not None:
            self._working_from_us = from_us
        for one in self._consumers.values():
            one.since_us, one.has_got = from_us, one.held > 0
            if one.busy_us is not None:
                one.busy_us = from_us

    # -- consumers -------------------------------------------------------------------------------

    def _started(self, now_us: int, event: events.ShareConsumerStarted) -> None:
        if not self._is_group:
            self._is_group, self._started_us = True, now_us
            if self._ownership.lag is not None:
                self._ownership.lag.begin_peak(now_us)
        self._consumers[event.member] = RunningConsumer(now_us)

    def _gone(self, now_us: int, event: events.ShareConsumerGone) -> None:
        consumer = self._consumers.pop(event.member, None)
        if consumer is not None:
            self._book(consumer, now_us)

    def _book(self, consumer: RunningConsumer, now_us: int) -> None:
        """Count the consumer's time up to now."""
        self._consumer_us += now_us - consumer.since_us
        if consumer.busy_us is not None:
            self._busy_us += now_us - consumer.busy_us
        self._without_records += not consumer.has_got

    def _holds(self, member: str, more: int, now_us: int) -> None:
        consumer = self._consumers.get(member)
        if consumer is None:
            return  # it is gone, and the leader does not know
        consumer.held += more
        consumer.has_got = consumer.has_got or more > 0
        if consumer.held and consumer.busy_us is None:
            consumer.busy_us = now_us
        elif not consumer.held and consumer.busy_us is not None:
            self._busy_us += now_us - consumer.busy_us
            consumer.busy_us = None

    # -- records ---------------------------------------------------------------------------------

    def _loaded(self, now_us: int, event: events.SharePartitionsLoaded) -> None:
        for name, position in zip(event.partitions, event.positions, strict=True):
            if name not in self._partitions:
                start = Owner("", position, position, now_us, 0)
                self._partitions[name] = SharedPartition(start)
                if self._ownership.lag is not None:
                    lag = self._ownership.lag
                    lag.start(now_us, [lag.frontiers[name]], [start])

    def _acquired(self, now_us: int, event: events.ShareRecordsAcquired) -> None:
        if self._first_record_us is None:
            self._first_record_us = self._working_from_us = now_us
        for count, deliveries in zip(event.counts, event.deliveries, strict=True):
            self._deliveries[deliveries] += count
        self._in_flight_max = max(self._in_flight_max, *event.in_flight)
        self._holds(event.member, sum(event.counts), now_us)

    def _accepted(self, now_us: int, event: events.ShareRecordsAccepted) -> None:
        self._accepted_us = now_us
        for name, first, count in _ranges(event):
            partition = self._partitions[name]
            if first + count - 1 < partition.furthest:
                self._out_of_order += count
            else:
                partition.furthest = first + count - 1
            self._accepted_count += count
        self._done(now_us, event)

    def _archived(self, now_us: int, event: events.ShareRecordsArchived) -> None:
        self._archived_count += sum(event.counts)
        self._dead_lettered += sum(event.counts) if event.topics else 0
        self._done(now_us, event)

    def _returned(self, now_us: int, event: events.ShareRecordsReturned) -> None:
        count = sum(event.counts)
        self._redelivered[event.cause] += count
        if event.cause in _TAKEN:
            self._lock_lost_us += count * event.duration_us
        self._holds(event.member, -count, now_us)

    def _done(self, now_us: int, event: events.ShareRecordsAccepted | events.ShareRecordsArchived) -> None:
        """Records are done: the start offsets of their partitions may move."""
        lag = self._ownership.lag
        for name, first, count in _ranges(event):
            partition = self._partitions[name]
            partition.done[first] = first + count
            self._done_in[now_us // _SECOND_US] += count
            start = partition.start.position
            while start in partition.done:
                start = partition.done.pop(start)
            if start != partition.start.position:
                if lag is not None:
                    lag.reach(now_us, [lag.frontiers[name]], [start])
                partition.start.go_on(start, now_us, 0)
        self._holds(event.member, -sum(event.counts), now_us)

    # -- the end ---------------------------------------------------------------------------------

    def totals(self, end_us: int) -> ShareTotals:
        """The sums; to be called once."""
        if not self._is_group:
            return NO_SHARES
        for consumer in self._consumers.values():
            self._book(consumer, end_us)
        first_us, from_us = self._first_record_us, self._working_from_us
        half = (end_us - (end_us - (from_us or end_us)) // 2) // _SECOND_US
        end = end_us // _SECOND_US
        return ShareTotals(
            is_group=True,
            delivery_counts={str(count): number for count, number in sorted(self._deliveries.items())},
            redeliveries_by_cause=dict(sorted(self._redelivered.items())),
            lock_lost_us=self._lock_lost_us,
            in_flight_max=self._in_flight_max,
            archived=self._archived_count,
            dead_lettered=self._dead_lettered,
            accepted=self._accepted_count,
            out_of_order=self._out_of_order,
            first_record_us=None
            if first_us is None or self._started_us is None
            else first_us - self._started_us,
            working_us=None if from_us is None else max(0, self._accepted_us - from_us),
            consumer_us=self._consumer_us,
            busy_us=self._busy_us,
            span_us=end_us - max(self._from_us, self._started_us or 0),
            without_records=self._without_records,
            done_lately=sum([count for second, count in self._done_in.items() if half <= second < end]),
            lately_us=(end - half) * _SECOND_US,
        )


def _ranges(
    event: events.ShareRecordsAccepted | events.ShareRecordsArchived,
) -> Iterator[tuple[str, int, int]]:
    """The ranges of a row: partition, first record, number of records."""
    ranges: Iterable[tuple[str, int, int]] = zip(event.partitions, event.positions, event.counts, strict=True)
    return iter(ranges)

"""The records that brokers have locked for this member, its acknowledgements of them, and their errors.

Kafka's client has it in ShareCompletedFetch, ShareInFlightBatch and ShareFetch (4.4.0). Sans-IO. The other
errors of a `ShareConsumer` are those of `groupstorm.clients.consumer.errors`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import ConsumerError, OfRecord, RecordCorrupt, RefusedByKafka
from groupstorm.clients.consumer.records import ConsumerRecord, Decoding, FetchedRecords
from groupstorm.coordinator.errors import Error


class AcknowledgeType(IntEnum):
    """Kafka's AcknowledgeType, by its number in requests."""

    #: The record is done.
    ACCEPT = 1
    #: Any member may get it, and its delivery count goes up.
    RELEASE = 2
    #: Nobody gets it again.
    REJECT = 3
    #: It stays this member's, for another acquisition lock time-out (KIP-1222).
    RENEW = 4


#: In requests: there is no record at this offset (compacted, or a transaction's marker).
GAP = 0


class SharePartition(NamedTuple):
    """A partition as requests of share groups name it."""

    topic_id: UUID
    partition: int


class AckRange(NamedTuple):
    """Offsets from ``first`` to ``last`` and the type of all of them, `AcknowledgeType` or `GAP`."""

    first: int
    last: int
    type: int


def joined(ranges: Iterable[AckRange]) -> tuple[AckRange, ...]:
    """In order, and neighbours of one type are one range."""
    found: list[AckRange] = []
    for one in sorted(ranges):
        if found and found[-1].last + 1 == one.first and found[-1].type == one.type:
            found[-1] = AckRange(found[-1].first, one.last, one.type)
        else:
            found.append(one)
    return tuple(found)


@dataclass(eq=False, slots=True)
class Acknowledgements:
    """Acknowledgements of one partition that go to the leader which has locked the records.

    The broker answers all of a request's at once: ``error`` is None until then. ``deadline_ms``: until when
    they are repeated after errors that pass. ``due_ms``: they do not go out before.
    """

    node_id: int
    partition: SharePartition
    name: TopicPartition
    ranges: tuple[AckRange, ...]
    deadline_ms: int = 0
    due_ms: int = 0
    error: Error | None = None

    @property
    def renews(self) -> bool:
        return any(one.type == AcknowledgeType.RENEW for one in self.ranges)

    @property
    def offsets(self) -> frozenset[int]:
        """The offsets of records, without those of gaps."""
        return frozenset(
            offset for one in self.ranges if one.type != GAP for offset in range(one.first, one.last + 1)
        )


class Woken(ConsumerError):
    """`ShareConsumer.wakeup` was called (Kafka's WakeupException)."""


class AcknowledgementRefused(RefusedByKafka):
    """The broker has not taken acknowledgements of a partition, or the connection to it broke.

    Their records are no longer this member's, or stay locked until the acquisition lock's time-out.
    """


class NotAcknowledged(OfRecord):
    """share_acknowledgement_mode is explicit, and the application asks for more before it has acknowledged
    all records that it has (Kafka's IllegalStateException).
    """


class NotHeld(OfRecord):
    """The record is not one that the application has and may acknowledge (Kafka's IllegalStateException)."""


class ImplicitMode(ConsumerError):
    """share_acknowledgement_mode is implicit: the application acknowledges nothing itself."""


class Source(NamedTuple):
    """Where records were locked: the partition as requests name it, its name, and its leader."""

    node_id: int
    partition: SharePartition
    name: TopicPartition


class Acquired(NamedTuple):
    """A range of records that a broker has locked for the member."""

    first: int
    last: int
    delivery_count: int


@dataclass(slots=True)
class _Held:
    """A record that the application has, and what it says of it."""

    record: ConsumerRecord
    source: Source
    batch_end: int
    type: AcknowledgeType | None = None


class HeldRecords:
    """``explicit``: share.acknowledgement.mode; without it a record counts as accepted when the application
    asks for more.
    """

    def __init__(self, explicit: bool, decoding: Decoding) -> None:
        self._explicit = explicit
        self._decoding = decoding
        self._fetched: deque[_Held | RecordCorrupt] = deque()
        #: The client's own acknowledgements of offsets without a record, or without one that can be read.
        self._unread: list[Acknowledgements] = []
        self._given: dict[tuple[TopicPartition, int], _Held] = {}
        self._renewing: dict[tuple[TopicPartition, int], _Held] = {}
        self._renewed: deque[_Held] = deque()

    # -- what brokers lock -----------------------------------------------------------------------

    def fetched(self, source: Source, acquired: Sequence[Acquired], data: bytes) -> None:
        """Take an answer's batches, which may hold records that others have locked, too."""
        if not acquired:
            return
        records = FetchedRecords(source.name, acquired[0].first, data, (), self._decoding)
        unread: list[AckRange] = []
        try:
            record = records.next()
            for first, last, count in acquired:
                following = first
                while record is not None and record.offset <= last:
                    if record.offset >= first:
                        if following < record.offset:
                            unread.append(AckRange(following, record.offset - 1, GAP))
                        following = record.offset + 1
                        counted = record._replace(delivery_count=count)
                        self._fetched.append(_Held(counted, source, records.batch_end))
                    record = records.next()
                if following <= last:
                    unread.append(AckRange(following, last, GAP))
        except RecordCorrupt as corrupt:
            behind = [
                AckRange(max(first, corrupt.offset), last, AcknowledgeType.REJECT)
                for first, last, _ in acquired
                if last >= corrupt.offset
            ]
            unread += behind
            self._fetched.append(corrupt)
        if unread:
            self._unread.append(Acknowledgements(*source, joined(unread)))

    # -- what the application gets ---------------------------------------------------------------

    def ask(self) -> None:
        """The application asks for more: without explicit acknowledgement it has accepted what it has.

        Raises NotAcknowledged.
        """
        for one in self._given.values():
            if one.type is None:
                if self._explicit:
                    raise NotAcknowledged(one.record.topic_partition, one.record.offset)
                one.type = AcknowledgeType.ACCEPT

    @property
    def waits_for_renewal(self) -> bool:
        """Whether the next records come only when the broker has renewed the locks of others."""
        return bool(self._renewing) and not self._renewed

    @property
    def has_fetched(self) -> bool:
        return bool(self._renewed or self._fetched)

    def take(self, most: int, whole_batches: bool = False) -> list[ConsumerRecord]:
        """Renewed records, else at most ``most`` fetched ones; with ``whole_batches`` up to the end of a
        record batch: a broker keeps one state for a batch that is acknowledged as a whole. Raises
        RecordCorrupt.
        """
        taken: list[_Held] = []
        if self._renewed:
            taken, self._renewed = list(self._renewed), deque()
        elif not self._renewing:
            while self._fetched:
                one = self._fetched[0]
                if isinstance(one, RecordCorrupt):
                    if taken:
                        break
                    self._fetched.popleft()
                    raise one
                if len(taken) >= most and not (whole_batches and _are_of_one_batch(taken[-1], one)):
                    break
                taken.append(one)
                self._fetched.popleft()
        for one in taken:
            self._given[_key(one.record)] = one
        return [one.record for one in taken]

    # -- what the application says ---------------------------------------------------------------

    def acknowledge(self, record: ConsumerRecord, kind: AcknowledgeType) -> None:
        """Raises NotHeld."""
        held = self._given.get(_key(record))
        if held is None:
            raise NotHeld(record.topic_partition, record.offset)
        held.type = kind

    def acknowledgements(self) -> list[Acknowledgements]:
        """All that has been said and was not taken yet: the application does not have those records any more,
        except the ones to renew, which come back.
        """
        said, self._unread = self._unread, []
        by_source: dict[Source, list[AckRange]] = {}
        for key, one in list(self._given.items()):
            if one.type is not None:
                del self._given[key]
                by_source.setdefault(one.source, []).append(AckRange(key[1], key[1], int(one.type)))
                if one.type is AcknowledgeType.RENEW:
                    self._renewing[key] = one
        return said + [Acknowledgements(*source, joined(ranges)) for source, ranges in by_source.items()]

    def answered(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        """Renewed records come back to the application; a broker that refuses has given them away."""
        for one in acknowledgements:
            for offset in one.offsets if one.renews else ():
                held = self._renewing.pop((one.name, offset), None)
                if held is not None and one.error is Error.NONE:
                    held.type = None
                    self._renewed.append(held)


def _are_of_one_batch(one: _Held, other: _Held) -> bool:
    return (one.source, one.batch_end) == (other.source, other.batch_end)


def _key(record: ConsumerRecord) -> tuple[TopicPartition, int]:
    return record.topic_partition, record.offset

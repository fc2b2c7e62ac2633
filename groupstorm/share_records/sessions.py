"""Share sessions: the partitions that each member fetches from this broker (Kafka: ShareSessionCache)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.javahash import signed
from groupstorm.share_records.messages import FINAL_EPOCH, INITIAL_EPOCH, FetchedPartition
from groupstorm.share_records.ports import KafkaError, TopicPartition

_EPOCH_MAX = 2**31 - 1


class SessionKey(NamedTuple):
    group: str
    member_id: str


def next_epoch(epoch: int) -> int:
    """The epoch of a session's next request (ShareRequestMetadata.nextEpoch)."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1


@dataclass(slots=True)
class SessionPartition:
    """A partition of a session. ``has_id``: its topic's id was known when the member named it."""

    has_id: bool
    #: The next answer names the partition in any case.
    is_due: bool


class ShareSession:
    """The state of a session: its partitions are in the order in which they are fetched."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: dict[TopicPartition, bool], connection: str) -> None:
        self.key = key
        self.connection = connection
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = {one: SessionPartition(has_id, False) for one, has_id in partitions.items()}

    def update(self, wanted: Mapping[TopicPartition, bool], forgotten: Iterable[TopicPartition]) -> None:
        """Add partitions, then take others out."""
        for one, has_id in wanted.items():
            if one not in self.partitions:
                self.partitions[one] = SessionPartition(has_id, True)
        for one in forgotten:
            self.partitions.pop(one, None)

    def select(
        self, found: Mapping[TopicPartition, FetchedPartition]
    ) -> dict[TopicPartition, FetchedPartition]:
        """The part of an answer that the member needs. Partitions with records go to the end of the order."""
        selected = {}
        for key, data in found.items():
            one = self.partitions[key]
            if data.batches or one.is_due or data.error is not Error.NONE:
                selected[key] = data
            one.is_due = data.error is not Error.NONE
            if data.batches:
                self.partitions[key] = self.partitions.pop(key)
        return selected


class ShareSessions:
    """The sessions of a broker. A session that a connection made last ends with the connection."""

    def __init__(
        self, limit: int, on_leave: Callable[[SessionKey], None], on_empty: Callable[[str], None]
    ) -> None:
        self._limit = limit
        self._on_leave = on_leave
        self._on_empty = on_empty
        self._sessions: dict[SessionKey, ShareSession] = {}
        #: connection -> the session that it made last, and whether that is still there.
        self._made: dict[str, tuple[SessionKey, bool]] = {}

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(self._sessions.values())

    def find(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def get(self, key: SessionKey) -> ShareSession:
        """The session; KafkaError if there is none."""
        if key not in self._sessions:
            raise KafkaError(Error.SHARE_SESSION_NOT_FOUND)
        return self._sessions[key]

    def create(self, key: SessionKey, partitions: dict[TopicPartition, bool], connection: str) -> None:
        """Make a session in place of the member's old one. KafkaError if there are too many."""
        self.remove(key)
        if len(self._sessions) >= self._limit:
            raise KafkaError(Error.SHARE_SESSION_LIMIT_REACHED)
        self._sessions[key] = ShareSession(key, partitions, connection)
        self._made[connection] = (key, True)

    def at_epoch(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session, which has to be at this epoch. Raises KafkaError."""
        session = self.get(key)
        if session.epoch != epoch:
            raise KafkaError(Error.INVALID_SHARE_SESSION_EPOCH)
        return session

    def remove(self, key: SessionKey) -> None:
        session = self._sessions.pop(key, None)
        if session is not None and session.connection in self._made:
            made, _ = self._made[session.connection]
            self._made[session.connection] = (made, False)

    def disconnect(self, connection: str) -> None:
        """A connection has closed: its member leaves, and a group without a member is forgotten."""
        key, is_there = self._made.pop(connection, (None, False))
        if key is None:
            return
        if is_there and key in self._sessions:
            self._on_leave(key)
            self.remove(key)
        if not any(one.group == key.group for one in self._sessions):
            self._on_empty(key.group)


#: Scala's mutable maps begin with so many buckets, and double them when three quarters are taken.
_BUCKETS_MIN = 16


def in_hash_order(
    partitions: Collection[TopicPartition], hash_of: Callable[[TopicPartition], int]
) -> list[TopicPartition]:
    """The partitions of an answer, and with it of the session's next order, as a ``mutable.HashMap`` of Scala
    yields them; ``hash_of``: their unsigned hash codes.

    Kafka copies an answer of more than four partitions into another map, which this order does not follow.
    """
    if len(partitions) < 2:
        return list(partitions)
    spread = {one: number ^ number >> 16 for one in partitions for number in (hash_of(one),)}
    buckets = _BUCKETS_MIN
    while 4 * len(spread) >= 3 * buckets:
        buckets *= 2
    return sorted(spread, key=lambda one: (spread[one] & buckets - 1, signed(spread[one])))

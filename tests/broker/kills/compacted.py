"""Writers of a compacted topic, and the newest record of each key that the broker has acknowledged."""

from __future__ import annotations

import itertools
import time

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.kills.requests import Record, begin_transaction, end_transaction, read, send
from tests.broker.wire import RawClient

PRICES = "prices"
#: The partitions: of the writer without transactions, and of the one with.
_PLAIN, _TRANSACTIONAL = 0, 1
_TRANSACTION = "prices"
_KEYS = 30
#: A pass every 20 ms, over all records but those of the last two milliseconds.
BACKOFF_MS = 20
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


class CompactedTopic:
    """The topic, what its writers have sent, and what the broker has acknowledged of that."""

    def __init__(self) -> None:
        self._is_created = False
        self._numbers = itertools.count(1)
        #: Partition 0, by key: the newest acknowledged record, and the values that were sent behind it.
        self.newest: dict[bytes, Record] = {}
        self.sent_later: dict[bytes, list[bytes | None]] = {}
        #: Partition 1, by key: the number of the newest acknowledged transaction.
        self.newest_committed: dict[bytes, int] = {}
        self._aborted: set[bytes] = set()
        #: Records of acknowledged batches, and how many records the last check has found.
        self.written = self.kept = 0

    def create(self, client: RawClient) -> None:
        """Create the topic, if that was not acknowledged before."""
        if self._is_created:
            return
        configs = tuple({"name": name, "value": value} for name, value in _CONFIGS.items())
        topic = {"name": PRICES, "num_partitions": 2, "replication_factor": 1, "configs": configs}
        (created,) = client.ask(wire.CREATE_TOPICS, 5, topics=(topic,)).topics
        assert created.error_code == Error.NONE, created
        self._is_created = True

    def write(self, client: RawClient) -> None:
        """A batch of up to six records; every seventh record deletes its key."""
        number = next(self._numbers)
        keys = [b"key-%d" % (number * factor % _KEYS) for factor in range(1, 2 + number % 6)]
        values = [
            None if (number + place) % 7 == 0 else b"%d-%d" % (number, place) for place in range(len(keys))
        ]
        for key, value in zip(keys, values, strict=True):
            self.sent_later.setdefault(key, []).append(value)
        records = wire.batch(values, keys=keys, timestamp_ms=_now_ms())
        answer = send(client, PRICES, _PLAIN, records)
        assert answer.error_code == Error.NONE, answer
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            self.newest[key] = Record(answer.base_offset + place, key, value)
            self.sent_later[key] = []
        self.written += len(keys)

    def transact(self, client: RawClient) -> None:
        """One record in a transaction; every third one is aborted."""
        producer = begin_transaction(client, _TRANSACTION, PRICES, (_TRANSACTIONAL,))
        if producer is None:
            return
        number = next(self._numbers)
        key, value = b"key-%d" % (number % _KEYS), b"%d" % number
        records = wire.batch(
            [value],
            keys=[key],
            timestamp_ms=_now_ms(),
            producer_id=producer[0],
            epoch=producer[1],
            sequence=0,
            attributes=0x10,
        )
        assert send(client, PRICES, _TRANSACTIONAL, records, _TRANSACTION).error_code == Error.NONE
        commits = number % 3 != 0
        end_transaction(client, _TRANSACTION, producer, commits)
        if commits:
            self.newest_committed[key] = number
        else:
            self._aborted.add(value)

    def check(self, client: RawClient) -> None:
        """The newest record of each key is the acknowledged one, or one that was sent later."""
        if not self._is_created:
            return
        records = [*read(client, PRICES, _PLAIN)]
        self.kept = len(records)
        found = {one.key: one for one in records}
        for key, acknowledged in self.newest.items():
            self._check_key(acknowledged, found.get(key), self.sent_later[key])
        committed = [*read(client, PRICES, _TRANSACTIONAL)]
        assert not self._aborted & {one.value for one in committed}, "an aborted record is there"
        numbers = {one.key: int(one.value or b"0") for one in committed}
        for key, number in self.newest_committed.items():
            assert numbers.get(key, 0) >= number, f"{key!r}: {numbers.get(key)}, not {number} is committed"

    @staticmethod
    def _check_key(newest: Record, found: Record | None, later: list[bytes | None]) -> None:
        """A deletion may be there or not: compaction removes it."""
        if found is None:
            assert None in (newest.value, *later), f"{newest} is lost"
        elif found.offset > newest.offset:
            assert found.value in later, f"{found} was not sent behind {newest}"
        else:
            assert found == newest, f"{found} is the newest, not {newest}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

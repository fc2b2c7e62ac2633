"""Records of a test: those that it produces, and those that a topic holds, by `aiokafka.record`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.consumer.records import AbortedRecords, ConsumerRecord, FetchedRecords, decoding
from groupstorm.problems import InputError

#: The types that a test gives as a key or a value: a text is sent as UTF-8, None as null.
Content = str | bytes | None
Headers = Mapping[str, Content]

_MAGIC = 2
_NO_COMPRESSION = 0
#: So many bytes at most are put into one batch, below the broker's default of message.max.bytes.
_BATCH_BYTES = 900_000


class Produced(NamedTuple):
    """The place of a record in its topic."""

    topic: str
    partition: int
    offset: int


class NewRecord(NamedTuple):
    """A record that a test produces."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def weight(self) -> int:
        """About as many bytes as the record takes in a batch."""
        parts = (self.key, self.value, *(part for name, value in self.headers for part in (name, value)))
        return 40 + sum(len(part) + 5 for part in parts if part is not None)


def new_records(values: Sequence[Content], key: Content, headers: Headers | None) -> list[NewRecord]:
    """The records of a call. Raises InputError."""
    if headers is not None and not isinstance(headers, Mapping):
        raise InputError(f"headers: {headers!r}: expected {{'name': 'value'}}")
    found = [(_name(name), content("headers", value)) for name, value in (headers or {}).items()]
    return [NewRecord(content("key", key), content("values", value), tuple(found)) for value in values]


def content(argument: str, value: object) -> bytes | None:
    """The bytes of a key or a value. Raises InputError."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise InputError(f"{argument}: {value!r}: expected a text, bytes or None")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"headers: {name!r}: expected the name of a header")
    return name


class Spread:
    """Chooses partitions: with a key as Java's producer does, without one in turn, topic by topic."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def partition(self, topic: str, key: bytes | None, partitions: int) -> int:
        if key is not None:
            return _murmur2(key) % partitions
        number = self._next.get(topic, 0)
        self._next[topic] = number + 1
        return number % partitions


def _murmur2(key: bytes) -> int:
    try:
        from aiokafka.partitioner import murmur2
    except ImportError as missing:
        raise _missing() from missing
    found: int = murmur2(key)
    return found & 0x7FFFFFFF


def batches(records: Iterable[NewRecord], now_ms: int) -> Iterator[tuple[int, bytes]]:
    """Yield each batch in order: the number of its records, and its bytes. Raises InputError if aiokafka
    is not installed."""
    waiting: list[NewRecord] = []
    weight = 0
    for record in records:
        if waiting and weight + record.weight > _BATCH_BYTES:
            yield len(waiting), _batch(waiting, weight, now_ms)
            waiting, weight = [], 0
        waiting.append(record)
        weight += record.weight
    if waiting:
        yield len(waiting), _batch(waiting, weight, now_ms)


def _batch(records: Sequence[NewRecord], weight: int, now_ms: int) -> bytes:
    try:
        from aiokafka.record.default_records import DefaultRecordBatchBuilder
    except ImportError as missing:
        raise _missing() from missing
    builder = DefaultRecordBatchBuilder(
        magic=_MAGIC,
        compression_type=_NO_COMPRESSION,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=max(weight, 1024),
    )
    for number, record in enumerate(records):
        builder.append(
            number, timestamp=now_ms, key=record.key, value=record.value, headers=list(record.headers)
        )
    return bytes(builder.build())


def _missing() -> InputError:
    return InputError(
        "records are encoded with aiokafka, which is not installed: pip install groupstorm[kafka]"
    )


def decoded(
    partition: TopicPartition,
    offset: int,
    data: bytes,
    aborted: Collection[AbortedRecords],
    read_committed: bool,
) -> tuple[list[ConsumerRecord], int]:
    """The records of whole batches from ``offset`` on, and the position behind them. Raises InputError."""
    fetched = FetchedRecords(partition, offset, data, aborted, decoding(True, read_committed))
    found = []
    try:
        while (record := fetched.next()) is not None:
            found.append(record)
    except RecordCorrupt as problem:
        raise InputError(str(problem)) from problem
    return found, fetched.position.offset

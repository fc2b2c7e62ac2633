"""Record batches of `__consumer_offsets`, as a fetch or a segment file has them; the reader of segments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import IO, ClassVar, Final

from groupstorm.broker.log.batches import HEADER_BYTES, LENGTH_END, Batch, parse_stored
from groupstorm.broker.log.records import NoLibraryError, keyed_records, unpack
from groupstorm.imports.lines import Log
from groupstorm.imports.offsets_topic.meaning import RecordObserver
from groupstorm.imports.offsets_topic.schemas import WrittenRecord, read_key, read_value
from groupstorm.imports.source import LogSource, Observation
from groupstorm.problems import InputError
from groupstorm.protocol.codec import CodecError


class UnreadableBatch(Exception):
    """The records of a batch whose checksum is right cannot be read."""


def take_batch(batch: Batch, source: LogSource, observer: RecordObserver) -> None:
    """Give all records of a batch to the observer of the source. Raises UnreadableBatch, and InputError
    without the library for their compression."""
    if batch.is_control:
        observer.end_transaction(batch.producer_id, batch.is_commit_marker, batch.max_timestamp_ms)
        return
    transaction = batch.producer_id if batch.is_transactional else None
    try:
        found = [*keyed_records(batch.data, unpack(batch.data[HEADER_BYTES:], batch.compression))]
    except NoLibraryError as missing:
        raise InputError(
            "compressed records are read with cramjam, which is not installed: pip install groupstorm[kafka]"
        ) from missing
    except ValueError as problem:
        raise UnreadableBatch(str(problem)) from problem
    for one in found:
        source.lines += 1
        try:
            record = _written(one.key or b"", one.value)
        except CodecError as problem:
            source.count_not_understood(str(problem), str(problem)[:80])
            continue
        observer.take(
            record._replace(time_ms=one.timestamp_ms), batch.base_offset + one.offset_delta, transaction
        )


def _written(key: bytes, value: bytes | None) -> WrittenRecord:
    key_type, fields = read_key(key)
    if fields is None:
        return WrittenRecord(key_type, {}, None)
    return WrittenRecord(key_type, fields, None if value is None else read_value(key_type, value))


#: No broker writes longer batches: message.max.bytes has 31 bits, and segments of this topic have 100 MB.
_BATCH_MAX: Final = 1 << 30
#: Where a batch has its magic number, and which one it has since Kafka 0.11.
MAGIC_AT: Final = 16
MAGIC: Final = 2
_TOPIC_ID = re.compile(r"^topic_id: (?P<id>\S+)$", re.MULTILINE)
_PARTITION_FOLDER = re.compile(r"(?P<topic>.+)-\d+")


class OffsetsSegments(LogSource):
    """The segments of one partition, in the order of their offsets. ``line``: a record's offset."""

    unit: ClassVar[str] = "record"

    def __init__(self, log: Log, number: int) -> None:
        super().__init__(log, number)
        self._observer = RecordObserver(self)
        self._names: list[str] = []
        self._bases: list[int] = []

    def observations(self) -> Iterator[Observation]:
        self.topic_names |= _topics_beside(self.log)
        for file in self.files():
            yield from self._segment(file.name, file.bytes)
        yield from self._observer.finish()

    def place(self, line: int) -> str:
        """``file:offset``."""
        return f"{self._names[max(0, bisect_right(self._bases, line) - 1)]}:{line}"

    def _segment(self, name: str, file: IO[bytes]) -> Iterator[Observation]:
        at, is_first = 0, True
        left_out: dict[str, list[int]] = {}
        while head := file.read(HEADER_BYTES):
            offset, size = announced(head)
            if is_first:
                self._names.append(name)
                self._bases.append(offset)
                is_first = False
            if len(head) < HEADER_BYTES:
                self.damage.append(f"{name}: the last batch breaks off at byte {at + len(head)}")
                break
            if not any(head):
                break  # a segment that was allocated in advance ends in zeros
            if not HEADER_BYTES <= size <= _BATCH_MAX:
                self.damage.append(f"{name}: at byte {at} is no record batch, the rest is not read")
                break
            data = head + file.read(size - HEADER_BYTES)
            if len(data) < size:
                self.damage.append(f"{name}: the last batch breaks off at byte {at + len(data)}")
                break
            at += size
            if data[MAGIC_AT] != MAGIC:
                left_out.setdefault("is of Kafka 0.10 or older", []).append(offset)
                continue
            parsed = parse_stored(data)
            if parsed is None:
                left_out.setdefault("has a wrong checksum", []).append(offset)
                continue
            try:
                take_batch(parsed, self, self._observer)
            except UnreadableBatch as problem:
                left_out.setdefault(f"cannot be read ({problem})", []).append(offset)
            yield from self._observer.ready()
        for why, offsets in left_out.items():
            more = f" (and {len(offsets) - 1} more)" if len(offsets) > 1 else ""
            self.damage.append(f"{name}: the batch at offset {offsets[0]}{more} {why}, left out")


def announced(head: bytes) -> tuple[int, int]:
    """The offset of a batch, and how many bytes it has, by its header."""
    return int.from_bytes(head[:8], "big", signed=True), LENGTH_END + int.from_bytes(
        head[8:LENGTH_END], "big", signed=True
    )


def _topics_beside(log: Log) -> dict[str, str]:
    """Topic id -> name, by the `partition.metadata` of the partitions in the same data folder (KIP-516)."""
    names: dict[str, str] = {}
    for folder in {path.parent.parent for path in log.files}:
        for file in folder.glob("*/partition.metadata"):
            found = _PARTITION_FOLDER.fullmatch(file.parent.name)
            topic_id = _read_topic_id(file)
            if found is not None and topic_id is not None:
                names[topic_id] = found["topic"]
    return names


def _read_topic_id(file: Path) -> str | None:
    try:
        found = _TOPIC_ID.search(file.read_text("utf-8", "replace"))
    except OSError:
        return None
    return None if found is None else found["id"]

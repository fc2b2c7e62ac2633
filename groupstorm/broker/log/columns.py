"""The batches of one log: numbers in columns, and bytes in memory or in the file that holds the records."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from groupstorm.broker.log.batches import Batch

NO_TIMESTAMP = -1
#: The position of a batch whose bytes are in memory.
IN_MEMORY = -1


class RecordFile(Protocol):
    """The file into which a broker writes its batches (`serve --data`)."""

    def read_batch(self, position: int, size: int) -> bytes:
        """Raises OSError if the file does not give so many bytes."""


class RecordStore:
    """The file of batches that are not in memory, for all logs of a broker."""

    def __init__(self) -> None:
        self.file: RecordFile | None = None

    def read(self, position: int, size: int) -> bytes:
        """Raises OSError."""
        assert self.file is not None, "a batch has a position in a file that is not there"
        return self.file.read_batch(position, size)


class Columns(NamedTuple):
    """The numbers of all batches of a log."""

    base_offsets: array[int]
    last_offsets: array[int]
    max_timestamps_ms: array[int]
    """`NO_TIMESTAMP` for a batch that compaction has emptied: no record of it has one."""
    positions: array[int]
    sizes: array[int]

    @classmethod
    def from_bytes(cls, data: bytes) -> Columns:
        """Read the bytes that `to_bytes` has written. Raises ValueError."""
        size, rest = divmod(len(data), len(cls._fields))
        columns = cls(*(array("q") for _ in cls._fields))
        if rest or size % columns.sizes.itemsize:
            raise ValueError(f"{len(data)} bytes are no {len(columns)} columns")
        for number, column in enumerate(columns):
            column.frombytes(data[number * size : (number + 1) * size])
            if sys.byteorder == "big":
                column.byteswap()
        return columns

    def to_bytes(self) -> bytes:
        """Column after column, little-endian."""
        if sys.byteorder == "little":
            return b"".join(column.tobytes() for column in self)
        swapped = [column[:] for column in self]
        for column in swapped:
            column.byteswap()
        return b"".join(column.tobytes() for column in swapped)


class LogBatches:
    """In the order of their offsets; there may be gaps between them."""

    __slots__ = ("_data", "_store", "columns")

    def __init__(self, store: RecordStore) -> None:
        self.columns = Columns(array("q"), array("q"), array("q"), array("q"), array("q"))
        #: None: in the file.
        self._data: list[bytes | None] = []
        self._store = store

    def __len__(self) -> int:
        return len(self._data)

    def append(self, data: bytes, position: int = IN_MEMORY) -> None:
        """Add a batch behind the others; with a position it is in the file, and its bytes are not kept."""
        for column, value in zip(self.columns, _row(data, position), strict=True):
            column.append(value)
        self._data.append(data if position == IN_MEMORY else None)

    def extend(self, columns: Columns) -> None:
        """Add batches that are in the file."""
        for column, more in zip(self.columns, columns, strict=True):
            column.extend(more)
        self._data += [None] * len(columns.sizes)

    def data(self, index: int) -> bytes:
        """The bytes of a batch. Raises OSError if the file cannot be read."""
        data = self._data[index]
        if data is not None:
            return data
        return self._store.read(self.columns.positions[index], self.columns.sizes[index])

    def all_data(self) -> Iterator[bytes]:
        """The bytes of all batches. Raises OSError."""
        return map(self.data, range(len(self)))

    def index_of(self, base_offset: int) -> int | None:
        """The batch that begins at this offset, if it is there."""
        index = self.from_base(base_offset)
        found = index < len(self) and self.columns.base_offsets[index] == base_offset
        return index if found else None

    def from_base(self, offset: int) -> int:
        """The first batch that begins at this offset or behind it."""
        return bisect_left(self.columns.base_offsets, offset)

    def holding(self, offset: int) -> int:
        """The first batch that ends at this offset or behind it."""
        return bisect_left(self.columns.last_offsets, offset)

    def size_of(self, start: int, end: int) -> int:
        return sum(self.columns.sizes[start:end])

    def place(self, base_offset: int, position: int) -> None:
        """The bytes of this batch are in the file now: the memory need not keep them."""
        index = self.index_of(base_offset)
        if index is not None:
            self.columns.positions[index] = position
            self._data[index] = None

    def place_all(self, positions: Sequence[int]) -> None:
        """The bytes of all batches are in the file now, at these positions."""
        self.columns.positions[:] = array("q", positions)
        self._data = [None] * len(self)

    def replace(self, index: int, data: bytes, position: int = IN_MEMORY) -> None:
        """Put another batch with the same offsets in the place of this one."""
        for column, value in zip(self.columns, _row(data, position), strict=True):
            column[index] = value
        self._data[index] = data if position == IN_MEMORY else None

    def drop(self, count: int) -> None:
        """Remove the oldest batches."""
        for column in (*self.columns, self._data):
            del column[:count]

    def remove(self, base_offsets: Collection[int]) -> None:
        kept = [at for at, offset in enumerate(self.columns.base_offsets) if offset not in base_offsets]
        self.columns = Columns(*(array("q", [column[at] for at in kept]) for column in self.columns))
        self._data = [self._data[at] for at in kept]


def _row(data: bytes, position: int) -> tuple[int, int, int, int, int]:
    batch = Batch.read(data)
    max_timestamp_ms = batch.max_timestamp_ms if batch.count_of_records else NO_TIMESTAMP
    return batch.base_offset, batch.last_offset, max_timestamp_ms, position, len(data)

"""Sorting more than memory holds: sorted runs in temporary files, merged when they are read."""

from __future__ import annotations

import heapq
import marshal
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

#: Items that are held in memory before they go to disk as a run.
HELD_MAX = 50_000
_CHUNK = 2_000
_LENGTH_BYTES = 8
#: More runs than this are merged into one before more are written: each is an open file.
_RUNS_MAX = 64

Item = tuple[Any, ...]


class SpillingSorter:
    """Takes tuples in any order and gives them back sorted by ``key``; equal keys keep their order.

    Tuples may hold texts, numbers, None, tuples, lists and dicts: what `marshal` writes.
    """

    def __init__(self, key: Callable[[Item], Any]) -> None:
        self._key = key
        self._held: list[Item] = []
        self._runs: list[IO[bytes]] = []

    def add(self, item: Item) -> None:
        self._held.append(item)
        if len(self._held) >= HELD_MAX:
            self._held.sort(key=self._key)
            if len(self._runs) >= _RUNS_MAX:
                self._runs = [_written(heapq.merge(*map(_read, self._runs), key=self._key))]
            self._runs.append(_written(iter(self._held)))
            self._held = []

    def sorted(self) -> Iterator[Item]:
        """All of them; to be called once, when the last was added."""
        self._held.sort(key=self._key)
        held, self._held = self._held, []
        if not self._runs:
            return iter(held)
        return heapq.merge(*map(_read, self._runs), iter(held), key=self._key)


def _written(items: Iterator[Item]) -> IO[bytes]:
    """A temporary file, which has no name and ends with the process."""
    file: IO[bytes] = tempfile.TemporaryFile(prefix="groupstorm-import-")  # noqa: SIM115  # it stays open
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) >= _CHUNK:
            _write(chunk, file)
            chunk = []
    _write(chunk, file)
    return file


def _write(chunk: list[Item], file: IO[bytes]) -> None:
    """Append the chunk and its length: `marshal.load`, which needs no length, reads a file number by
    number."""
    data = marshal.dumps(chunk)
    file.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def _read(file: IO[bytes]) -> Iterator[Item]:
    file.seek(0)
    while length := file.read(_LENGTH_BYTES):
        yield from marshal.loads(file.read(int.from_bytes(length, "big")))  # written by this process
    file.close()

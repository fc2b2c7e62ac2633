"""The folder of `serve --data`: one journal, locked while a broker serves from the folder.

The changes of a step are written before a client gets its answer. They are handed to the operating system
and not forced onto the disk: the changes survive the end of the process, by a kill too, but not a power
failure.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from groupstorm.broker.changes import Change
from groupstorm.broker.journal import JournalError, decode, encode
from groupstorm.problems import InputError, OutputError

_JOURNAL = "journal"
_NEW = "journal.new"
_LOCK = "lock"
#: The journal is written anew as soon as it has grown by so much and has doubled.
_COMPACT_AFTER_BYTES = 64 * 1024 * 1024
#: Changes of a snapshot that go into one frame.
_CHANGES_PER_FRAME = 1000


class DataDirectory:
    """Opens the folder, and makes the folder if there is none.

    Raises InputError if the folder cannot be used: it cannot be made or opened, or another process serves
    from it.
    """

    def __init__(self, folder: Path, on_warning: Callable[[str], None]) -> None:
        """``on_warning`` receives a line about the end of a journal that was cut off."""
        self.folder = folder
        self._on_warning = on_warning
        self._journal = -1
        self._compact_at = 0
        self._size = 0
        self._whole_bytes = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as problem:
            raise self._unusable(problem) from problem
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(self._lock)
            raise InputError(f"--data {folder}: another process serves from it") from problem

    def read(self) -> list[Change]:
        """All written changes; [] in a new folder. Bytes behind the last whole frame are left out: they were
        being written when the process ended, and no client has the answer.

        Raises InputError if the journal is damaged in front of a whole frame, or if it has none: `rewrite`
        puts no journal in place that is not whole.
        """
        path = self.folder / _JOURNAL
        try:
            data = path.read_bytes() if path.exists() else b""
            changes, end = decode(data)
        except OSError as problem:
            raise self._unusable(problem) from problem
        except JournalError as problem:
            raise InputError(f"--data {self.folder}: {_JOURNAL}: {problem}") from problem
        self._whole_bytes = end
        if data and not end:
            raise InputError(f"--data {self.folder}: {_JOURNAL}: no whole frame is in its {len(data)} bytes")
        if end < len(data):
            cut = f"the last {len(data) - end} bytes are no whole frame and are cut off, {end} are kept"
            self._on_warning(f"--data {self.folder}: {_JOURNAL}: {cut}")
        return changes

    def go_on(self, live_bytes: int) -> bool:
        """Write behind the journal that was read, without its cut-off end. False: there is none, or a new
        journal with ``live_bytes`` of records would be much shorter.

        Raises OutputError.
        """
        compact_at = live_bytes + max(live_bytes, _COMPACT_AFTER_BYTES)
        if not self._whole_bytes or self._whole_bytes >= compact_at:
            return False
        try:
            self._journal = os.open(self.folder / _JOURNAL, os.O_WRONLY | os.O_APPEND)
            os.ftruncate(self._journal, self._whole_bytes)
        except OSError as problem:
            raise self._unwritten(problem) from problem
        self._size, self._compact_at = self._whole_bytes, compact_at
        return True

    def rewrite(self, changes: Iterable[Change]) -> None:
        """Begin a new journal with these changes, in place of the old one.

        Raises OutputError: then the old journal is as it was, and nothing is left of the new one.
        """
        path = self.folder / _NEW
        try:
            journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        except OSError as problem:
            raise self._unwritten(problem) from problem
        try:
            size = sum(_write(journal, frame) for frame in _frames(changes))
            os.replace(path, self.folder / _JOURNAL)
        except OSError as problem:
            os.close(journal)
            path.unlink(missing_ok=True)
            raise self._unwritten(problem) from problem
        if self._journal >= 0:
            os.close(self._journal)
        self._journal, self._size = journal, size
        self._compact_at = size + max(size, _COMPACT_AFTER_BYTES)

    def append(self, changes: Iterable[Change]) -> None:
        """Write the changes of one step. Raises OutputError."""
        try:
            self._size += _write(self._journal, encode(changes))
        except OSError as problem:
            raise self._unwritten(problem) from problem

    @property
    def wants_rewriting(self) -> bool:
        """Whether a snapshot would be much shorter than the journal."""
        return self._size >= self._compact_at

    def put_off_rewriting(self) -> None:
        """Want it again when as much more has been written as for the first time."""
        self._compact_at = self._size + _COMPACT_AFTER_BYTES

    def close(self) -> None:
        if self._journal >= 0:
            os.close(self._journal)
        os.close(self._lock)

    def _unusable(self, problem: OSError) -> InputError:
        return InputError(f"--data {self.folder}: cannot be used: {problem.strerror or problem}")

    def _unwritten(self, problem: OSError) -> OutputError:
        return OutputError(f"--data {self.folder}: cannot be written: {problem.strerror or problem}")


def _frames(changes: Iterable[Change]) -> Iterable[bytes]:
    frame: list[Change] = []
    for change in changes:
        frame.append(change)
        if len(frame) >= _CHANGES_PER_FRAME:
            yield encode(frame)
            frame = []
    if frame:
        yield encode(frame)


def _write(descriptor: int, data: bytes) -> int:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    return len(data)

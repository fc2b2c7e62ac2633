"""The folder of `serve --data`: one journal, locked while it is served from.

What a step of the broker changed is written before anybody is told. It is handed to the operating system, not
forced onto the disk: it survives the process, however that ends, not the machine.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from groupstorm.coordinator.server.changes import Change
from groupstorm.coordinator.server.journal import JournalError, decode, encode
from groupstorm.problems import InputError

_JOURNAL = "journal"
_NEW = "journal.new"
_LOCK = "lock"
#: The journal is written anew when so much has been added since, and twice what it had then.
_COMPACT_AFTER_BYTES = 64 * 1024 * 1024
#: Changes of a snapshot that go into one frame.
_CHANGES_PER_FRAME = 1000


class DataDirectory:
    """Opens the folder, and makes it where it is not there.

    Raises InputError if it cannot be used: no place to write, another process in it, a journal that is
    damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal = -1
        self._compact_at = 0
        self._size = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as problem:
            raise self._refusal(problem) from problem
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(self._lock)
            raise InputError(f"--data {folder}: another process serves from it") from problem

    def read(self) -> list[Change]:
        """Everything that was written; [] in a new folder. What was being written at the end is left out."""
        path = self.folder / _JOURNAL
        try:
            data = path.read_bytes() if path.exists() else b""
            return decode(data)[0]
        except OSError as problem:
            raise self._refusal(problem) from problem
        except JournalError as problem:
            raise InputError(f"--data {self.folder}: {_JOURNAL}: {problem}") from problem

    def rewrite(self, changes: Iterable[Change]) -> None:
        """Begin a new journal with these changes, in place of the old one. Raises InputError."""
        path = self.folder / _NEW
        try:
            journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
            size = sum(_write(journal, frame) for frame in _frames(changes))
            os.replace(path, self.folder / _JOURNAL)
        except OSError as problem:
            raise self._refusal(problem) from problem
        if self._journal >= 0:
            os.close(self._journal)
        self._journal, self._size = journal, size
        self._compact_at = size + max(size, _COMPACT_AFTER_BYTES)

    def append(self, changes: Iterable[Change]) -> None:
        """What one step changed. Raises InputError."""
        try:
            self._size += _write(self._journal, encode(changes))
        except OSError as problem:
            raise self._refusal(problem) from problem

    @property
    def wants_rewriting(self) -> bool:
        """Whether much of the journal is about what is no longer so."""
        return self._size >= self._compact_at

    def close(self) -> None:
        if self._journal >= 0:
            os.close(self._journal)
        os.close(self._lock)

    def _refusal(self, problem: OSError) -> InputError:
        return InputError(f"--data {self.folder}: cannot be used: {problem.strerror or problem}")


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

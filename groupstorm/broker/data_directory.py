"""The folder of `serve --data`: one journal and a checkpoint of it, locked while a broker serves from it.

The changes of a step are written before a client gets its answer. They are handed to the operating system
and not forced onto the disk: the changes survive the end of the process, by a kill too, but not a power
failure. The journal is also the file that record batches are read from.

A folder whose journal has lost what was in it is refused; ``accept_loss`` goes on with the whole frames in
front of the loss, and keeps the files as `journal.lost-1` and `checkpoint.lost-1`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeAlias

import crc32c

from groupstorm.broker.changes import BatchAppended, BatchRewritten, Change, CheckpointTaken
from groupstorm.broker.config import INT32_MAX
from groupstorm.broker.journal import (
    BEGINNING,
    RECOGNISED_BYTES,
    VERSION,
    Bytes,
    Checkpoint,
    JournalError,
    JournalReader,
    Link,
    frames,
    read_checkpoint,
    write_checkpoint,
)
from groupstorm.broker.log.batches import parse_stored
from groupstorm.problems import InputError, OutputError

_JOURNAL = "journal"
_NEW = "journal.new"
_CHECKPOINT = "checkpoint"
_NEW_CHECKPOINT = "checkpoint.new"
_LOCK = "lock"
#: The lock says so when there is a journal: one that is missing then was deleted.
_HAS_JOURNAL = b"there is a journal\n"
#: Passwords' verifiers are in the files.
_MODE = 0o600
#: The journal is written anew if it is longer than what there is by so much, and twice as long.
_COMPACT_AFTER_BYTES = 64 * 1024 * 1024
#: A frame's length has four bytes; a request has a tenth of this at most, unless its limit was raised.
_STEP_BYTES = 1024 * 1024 * 1024
#: A checkpoint is written when so much is behind the one before, and so many times its size.
_CHECKPOINT_AFTER_BYTES = 64 * 1024 * 1024
_CHECKPOINT_RATIO = 4

#: The name of a topic, and a number.
PartitionName: TypeAlias = tuple[str, int]


class DataDirectory:
    """Opens the folder, and makes the folder if there is none.

    Raises InputError if the folder cannot be used: it cannot be made or opened, or another process serves
    from it.
    """

    def __init__(self, folder: Path, on_warning: Callable[[str], None], accept_loss: bool = False) -> None:
        """``on_warning`` receives a line about the end of a journal that was cut off, a damaged checkpoint,
        and a loss that is accepted."""
        self.folder = folder
        self._on_warning = on_warning
        self._accept_loss = accept_loss
        self._has_lost = False
        self._place = BEGINNING
        self._is_of_this_version = True
        self._journal = -1
        self._compact_at = 0
        self._size = 0
        self._whole_bytes = 0
        self._checkpointed_bytes = 0
        self._checkpointed_place = BEGINNING
        self._checkpoint_size = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, _MODE)
        except OSError as problem:
            raise self._unusable(problem) from problem
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(self._lock)
            raise InputError(f"--data {folder}: another process serves from it") from problem

    def read(self, use_checkpoint: bool = True) -> Iterator[Change]:
        """All written changes; none in a new folder. Batches have their positions, for `read_batch`.

        Bytes behind the last whole frame are left out: they were being written when the process ended, and no
        client has the answer.

        ``use_checkpoint``: begin with the checkpoint, if there is one.

        Raises InputError if the journal is damaged in front of a whole frame, if it has none (`rewrite` puts
        no journal in place that is not whole), and if its checkpoint tells of more.
        """
        path = self.folder / _JOURNAL
        data: Bytes = b""
        try:
            if path.exists() and path.stat().st_size:
                with path.open("rb") as file:
                    data = mmap(file.fileno(), 0, access=ACCESS_READ)
            checkpoint = self._read_checkpoint()
            had_journal = path.exists() or bool(self._checkpoint_size) or bool(os.pread(self._lock, 1, 0))
        except OSError as problem:
            raise self._unusable(problem) from problem
        self._check_is_whole(data, checkpoint, had_journal)
        changes: Sequence[Change] = ()
        self._checkpointed_bytes, self._checkpointed_place = 0, BEGINNING
        if (
            use_checkpoint
            and checkpoint is not None
            and checkpoint.changes is not None
            and not self._has_lost
        ):
            taken, changes = checkpoint.taken, checkpoint.changes
            self._checkpointed_bytes = taken.journal_bytes
            self._checkpointed_place = Link(taken.frames, taken.frame_checksum)
        yield from changes
        yield from self._read_journal(data)

    def _read_checkpoint(self) -> Checkpoint | None:
        path = self.folder / _CHECKPOINT
        if not path.exists():
            return None
        data = path.read_bytes()
        self._checkpoint_size = len(data)
        checkpoint = read_checkpoint(data)
        if checkpoint is None:
            self._on_warning(f"--data {self.folder}: {_CHECKPOINT}: is damaged: the whole journal is read")
        return checkpoint

    def _check_is_whole(self, data: Bytes, checkpoint: Checkpoint | None, had_journal: bool) -> None:
        """Raises InputError if the journal is shorter than it was, unless that is accepted."""
        try:
            if checkpoint is not None:
                checkpoint.check(data)
            if had_journal and not data:
                raise JournalError("it is missing or empty, and there was one")
        except JournalError as problem:
            self._lose(problem)

    def _read_journal(self, data: Bytes) -> Iterator[Change]:
        """The changes behind the checkpoint."""
        reader = JournalReader(data, self._checkpointed_bytes, self._checkpointed_place, in_file=True)
        try:
            yield from reader.changes()
            if data and not reader.end:
                raise JournalError(f"no whole frame is in its {len(data)} bytes")
        except JournalError as problem:
            self._lose(problem)
        self._whole_bytes, self._place = end, _ = reader.end, reader.place
        self._is_of_this_version = reader.version in (None, VERSION)
        if end < len(data) and not self._has_lost:
            cut = f"the last {len(data) - end} bytes are no whole frame and are cut off, {end} are kept"
            self._on_warning(f"--data {self.folder}: {_JOURNAL}: {cut}")

    def _lose(self, problem: JournalError) -> None:
        """Raises InputError unless the loss is accepted."""
        if not self._accept_loss:
            raise self._damaged(problem) from problem
        if not self._has_lost:
            self._on_warning(f"--data {self.folder}: {_JOURNAL}: {problem}: --accept-loss goes on without it")
        self._has_lost = True

    @property
    def checkpointed(self) -> tuple[int, Link]:
        """The beginning of the journal that the checkpoint stands for: `read` has not looked at it."""
        return self._checkpointed_bytes, self._checkpointed_place

    def check_frames(self, end: int, place: Link, is_ended: Callable[[], bool]) -> None:
        """Look at the frames in front of ``end``; another thread may write to the journal. Returns early if
        ``is_ended()``.

        Raises InputError if a frame is damaged or not where it was written.
        """
        try:
            with (
                (self.folder / _JOURNAL).open("rb") as file,
                mmap(file.fileno(), 0, access=ACCESS_READ) as data,
            ):
                JournalReader(data).check(end, place, is_ended)
        except OSError as problem:
            raise self._unusable(problem) from problem
        except JournalError as problem:
            raise self._damaged(problem) from problem

    def go_on(self, live_bytes: int) -> bool:
        """Write behind the journal that was read, without its cut-off end. False: there has to be a new one,
        since there is none, it has lost something or has an older format, or since a new one with
        ``live_bytes`` of records would be much shorter.

        Raises OutputError.
        """
        if not self._whole_bytes:
            return False
        try:
            self._journal = os.open(self.folder / _JOURNAL, os.O_RDWR | os.O_APPEND)
            if not self._has_lost:
                os.ftruncate(self._journal, self._whole_bytes)
                self._note_journal()
        except OSError as problem:
            raise self._unwritten(problem) from problem
        self._size = self._whole_bytes
        self.put_off_rewriting()
        is_as_written = self._is_of_this_version and not self._has_lost
        return is_as_written and not self.is_much_longer_than(live_bytes)

    def _note_journal(self) -> None:
        os.pwrite(self._lock, _HAS_JOURNAL, 0)

    def rewrite(self, changes: Iterable[Change]) -> dict[PartitionName, array[int]]:
        """Begin a new journal with these changes, in place of the old one. Return the positions of its
        batches, in the order of the changes; there is no checkpoint of it yet.

        Raises OutputError: then the old journal is as it was, and nothing is left of the new one.
        """
        path = self.folder / _NEW
        try:
            journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, _MODE)
        except OSError as problem:
            raise self._unwritten(problem) from problem
        size, place = 0, BEGINNING
        positions: dict[PartitionName, array[int]] = {}
        try:
            for one in frames(changes, place):
                for change, at in one.batches:
                    positions.setdefault((change.name, change.partition), array("q")).append(size + at)
                size += _write(journal, one.data)
                place = one.behind
            os.fdatasync(journal)  # the old one, which may be on the disk, goes
            self._put_in_place(path)
        except OSError as problem:
            os.close(journal)
            path.unlink(missing_ok=True)
            raise self._unwritten(problem) from problem
        if self._journal >= 0:
            os.close(self._journal)
        self._journal, self._size, self._place = journal, size, place
        self._compact_at = size + max(size, _COMPACT_AFTER_BYTES)
        self._checkpointed_bytes = self._checkpoint_size = 0
        return positions

    def _put_in_place(self, new: Path) -> None:
        """Make it the journal. The checkpoint of the old one goes first: it would not be this one's. Both are
        kept if they have lost something."""
        if self._has_lost:
            kept = [name for name in (_CHECKPOINT, _JOURNAL) if (self.folder / name).exists()]
            number = next(n for n in count(1) if not any(self._lost(name, n).exists() for name in kept))
            for name in kept:
                os.replace(self.folder / name, self._lost(name, number))
            names = " and ".join(self._lost(name, number).name for name in reversed(kept)) or "nothing"
            self._on_warning(
                f"--data {self.folder}: kept as {names}: {self._whole_bytes} bytes of the journal are used"
            )
            self._has_lost = False
        else:
            (self.folder / _CHECKPOINT).unlink(missing_ok=True)
        self._sync_names()
        os.replace(new, self.folder / _JOURNAL)
        self._note_journal()

    def _lost(self, name: str, number: int) -> Path:
        return self.folder / f"{name}.lost-{number}"

    def _sync_names(self) -> None:
        """Bring the renames and removals so far to the disk, before what follows gets there."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def append(self, changes: Iterable[Change]) -> list[tuple[BatchAppended | BatchRewritten, int]]:
        """Write the changes of one step. Return the positions of its batches.

        A step with more than `_STEP_BYTES` is a compaction's: each of its changes may be the last one.
        Raises OutputError.
        """
        positions = []
        try:
            for one in frames(changes, self._place, _STEP_BYTES, INT32_MAX):
                positions += [(change, self._size + at) for change, at in one.batches]
                self._size += _write(self._journal, one.data)
                self._place = one.behind
        except OSError as problem:
            raise self._unwritten(problem) from problem
        return positions

    @property
    def wants_rewriting(self) -> bool:
        """Whether it is time to see if a snapshot would be much shorter than the journal."""
        return self._size >= self._compact_at

    def is_much_longer_than(self, live_bytes: int) -> bool:
        """Whether the journal is so much longer than the records that there are."""
        return self._size >= live_bytes + max(live_bytes, _COMPACT_AFTER_BYTES)

    def put_off_rewriting(self) -> None:
        """Want it again when as much more has been written as for the first time."""
        self._compact_at = self._size + _COMPACT_AFTER_BYTES

    @property
    def wants_checkpoint(self) -> bool:
        """Whether so much has been written behind the checkpoint that a restart would take long. A checkpoint
        of many small batches is large: it is written less often."""
        behind = max(_CHECKPOINT_AFTER_BYTES, _CHECKPOINT_RATIO * self._checkpoint_size)
        return self._size - self._checkpointed_bytes >= behind

    @property
    def is_checkpointed(self) -> bool:
        """Whether nothing has been written behind the checkpoint."""
        return self._size == self._checkpointed_bytes

    def write_checkpoint(self, changes: Iterable[Change]) -> None:
        """``changes``: from an empty state to the present one, without the batches, which are in the journal.

        The journal reaches the disk before the checkpoint does. Raises OutputError: then there is the old
        checkpoint, or none.
        """
        path = self.folder / _NEW_CHECKPOINT
        try:
            os.fdatasync(self._journal)
            file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb")
        except OSError as problem:
            raise self._unwritten(problem) from problem
        try:
            with file:
                tail = os.pread(self._journal, RECOGNISED_BYTES, max(0, self._size - RECOGNISED_BYTES))
                taken = CheckpointTaken(self._size, crc32c.crc32c(tail), *self._place)
                data = write_checkpoint(changes, taken)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path, self.folder / _CHECKPOINT)
        except OSError as problem:
            path.unlink(missing_ok=True)
            raise self._unwritten(problem) from problem
        self._checkpointed_bytes, self._checkpoint_size = self._size, len(data)

    def put_off_checkpoint(self) -> None:
        """Want one again when as much more has been written."""
        self._checkpointed_bytes = self._size

    def close(self) -> None:
        if self._journal >= 0:
            os.close(self._journal)
        self._journal = -1
        os.close(self._lock)

    def read_batch(self, position: int, size: int) -> bytes:
        """A batch of the journal. Raises OSError if it cannot be read, or is damaged."""
        data = os.pread(self._journal, size, position)
        if len(data) < size or parse_stored(data) is None:
            raise OSError(errno.EIO, f"the batch at byte {position} of the journal is damaged")
        return data

    def _damaged(self, problem: JournalError) -> InputError:
        return InputError(
            f"--data {self.folder}: {_JOURNAL}: {problem}: put the whole file back, or go on without what is "
            "lost by --accept-loss, which keeps the files"
        )

    def _unusable(self, problem: OSError) -> InputError:
        return InputError(f"--data {self.folder}: cannot be used: {problem.strerror or problem}")

    def _unwritten(self, problem: OSError) -> OutputError:
        return OutputError(f"--data {self.folder}: cannot be written: {problem.strerror or problem}")


def _write(descriptor: int, data: bytes) -> int:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    return len(data)

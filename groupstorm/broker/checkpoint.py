"""The format of a checkpoint of the journal: the state at one of its positions, and where its batches are.

A restart reads the checkpoint and the journal behind that position. The journal reaches the disk before its
checkpoint does: one that is shorter, or ends in other bytes there, has lost what clients were told.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import crc32c

from groupstorm.broker.changes import Change, CheckpointTaken
from groupstorm.broker.journal import Bytes, JournalError, decode, frames

_MAGIC = b"groupstorm checkpoint 2\n"
#: The mark of a checkpoint whose journal has frames without numbers.
_OLD_MAGIC = b"groupstorm checkpoint 1\n"
#: Length and checksum of the bytes behind them.
_HEAD = struct.Struct(">QI")
#: By so many bytes in front of its position a checkpoint recognises its journal.
RECOGNISED_BYTES = 4096


class Checkpoint(NamedTuple):
    """``changes``: to the state; None if the whole journal has to be read for it (version 1)."""

    taken: CheckpointTaken
    changes: Sequence[Change] | None

    def check(self, journal: Bytes) -> None:
        """Raises JournalError if the journal has lost what was in it."""
        if len(journal) < self.taken.journal_bytes:
            raise JournalError(
                f"it has {len(journal)} bytes, and its checkpoint tells of {self.taken.journal_bytes}: "
                "records or commits that clients were told of are lost"
            )
        if journal_checksum(journal, self.taken.journal_bytes) != self.taken.checksum:
            raise JournalError("it is not the one that its checkpoint was written from")


def write_checkpoint(changes: Iterable[Change], taken: CheckpointTaken) -> bytes:
    """``changes``: to the state that comes from the part of the journal in ``taken``."""
    payload = b"".join(one.data for one in frames(chain([taken], changes)))
    return _MAGIC + _HEAD.pack(len(payload), crc32c.crc32c(payload)) + payload


def read_checkpoint(data: bytes) -> Checkpoint | None:
    """None if it is damaged or of a version that is not known."""
    magic = data[: len(_MAGIC)]
    payload = data[len(_MAGIC) + _HEAD.size :]
    if magic not in (_MAGIC, _OLD_MAGIC) or len(data) < len(_MAGIC) + _HEAD.size:
        return None
    if _HEAD.unpack_from(data, len(_MAGIC)) != (len(payload), crc32c.crc32c(payload)):
        return None
    try:
        changes, _ = decode(payload)
    except JournalError:
        return None  # another version's changes
    if not changes or not isinstance(taken := changes[0], CheckpointTaken):
        return None
    return Checkpoint(taken, changes if magic == _MAGIC else None)


def journal_checksum(journal: Bytes, end: int) -> int:
    """The checksum of the last bytes in front of ``end``."""
    return crc32c.crc32c(journal[max(0, end - RECOGNISED_BYTES) : end])

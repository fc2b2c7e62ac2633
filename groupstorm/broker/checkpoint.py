"""The format of a checkpoint of the journal: the state at one of its positions, and where its batches are.

A restart reads the checkpoint and the journal behind that position. A checkpoint that is damaged, of another
version or of another journal is none: then the restart reads the whole journal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import crc32c

from groupstorm.broker.changes import Change, CheckpointTaken
from groupstorm.broker.journal import Bytes, JournalError, decode, encode

_MAGIC = b"groupstorm checkpoint 1\n"
#: Length and checksum of the bytes behind them.
_HEAD = struct.Struct(">QI")
#: By so many bytes in front of its position a checkpoint recognises its journal.
RECOGNISED_BYTES = 4096
#: Changes in one frame.
_CHANGES_PER_FRAME = 1000


def write_checkpoint(changes: Iterable[Change], journal_bytes: int, checksum: int) -> bytes:
    """``changes``: to the state that comes from so many bytes of the journal; ``checksum``: see
    `journal_checksum`."""
    frames = [encode([CheckpointTaken(journal_bytes, checksum)])]
    pending: list[Change] = []
    for change in changes:
        pending.append(change)
        if len(pending) == _CHANGES_PER_FRAME:
            frames.append(encode(pending))
            pending = []
    payload = b"".join((*frames, encode(pending)))
    return _MAGIC + _HEAD.pack(len(payload), crc32c.crc32c(payload)) + payload


def read_checkpoint(data: bytes, journal: Bytes) -> tuple[list[Change], int] | None:
    """The changes to the state of a checkpoint, and the position in its journal from which to go on; None if
    it is no checkpoint of this journal."""
    payload = data[len(_MAGIC) + _HEAD.size :]
    if not data.startswith(_MAGIC) or len(data) < len(_MAGIC) + _HEAD.size:
        return None
    if _HEAD.unpack_from(data, len(_MAGIC)) != (len(payload), crc32c.crc32c(payload)):
        return None
    try:
        changes, _ = decode(payload)
    except JournalError:
        return None  # another version's changes
    if not changes or not isinstance(taken := changes[0], CheckpointTaken):
        return None
    fits = taken.journal_bytes <= len(journal)
    if not fits or journal_checksum(journal, taken.journal_bytes) != taken.checksum:
        return None
    return changes, taken.journal_bytes


def journal_checksum(journal: Bytes, end: int) -> int:
    """Of the last bytes in front of ``end``."""
    return crc32c.crc32c(journal[max(0, end - RECOGNISED_BYTES) : end])

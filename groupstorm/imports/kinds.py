"""What a source is: the log of a program, or `__consumer_offsets` as bytes or as a tool prints it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from io import BufferedReader
from typing import Final

from groupstorm.imports.lines import SEGMENT_NAME, Log, read_lines

#: The beginning of a source that is looked at.
_HEAD_BYTES: Final = 1 << 16
#: Where a record batch has its magic number, and which one it has since Kafka 0.11.
_MAGIC_AT: Final = 16
_MAGIC: Final = 2


class SourceKind(StrEnum):
    """How a source is read."""

    LOG = "log"
    DUMP = "dump"
    SEGMENTS = "segments"


#: Kind -> what a line of it looks like; of other sources no line does.
_LINES: Final[Mapping[SourceKind, re.Pattern[str]]] = {
    SourceKind.DUMP: re.compile(
        r"^(?:baseOffset: \d+ lastOffset: |(?:\| )?offset: \d+ .*(?: key: .* payload: |endTxnMarker: )"
        r'|\{"key":\{"(?:type|version)":|\[.*,.*,\d+\]::(?:\[?Offset|NULL)|.*::GroupMetadata\()',
        re.MULTILINE,
    ),
}


def kind_of(log: Log) -> SourceKind:
    """By the names of the files, or by the first lines. Raises InputError if they cannot be read."""
    if log.files and all(SEGMENT_NAME.fullmatch(path.name) for path in log.files):
        return SourceKind.SEGMENTS
    data = _head(log)
    if _is_batch(data):
        return SourceKind.SEGMENTS
    head = data.decode("utf-8", "replace")
    return next((kind for kind, line in _LINES.items() if line.search(head)), SourceKind.LOG)


def _is_batch(head: bytes) -> bool:
    """Whether a file of another name begins with a record batch: its offset has no more than 48 bits."""
    return len(head) > _MAGIC_AT and head[:2] == b"\0\0" and head[_MAGIC_AT] == _MAGIC


def _head(log: Log) -> bytes:
    """The beginning of the first file. Of standard input it is still there to be read."""
    for _, file in read_lines(log):
        if log.files:
            return file.read(_HEAD_BYTES)
        if isinstance(file, BufferedReader):
            return file.peek(_HEAD_BYTES)
    return b""

"""What a source is: a program's log, `__consumer_offsets` as bytes or as printed, or kafka-consumer-groups'
output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from groupstorm.imports.lines import HEAD_BYTES, SEGMENT_NAME, Log, open_files
from groupstorm.imports.prefixes import find_prefix

#: Where a record batch has its magic number, and which one it has since Kafka 0.11.
_MAGIC_AT: Final = 16
_MAGIC: Final = 2


class SourceKind(StrEnum):
    """How a source is read."""

    LOG = "log"
    DUMP = "dump"
    SEGMENTS = "segments"
    DESCRIBED = "described"


#: Kind -> what a line of it looks like; of other sources no line does.
_LINES: Final[Mapping[SourceKind, re.Pattern[str]]] = {
    SourceKind.DUMP: re.compile(
        r"^(?:baseOffset: \d+ lastOffset: |(?:\| )?offset: \d+ .*(?: key: .* payload: |endTxnMarker: )"
        r'|\{"key":\{"(?:type|version)":|\[.*,.*,\d+\]::(?:\[?Offset|NULL)|.*::GroupMetadata\()',
        re.MULTILINE,
    ),
    SourceKind.DESCRIBED: re.compile(
        r"^(?:GROUP +)?(?:TOPIC +PARTITION +.*(?:LOG-END|START)-OFFSET|CONSUMER-ID +.*#PARTITIONS"
        r"|COORDINATOR \(ID\) +(?:ASSIGNMENT-STRATEGY|.*STATE))"
        r"|^(?:Consumer|Share) group '.*' has no active members\.$",
        re.MULTILINE,
    ),
}


def kinds_of(log: Log) -> tuple[SourceKind, ...]:
    """By the names of the files, or by the first lines. A log may have tables between its lines."""
    if log.files and all(SEGMENT_NAME.fullmatch(path.name) for path in log.files):
        return (SourceKind.SEGMENTS,)
    data = _head(log)
    if _is_batch(data):
        return (SourceKind.SEGMENTS,)
    head = data.decode("utf-8", "replace")
    found = next((kind for kind, line in _LINES.items() if line.search(head)), SourceKind.LOG)
    if found is SourceKind.LOG or find_prefix(head) is None:
        return (found,)
    is_read_twice = found is SourceKind.DESCRIBED and log.pipe is None
    return (SourceKind.LOG, found) if is_read_twice else (SourceKind.LOG,)


def _is_batch(head: bytes) -> bool:
    """Whether a file of another name begins with a record batch: its offset has no more than 48 bits."""
    return len(head) > _MAGIC_AT and head[:2] == b"\0\0" and head[_MAGIC_AT] == _MAGIC


def _head(log: Log) -> bytes:
    """The beginning of the first file that can be read. Of a pipe it is still there to be read."""
    return next((head for file in open_files(log) if (head := file.bytes.peek(HEAD_BYTES))), b"")

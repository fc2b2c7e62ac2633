"""The logs that an import reads: files, folders, gzip, standard input; line by line."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from groupstorm.problems import InputError

STDIN = "-"
#: A segment of a partition's log, by the offset of its first record.
SEGMENT_NAME = re.compile(r"\d{20}\.log")
#: What else a broker has in its data folder.
_BROKER_FILES = frozenset(
    {".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint", "partition.metadata", "meta.properties"}
    | {"quorum-state"}
)
#: A longer line is cut: no message is that long, and a file without line ends must not fill the memory.
LINE_MAX = 1 << 20


class Log(NamedTuple):
    """``files``: one, or the rotations of one log in the order of their names. ``name``: in messages."""

    name: str
    files: tuple[Path, ...]


def find_logs(sources: Sequence[str]) -> list[Log]:
    """The logs at the given paths; `-` is standard input. Raises InputError."""
    logs: list[Log] = []
    for source in sources:
        path = Path(source)
        if source == STDIN:
            logs.append(Log("standard input", ()))
        elif path.is_dir():
            logs += _in_folder(path)
        elif path.exists():
            logs.append(Log(str(path), (path,)))
        else:
            raise InputError(f"{source}: no such file or folder")
    if len({log.name for log in logs}) < len(logs):
        raise InputError("a log is named twice: " + ", ".join(sources))
    return logs


def _in_folder(folder: Path) -> list[Log]:
    """All files in it. Those whose names differ only in digits and endings are rotations of one log."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    files = [path for path in files if not _is_of_a_broker(path)]
    if not files:
        raise InputError(f"{folder}: no file in it")
    rotations: dict[tuple[Path, str], list[Path]] = {}
    for file in files:
        stem = re.sub(r"(?<=\.log)\..*|\.gz$|[-.]\d[-\d.]*(?=\.log)", "", file.name)
        if SEGMENT_NAME.fullmatch(file.name):
            stem = ""
        rotations.setdefault((file.parent, stem), []).append(file)
    return [
        Log(str(paths[0]) if len(paths) == 1 and stem else str(parent / stem), tuple(paths))
        for (parent, stem), paths in rotations.items()
    ]


def _is_of_a_broker(path: Path) -> bool:
    """Whether a file of a broker's data folder is no segment of the offsets topic."""
    if SEGMENT_NAME.fullmatch(path.name):
        return not path.parent.name.startswith("__consumer_offsets-")
    return path.suffix in _BROKER_FILES or path.name in _BROKER_FILES or path.name.endswith("-checkpoint")


def read_lines(log: Log) -> Iterator[tuple[str, IO[bytes]]]:
    """Each file of the log, opened: its name, and its bytes unpacked. Raises InputError."""
    if not log.files:
        yield log.name, sys.stdin.buffer
        return
    for path in log.files:
        try:
            with path.open("rb") as file:
                packed = file.read(2) == b"\x1f\x8b"
                file.seek(0)
                if packed:
                    with gzip.open(file) as unpacked:
                        yield str(path), cast("IO[bytes]", unpacked)
                else:
                    yield str(path), file
        except OSError as problem:
            raise unreadable(str(path), problem) from problem


def raw_lines(name: str, file: IO[bytes]) -> Iterator[bytes]:
    """The lines of an opened file. Raises InputError if it breaks off inside."""
    try:
        while line := file.readline(LINE_MAX):
            yield line
    except (OSError, EOFError, zlib.error) as problem:
        raise unreadable(name, problem) from problem


def unreadable(name: str, problem: Exception) -> InputError:
    reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
    return InputError(f"{name}: cannot be read: {reason}")

"""The logs that an import reads: files, folders, pipes, standard input; unpacked, line by line."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Final, NamedTuple

from groupstorm.problems import InputError

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 16
#: How files begin that hold text in a form that is not read -> what they are, and the command that helps.
_FOREIGN: Final = {
    rb"BZh[1-9]": "bzip2, unpack it with bunzip2",
    rb"\xfd7zXZ": "xz, unpack it with unxz",
    rb"\x28\xb5\x2f\xfd": "Zstandard, unpack it with unzstd",
    rb"\x04\x22\x4d\x18": "LZ4, unpack it with unlz4",
    rb"PK\x03\x04": "a ZIP archive, unpack it with unzip",
    rb"\xff\xfe[^\0]\0|\xfe\xff\0[^\0]": "UTF-16, convert it with iconv -f UTF-16 -t UTF-8",
}
_HEAD: Final = 8


class UnpackedBytes(io.RawIOBase):
    """Reads the file only forwards, as a pipe demands, and ends where the file cannot be read any further.

    ``damage``: why and at which byte of the file it ends too early; "" as long as nothing is damaged.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.damage = ""
        self._file = file
        #: How many bytes of the file are read, and those of them that are not unpacked yet.
        self._read = 0
        self._packed = b""
        self._begun = False
        #: None if the file is not packed.
        self._member: zlib._Decompress | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        """Fill the whole buffer unless the file ends: the first bytes tell what the file is."""
        filled = 0
        while filled < len(buffer) and not self.damage and (piece := self._next(len(buffer) - filled)):
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def _next(self, most: int) -> bytes:
        """At most so many bytes; none at the end."""
        if not self._begun:
            self._begun = True
            self._packed = self._from_file(_HEAD)
            if self._packed.startswith(_GZIP):
                self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            for beginning, what in _FOREIGN.items():
                if re.match(beginning, self._packed):
                    self.damage, self._packed = f"is {what}", b""
                    return b""
        if self._member is not None:
            return self._unpack(most)
        piece, self._packed = self._packed[:most], self._packed[most:]
        return piece or self._from_file(most)

    def _from_file(self, most: int) -> bytes:
        try:
            found = self._file.read(most)
        except OSError as problem:
            self.damage = f"cannot be read from byte {self._read} on: {problem.strerror or problem}"
            return b""
        self._read += len(found)
        return found

    def _unpack(self, most: int) -> bytes:
        """The next bytes of the members of a gzip file, between which there may be zeros."""
        assert self._member is not None
        while not self.damage:
            self._packed = self._packed or self._from_file(_CHUNK)
            if not self._member.eof:
                if found := self._inflate(self._member, most):
                    return found
            elif not self._packed:
                break
            elif rest := self._packed.lstrip(b"\0"):
                self._packed = rest
                self._member = self._next_member()
            else:
                self._packed = b""
        return b""

    def _next_member(self) -> zlib._Decompress:
        at = self._read - len(self._packed)
        if len(self._packed) < len(_GZIP):
            self._packed += self._from_file(len(_GZIP))
        if not self._packed.startswith(_GZIP):
            self.damage = f"its gzip data ends at byte {at} and something else follows"
        return zlib.decompressobj(zlib.MAX_WBITS | 16)

    def _inflate(self, member: zlib._Decompress, most: int) -> bytes:
        before, packed = member.copy(), self._packed
        try:
            found = member.decompress(packed, most)
        except zlib.error as problem:
            found = self._up_to_damage(before)
            reason = str(problem).rpartition(": ")[2]
            self.damage = f"its gzip data is damaged at byte {self._read - len(self._packed)} ({reason})"
            return found
        self._packed = member.unused_data or member.unconsumed_tail
        if not packed and not found and not member.eof:
            self.damage = self.damage or f"its gzip data breaks off at byte {self._read}"
        return found

    def _up_to_damage(self, member: zlib._Decompress) -> bytes:
        """The bytes before the damage: zlib throws away the result of the call that meets it."""
        found = bytearray()
        try:
            while self._packed:
                found += member.decompress(self._packed[:1])
                self._packed = self._packed[1:]
        except zlib.error:
            pass
        return bytes(found)


STDIN = frozenset({"-", "/dev/stdin"})
#: A segment of a partition's log, by the offset of its first record.
SEGMENT_NAME = re.compile(r"\d{20}\.log")
#: What else a broker has in its data folder.
_BROKER_FILES = frozenset(
    {".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint", "partition.metadata", "meta.properties"}
    | {"quorum-state"}
)
#: A longer line comes in pieces: a file without line ends must not fill the memory.
LINE_MAX = 1 << 20
#: The beginning of a source that is looked at before it is read.
HEAD_BYTES = 1 << 16
#: So many bytes are searched at once for lines of interest.
_BLOCK = 1 << 18
#: Parts of a block that are searched for one anchor after the other: they stay in the processor's cache.
_SEARCHED = 1 << 14
_STAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+(?:Z|[+-]\d\d:\d\d) "
#: The beginning of a line that may belong to the one before it: it is indented, also behind what the log of a
#: container or a collector has in front of each line. Spring's lines have a blank behind their own time.
INDENTED = re.compile(
    rb'(?:%s(?:stdout|stderr) [FP] |\{"log": ?")?(?=[\t ]|\\t)|%s(?=\t)' % (_STAMP, _STAMP)
    + rb'|\{[^\n]*?": ?"(?=\\t)|[^\t\n]{1,200}(?=\t[\w.]+ = |\t[A-Z][a-z][\w() -]*: )'
)


class LogFile:
    """An opened file of a log. ``name``: in messages. ``bytes``: unpacked, as far as the file is whole.
    ``line``: the number of the line that `lines_with` has read last."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self.line = 0
        #: What `lines_with` searches, and where the line that it gave last begins in it.
        self._searched = b"", 0
        self._unpacked = UnpackedBytes(file)
        self.bytes = BufferedReader(self._unpacked, HEAD_BYTES)

    @property
    def damage(self) -> str:
        """Why the bytes ended before the end of the file; "" if they did not."""
        return self._unpacked.damage

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line and its number, a long line in pieces. A line that damage has cut is left out."""
        number, is_new = 0, True
        while piece := self.bytes.readline(LINE_MAX):
            is_whole = piece.endswith(b"\n")
            if self.damage and not is_whole:
                return
            number += is_new
            yield number, piece
            is_new = is_whole

    def lines_with(self, anchors: Collection[bytes]) -> Iterator[bytes]:
        """The lines that hold one of ``anchors``, and the indented lines behind each of them, in the pieces
        of `lines`.

        To search blocks for the anchors is much faster than to look at every line.
        """
        is_new, follows = True, False
        while block := self.bytes.read(_BLOCK):
            whole = block.rfind(b"\n") + 1
            block += self.bytes.readline(LINE_MAX - (len(block) - whole))
            is_cut = bool(self.damage) and not block.endswith(b"\n")
            if is_cut:
                block = block[: block.rfind(b"\n") + 1]
            at, number = 0, self.line + is_new  # of the next line
            last = number + block.count(b"\n", 0, -1) if block else self.line
            for start in (*sorted(_lines_with(block, anchors)), len(block)):
                while at < start and follows and INDENTED.match(block, at):
                    self.line, end = number, _end(block, at)
                    yield block[at:end]
                    at, number = end, number + 1
                if at < start:
                    follows = False
                    number += block.count(b"\n", at, start)
                if start < len(block):
                    self.line, follows, at = number, True, _end(block, start)
                    self._searched = block, start
                    yield block[start:at]
                    number += 1
            self.line, is_new = last, block.endswith(b"\n")
            if is_cut:
                return

    def lines_above(self) -> Iterator[bytes]:
        """The lines above the one that `lines_with` gave last, the nearest first, as far as they are held."""
        block, end = self._searched
        while end > 0:
            start = block.rfind(b"\n", 0, end - 1) + 1
            yield block[start:end]
            end = start


def _lines_with(block: bytes, anchors: Collection[bytes]) -> set[int]:
    """The beginnings of the lines that hold one of ``anchors``."""
    found: set[int] = set()
    for begin in range(0, len(block), _SEARCHED):
        for anchor in anchors:
            end = begin + _SEARCHED + len(anchor) - 1
            at = block.find(anchor, begin, end)
            while at >= 0:
                found.add(block.rfind(b"\n", 0, at) + 1)
                at = block.find(anchor, _end(block, at), end)
    return found


def _end(block: bytes, at: int) -> int:
    """The end of the line that holds this byte."""
    return block.find(b"\n", at) + 1 or len(block)


class Log(NamedTuple):
    """``files``: one, or the rotations of one log in the order of their names. ``name``: in messages.
    ``pipe``: what is read in their place, once."""

    name: str
    files: tuple[Path, ...]
    pipe: LogFile | None = None


def find_logs(sources: Sequence[str]) -> list[Log]:
    """The logs at the given paths; `-` is standard input. Raises InputError."""
    logs: list[Log] = []
    for source in sources:
        path = Path(source)
        if source in STDIN:
            logs.append(Log("standard input", (), LogFile("standard input", _standard_input())))
        elif not path.exists():
            raise InputError(f"{source}: no such file or folder")
        elif path.is_dir():
            logs += _in_folder(path)
        elif path.is_fifo():
            logs.append(Log(str(path), (), LogFile(str(path), path.open("rb"))))
        elif path.is_file():
            logs.append(Log(str(path), (path,)))
        else:
            raise InputError(_not_a_log(source))
    if len({log.name for log in logs}) < len(logs):
        raise InputError("a log is named twice: " + ", ".join(sources))
    return logs


#: The digits of a log's name, a date for example; and a name with the number of a pod or of a rotation.
_DIGITS: Final = re.compile(r"[-.]\d[-\d.]*(?=\.log)")
_NUMBERED: Final = re.compile(r".*[^-.\d]-\d{1,3}\.log")


def _in_folder(folder: Path) -> list[Log]:
    """All files in it. Those whose names differ only in digits and endings are rotations of one log. But
    orders-0.log and orders-1.log are those of two pods or brokers unless there is an orders.log, too."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    files = [path for path in files if not _is_of_a_broker(path)]
    if not files:
        raise InputError(f"{folder}: no file in it")
    rotations: dict[tuple[Path, str], list[Path]] = {}
    for file in files:
        name = re.sub(r"(?<=\.log)\..*|\.gz$", "", file.name)
        stem = _DIGITS.sub("", name)
        if _NUMBERED.fullmatch(name) and not (file.parent / stem).exists():
            stem = name
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


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise InputError("standard input: is closed: expected a log")
    with suppress(OSError):  # a test's standard input has no descriptor
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not sys.stdin.isatty()):
            raise InputError(_not_a_log("standard input"))
    return sys.stdin.buffer


def _not_a_log(name: str) -> str:
    return f"{name}: is a device or a socket: expected a file, a folder or a pipe"


def open_files(log: Log) -> Iterator[LogFile]:
    """The files of the log, one after the other; one that cannot be opened is damaged from its start."""
    if log.pipe is not None:
        yield log.pipe
    for path in log.files:
        try:
            file: IO[bytes] = path.open("rb")
        except OSError as problem:
            file = _Unopened(problem)
        with file:
            yield LogFile(str(path), file)


def lines_at(places: Iterable[str]) -> Mapping[str, str]:
    """Place (``file:line``) -> its line. A log that is not there any more, or cannot be read, has none.

    Each file is read once, up to the last line that is wanted. Logs were named from the folder in which they
    were imported.
    """
    wanted: dict[str, set[int]] = {}
    for place in places:
        name, _, line = place.rpartition(":")
        if line.isdecimal():
            wanted.setdefault(name, set()).add(int(line))
    found: dict[str, str] = {}
    for name, numbers in wanted.items():
        path, last = Path(name), max(numbers)
        for file in open_files(Log(name, (path,))) if path.is_file() else ():
            for number, raw in file.lines():
                if number > last:
                    break
                if number in numbers:
                    found.setdefault(f"{name}:{number}", raw.decode("utf-8", "replace").strip())
    return found


class _Unopened(BytesIO):
    """Stands in the place of a file that cannot be opened."""

    def __init__(self, problem: OSError) -> None:
        super().__init__()
        self._problem = problem

    def read(self, size: int | None = -1, /) -> bytes:
        raise self._problem

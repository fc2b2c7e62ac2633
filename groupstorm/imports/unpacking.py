"""The bytes of a log's file, unpacked if they are gzip, as far as the file is whole."""

from __future__ import annotations

import io
import re
import zlib
from typing import IO, Final

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

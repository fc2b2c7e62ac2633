"""Frames of Kafka's protocol: four bytes of length, then as many bytes (NetworkReceive)."""

from __future__ import annotations

import struct

_LENGTH = struct.Struct(">i")


class FrameError(ValueError):
    """A length that no request has. The connection must be closed."""


class FrameBuffer:
    """Cuts a stream of bytes into frames. A frame's length is checked before its bytes have come.

    An HTTP client's `GET ` reads as a frame of 1.2 GB, which is more than socket.request.max.bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        #: The longest frame; it may be changed between frames.
        self.max_bytes = max_bytes
        self._buffer = bytearray()

    def __len__(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The next complete frame without its length, or None. Raises FrameError."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if not 0 <= length <= self.max_bytes:
            raise FrameError(f"a request of {length} bytes was announced, allowed are {self.max_bytes}")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            frame = bytes(view[_LENGTH.size : end])
        del self._buffer[:end]
        return frame


def frame(chunks: list[bytes]) -> bytes:
    """One response: its length, then its chunks."""
    return b"".join((_LENGTH.pack(sum(map(len, chunks))), *chunks))

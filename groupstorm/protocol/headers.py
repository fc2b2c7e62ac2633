"""Frames of Kafka's protocol, four bytes of length and then as many bytes (NetworkReceive), and the headers
of requests and responses in them (RequestHeader.parse)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from kio.schema.request_header.v1.header import RequestHeader as HeaderV1
from kio.schema.request_header.v2.header import RequestHeader as HeaderV2

from groupstorm.protocol.codec import CodecError, decoder

_KEY_AND_VERSION = struct.Struct(">hh")
_USUAL = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_read_v1 = decoder(HeaderV1)
_read_v2 = decoder(HeaderV2)


class Header(NamedTuple):
    """``body_at``: where the request itself begins."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body_at: int


def peek(frame: bytes) -> tuple[int, int]:
    """API key and version, on which the header's version depends. Raises CodecError."""
    if len(frame) < _KEY_AND_VERSION.size:
        raise CodecError(f"a request of {len(frame)} bytes has no header")
    api_key, version = _KEY_AND_VERSION.unpack_from(frame)
    return api_key, version


def read_header(frame: bytes, flexible: bool) -> Header:
    """The header, of version 2 if the request's version is a flexible one. Raises CodecError.

    A null client id counts as an empty one.
    """
    return _usual_header(frame, flexible) or _any_header(frame, flexible)


def _usual_header(frame: bytes, flexible: bool) -> Header | None:
    """One with a client id and without tagged fields, which is every client's; None: another one."""
    if len(frame) < _USUAL.size:
        return None
    api_key, version, correlation_id, length = _USUAL.unpack_from(frame)
    end = _USUAL.size + length
    if length < 0 or len(frame) < end + flexible or (flexible and frame[end] != 0):
        return None
    try:
        client_id = frame[_USUAL.size : end].decode()
    except UnicodeDecodeError:
        return None
    return Header(api_key, version, correlation_id, client_id, end + flexible)


def _any_header(frame: bytes, flexible: bool) -> Header:
    header, at = (_read_v2 if flexible else _read_v1)(frame, 0)
    return Header(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id or "",
        at,
    )


def request_header(api_key: int, version: int, correlation_id: int, client_id: str, flexible: bool) -> bytes:
    """The header of a client's request. Header version 2 ends with tagged fields, of which there are none."""
    client = client_id.encode()
    return (
        _USUAL.pack(api_key, version, correlation_id, len(client)) + client + (b"\x00" if flexible else b"")
    )


def response_header(correlation_id: int, flexible: bool) -> bytes:
    """Header version 1 ends with tagged fields, of which there are none."""
    return _CORRELATION_ID.pack(correlation_id) + (b"\x00" if flexible else b"")


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

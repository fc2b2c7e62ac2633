"""Requests as bytes become messages. A request that comes again and again is decoded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api
from groupstorm.protocol.codec import ResponseTypes, decode_in_turns, decoder, request_type, response_types
from groupstorm.protocol.headers import read_header
from groupstorm.turns import Turns

_LONGEST_KEPT = 512
#: Longer requests are decoded in turns. An item takes at least two bytes.
_LONGEST_AT_ONCE = 8_192
_KEPT = 1_000
#: Where the correlation id begins and ends.
_ID_AT, _ID_END = 4, 8


class Decoded(NamedTuple):
    """``types``: those of the response."""

    types: ResponseTypes
    correlation_id: int
    client_id: str
    message: Any


@cache
def _codecs(
    api_key: int, version: int
) -> tuple[bool, Callable[[bytes, int], tuple[Any, int]], ResponseTypes]:
    """Whether the version is a flexible one, the decoder of its requests, and the types of its responses."""
    message_type = request_type(api_key, version)
    return message_type.__flexible__, decoder(message_type), response_types(api_key, version)


class Decoder:
    """Decodes the requests of all connections. Messages are immutable: requests may share one."""

    def __init__(self) -> None:
        self._known: dict[bytes, Decoded] = {}

    def decode(self, api: Api, version: int, frame: bytes) -> Decoded:
        """A request of a version that is served. Raises CodecError."""
        if not api.is_repeated or len(frame) > _LONGEST_KEPT:
            return _decode(api.key, version, frame)
        rest = frame[:_ID_AT] + frame[_ID_END:]
        known = self._known.get(rest)
        if known is not None:
            correlation_id = int.from_bytes(frame[_ID_AT:_ID_END], "big", signed=True)
            return Decoded(known.types, correlation_id, known.client_id, known.message)
        if len(self._known) >= _KEPT:
            self._known.clear()
        decoded = self._known[rest] = _decode(api.key, version, frame)
        return decoded

    @staticmethod
    def is_long(frame: bytes) -> bool:
        """Whether to decode this request with `in_turns`."""
        return len(frame) > _LONGEST_AT_ONCE

    @staticmethod
    def in_turns(api_key: int, version: int, frame: bytes) -> Turns[Decoded]:
        """Decode a long request in turns, to what `decode` gives. Raises CodecError."""
        flexible, _, types = _codecs(api_key, version)
        header = read_header(frame, flexible)
        message, _ = yield from decode_in_turns(request_type(api_key, version), frame, header.body_at)
        return Decoded(types, header.correlation_id, header.client_id, message)


def _decode(api_key: int, version: int, frame: bytes) -> Decoded:
    flexible, decode, types = _codecs(api_key, version)
    header = read_header(frame, flexible)
    message, _ = decode(frame, header.body_at)
    return Decoded(types, header.correlation_id, header.client_id, message)

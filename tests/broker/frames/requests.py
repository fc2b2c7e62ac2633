"""Requests of every API and version that `serve` announces, drawn from a seed.

They are those of `asking_all` with some of their values changed. These are about topics and groups that there
are, so that mutated ones reach the code behind the first check.
"""

from __future__ import annotations

import gzip
import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import crc32c

from groupstorm.broker.apis import APIS
from groupstorm.broker.log.batches import HEADER_BYTES
from groupstorm.broker.log.records import pack
from groupstorm.protocol.codec import CodecError, encoder, request_type
from tests.broker import wire
from tests.broker.asking_all import all_requests
from tests.broker.random_messages import random_message

#: Every API key with every version that is announced and served.
SERVED = [
    (api.key, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)
]
TOPICS = {"orders": 3, "hidden": 1}
_REQUESTS = {key: [one.fields for one in all_requests() if one.api_key == key] for key in APIS}
_TEXTS = (
    *("orders", "hidden", "new", "", "g", "modern", "t", "ord.*", "(a+)+$", "[", "consumer", "uniform"),
    *("range", "1", "-1", "delete", "retention.ms", "max.message.bytes", "PLAIN", "SCRAM-SHA-256"),
    *("User:alice", "User:*", "*", "user", "client-id", "ip", "ANONYMOUS", "raw", "producer_byte_rate"),
)
#: Values for those of a type.
_OTHERS: dict[type, Sequence[Any]] = {
    str: _TEXTS,
    int: (0, 0, 0, 1, 1, 2, 3, 5, -1, 500, 10_000),
    bool: (True, False),
    bytes: (b"", b"plan", b"\0alice\0secret", bytes(40)),
}


def topic_id(number: int) -> uuid.UUID:
    """The id of one of `TOPICS`."""
    return uuid.UUID(int=number + 1)


_IDS = {name: topic_id(number) for number, name in enumerate(TOPICS)}


class Requests:
    """Draws requests."""

    def __init__(self, draw: random.Random, seen_members: list[str]) -> None:
        """``seen_members``: member ids that answers have named; the caller adds to them."""
        self._draw = draw
        self._seen_members = seen_members

    def frame(self) -> bytes:
        """A whole request without its length."""
        while True:
            api_key, version = self._draw.choice(SERVED)
            message_type = request_type(api_key, version)
            try:
                if self._draw.random() < 0.15:
                    message = random_message(message_type, self._draw)
                else:
                    fields = self._draw.choice(_REQUESTS[api_key])
                    message = wire.message(message_type, self._varied("", fields), _IDS)
                body = b"".join(encoder(message_type)(message))
            except (CodecError, TypeError):
                continue  # one value of many does not fit its type
            correlation_id = self._draw.randrange(2**31)
            return wire.request_header(api_key, version, correlation_id) + body

    def _varied(self, name: str, value: Any) -> Any:
        draw = self._draw
        if isinstance(value, Mapping):
            return {own: self._varied(own, inner) for own, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._varied(name, one) for one in value for _ in range(draw.choice((0, 1, 1, 1, 2, 9)))]
        if name == "records":
            return record_batches(draw)
        if name == "member_id" and self._seen_members and draw.random() < 0.7:
            return draw.choice(self._seen_members)
        others = _OTHERS.get(type(value), (value,))
        return value if draw.random() < 0.8 else draw.choice(others)


def record_batches(draw: random.Random) -> bytes:
    """Records as a producer sends them, in one of several sorts of damage or in none."""
    producer_id = draw.choice((-1, -1, 0, 1, 2))
    values = [draw.randbytes(draw.choice((0, 1, 30))) for _ in range(draw.choice((1, 1, 2, 20)))]
    sequence = -1 if producer_id < 0 else draw.choice((0, 0, 1, 2, 2**31 - 1))
    attributes = draw.choice((0, 0, 0, 0x08, 0x10, 0x10, 0x20, 0x30))
    data = wire.batch(
        values,
        producer_id=producer_id,
        epoch=-1 if producer_id < 0 else draw.choice((0, 0, 1)),
        sequence=sequence,
        attributes=attributes,
        timestamp_ms=draw.choice((1_700_000_000_000, 0, -1, 2**63 - 1, -(2**63))),
        count=draw.choice((None, None, None, 0, 2**31 - 1, 1000)),
    )
    match draw.randrange(8):
        case 0:
            return compressed(data, records=draw.choice((data[61:], bytes(2_000_000), b"\xff" * 5000)))
        case 1:
            return checked(
                _with_byte(data, 22, data[22] | draw.randrange(8))
            )  # a compression that it has not
        case 2:
            return _with_byte(data, draw.randrange(len(data)), draw.randrange(256))
        case 3:
            return data + data
        case 4:
            return checked(_with_byte(data, draw.randrange(21, len(data)), draw.randrange(256)))
        case _:
            return data


def compressed(data: bytes, compression: int = 1, records: bytes | None = None) -> bytes:
    """The batch of `wire.batch` with this compression; gzip's is packed by Python.

    ``records``: instead of its own; a few bytes may unpack to many.
    """
    records = data[HEADER_BYTES:] if records is None else records
    packed = gzip.compress(records, mtime=0) if compression == 1 else pack(records, compression)
    length = (HEADER_BYTES - 12 + len(packed)).to_bytes(4, "big")
    return checked(_with_byte(data[:8] + length + data[12:HEADER_BYTES] + packed, 22, data[22] | compression))


def checked(data: bytes) -> bytes:
    """The batch with the checksum that fits its bytes."""
    return data[:17] + crc32c.crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def _with_byte(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes((value & 0xFF,)) + data[at + 1 :]

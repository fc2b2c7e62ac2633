"""Valid requests of every API and version that `serve` announces, drawn from a seed.

The fields come from kio's schemas. Known names (`orders`, `g`, `t`) make many of the requests succeed, so
that mutated ones reach the code behind the first check.
"""

from __future__ import annotations

import datetime
import gzip
import random
import uuid
from collections.abc import Callable
from typing import Any

import crc32c

from groupstorm.broker.apis import APIS
from groupstorm.broker.log.batches import HEADER_BYTES
from groupstorm.broker.log.records import pack
from groupstorm.protocol.codec import CodecError, encoder, request_type
from groupstorm.protocol.codec.shape import EPOCH, FieldShape, shapes_of
from tests.broker import wire
from tests.broker.random_messages import random_message

#: Every API key with every version that is announced and served.
SERVED = [
    (api.key, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)
]
TOPICS = {"orders": 3, "second": 1}
_NAMES = ("orders", "orders", "second", "new-1", "new-2", "")
_GROUPS = ("g", "g", "h", "modern", "")
_TEXTS: dict[str, tuple[str | None, ...]] = {
    "group_id": _GROUPS,
    "groups": _GROUPS,
    "groups_names": _GROUPS,
    "group_ids": _GROUPS,
    "transactional_id": ("t", "t", "u", None),
    "v3_and_below_transactional_id": ("t", "u"),
    "coordinator_keys": ("g", "t"),
    "protocol_type": ("consumer", "connect"),
    "protocol_name": ("range", "sticky"),
    "mechanism": ("PLAIN", "SCRAM-SHA-256"),
    "server_assignor": (None, "uniform", "range", "other"),
    "subscribed_topic_regex": (None, "ord.*", "(a+)+$", "["),
    "subscribed_topic_names": ("orders", "second"),
    "resource_name": ("orders", "g", "1", ""),
    "value": ("1", "-1", "delete", "x", None),
    "configuration_keys": ("retention.ms", "consumer.session.timeout.ms"),
    "group_instance_id": (None, None, "static"),
    "member_id": ("", "m", "m-2"),
    "client_software_name": ("a",),
    "client_software_version": ("1",),
    "principal": ("User:alice", "User:*", "alice"),
    "host": ("*", "127.0.0.1"),
    "entity_type": ("user", "client-id", "ip", "other"),
    "entity_name": ("ANONYMOUS", "raw", "alice", None),
    "key": ("g", "t", "producer_byte_rate", "consumer_byte_rate"),
    "states_filter": ("Stable", "Empty"),
    "types_filter": ("consumer", "classic"),
}
_ALTERED = ("retention.ms", "retention.bytes", "max.message.bytes", "consumer.session.timeout.ms")


def topic_id(number: int) -> uuid.UUID:
    """The id of one of `TOPICS`."""
    return uuid.UUID(int=number + 1)


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
                    message = self._message(message_type)
                body = b"".join(encoder(message_type)(message))
            except CodecError:
                continue  # one value of many does not fit its type
            correlation_id = self._draw.randrange(2**31)
            return wire.request_header(api_key, version, correlation_id) + body

    def _message(self, message_type: Any) -> Any:
        return message_type(**{shape.name: self._field(shape) for shape in shapes_of(message_type)})

    def _field(self, shape: FieldShape) -> Any:
        draw = self._draw
        if shape.tag is not None and draw.random() < 0.7:
            return shape.default
        if shape.nullable and shape.name not in _TEXTS and draw.random() < 0.1:
            return None if shape.tag is None else shape.default
        if shape.array:
            return tuple(self._one(shape) for _ in range(draw.choice((0, 1, 1, 1, 2, 9))))
        return self._one(shape)

    def _one(self, shape: FieldShape) -> Any:
        if shape.entity is not None:
            return self._message(shape.entity)
        if shape.kafka_type == "string":
            return self._text(shape)
        return _VALUES.get(shape.kafka_type or "", _number)(self._draw)

    def _text(self, shape: FieldShape) -> str | None:
        if shape.name == "member_id" and self._seen_members and self._draw.random() < 0.7:
            return self._draw.choice(self._seen_members)
        texts = _TEXTS.get(shape.name)
        if texts is None:
            texts = (*_NAMES, *_ALTERED) if shape.name == "name" else _NAMES
        value = self._draw.choice(texts)
        return "" if value is None and not shape.nullable else value


def _number(draw: random.Random) -> int:
    return draw.choice((0, 0, 0, 1, 1, 2, 3, 5, -1))


def _duration(draw: random.Random) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=draw.choice((0, 1, 500, 10_000, 60_000, -1)))


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


#: By kio's type: draws a value.
_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "records": record_batches,
    "bytes": lambda draw: draw.choice((b"", b"plan", b"\0alice\0secret", draw.randbytes(40))),
    "uuid": lambda draw: draw.choice((topic_id(0), topic_id(0), topic_id(1), None, uuid.UUID(int=7))),
    "bool": lambda draw: draw.random() < 0.4,
    "timedelta_i32": _duration,
    "timedelta_i64": _duration,
    "datetime_i64": lambda draw: EPOCH + datetime.timedelta(seconds=draw.randrange(2**31)),
}

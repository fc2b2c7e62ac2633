"""Random messages of any of kio's classes, from a seed, for the codec's tests."""

from __future__ import annotations

import datetime
import random
import uuid
from typing import Any

from kio.schema.errors import ErrorCode

from groupstorm.protocol.codec.shape import EPOCH, FieldShape, shapes_of

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
TEXTS = ("", "a", "group-1", "äöü€😀", "x" * 126, "y" * 127, "z" * 300)
ERROR_CODES = tuple(ErrorCode)


def random_message(message_type: Any, draw: random.Random) -> Any:
    """A message with every kind of value, null and defaults among them."""
    return message_type(**{shape.name: _field(shape, draw) for shape in shapes_of(message_type)})


def _field(shape: FieldShape, draw: random.Random) -> Any:
    if shape.tag is not None and draw.random() < 0.5:
        return shape.default
    if shape.nullable and draw.random() < 0.3:
        return None if shape.tag is None else shape.default
    if shape.array:
        # beyond eight elements arrays of numbers take another path
        return tuple(_one(shape, draw) for _ in range(draw.choice((0, 1, 2, 3, 9))))
    return _one(shape, draw)


def _one(shape: FieldShape, draw: random.Random) -> Any:
    if shape.entity is not None:
        return random_message(shape.entity, draw)
    kafka_type = shape.kafka_type or ""
    if kafka_type in INTEGERS:
        least, most = INTEGERS[kafka_type]
        return draw.choice((least, most, 0, -1 if least else 1, draw.randint(least, most)))
    values: dict[str, Any] = {
        "bool": lambda: draw.random() < 0.5,
        "float64": lambda: draw.uniform(-1e9, 1e9),
        "error_code": lambda: draw.choice(ERROR_CODES),
        "string": lambda: draw.choice(TEXTS),
        "bytes": lambda: draw.randbytes(draw.choice((0, 1, 126, 127, 500))),
        "records": lambda: draw.randbytes(draw.choice((0, 1, 200))),
        "uuid": lambda: draw.choice((None, uuid.UUID(int=draw.getrandbits(128) | 1))),
        "timedelta_i32": lambda: datetime.timedelta(milliseconds=draw.randint(-(2**31), 2**31 - 1)),
        "timedelta_i64": lambda: datetime.timedelta(milliseconds=draw.randint(-(2**40), 2**40)),
        "datetime_i64": lambda: EPOCH + datetime.timedelta(seconds=draw.randint(0, 2**33)),
    }
    return values[kafka_type]()

"""Requests and responses as bytes, for tests that speak the protocol themselves."""

from __future__ import annotations

import datetime
import functools
import select
import socket
import ssl
import struct
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import crc32c

from groupstorm.protocol.codec import decoder, encoder, request_type, response_types
from groupstorm.protocol.codec.shape import FieldShape, shapes_of

DEADLINE_S = 60.0
JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP = 11, 14, 12, 13
PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID = 15, 16, 18, 19, 22
DELETE_TOPICS, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, CREATE_PARTITIONS = 20, 21, 23, 37
ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28
DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, DELETE_GROUPS, OFFSET_DELETE = 32, 44, 42, 47
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 60, 75
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
DESCRIBE_SCRAM, ALTER_SCRAM, ALTER_CONFIGS = 50, 51, 33
DESCRIBE_QUOTAS, ALTER_QUOTAS = 48, 49
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
SHARE_GROUP_HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 77, 78, 79
DESCRIBE_SHARE_OFFSETS, ALTER_SHARE_OFFSETS, DELETE_SHARE_OFFSETS = 90, 91, 92
STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_DESCRIBE, TOPOLOGY_DESCRIPTION_UPDATE = 88, 89, 93
DESCRIBE_LOG_DIRS, ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 35, 43, 45, 46
DESCRIBE_QUORUM, UPDATE_FEATURES, LIST_CONFIG_RESOURCES = 55, 57, 74
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66


_shapes = functools.cache(shapes_of)


def message(kind: Any, values: Mapping[str, Any], ids: Mapping[str, uuid.UUID] | None = None) -> Any:
    """A message with these fields, without those that the version lacks; all others have their defaults.

    The structures in it may be mappings of their fields, and durations milliseconds. ``ids``: of topics, for
    fields that name them.
    """
    fields = {}
    for shape in _shapes(kind):
        value = values.get(shape.name, () if shape.array else shape.default)
        is_many = shape.array and value is not None
        fields[shape.name] = (
            tuple(_plain(shape, one, ids) for one in value) if is_many else _plain(shape, value, ids)
        )
    return kind(**fields)


def _plain(shape: FieldShape, value: Any, ids: Mapping[str, uuid.UUID] | None) -> Any:
    kind = shape.kafka_type or ""
    if isinstance(value, dict):
        return message(shape.entity, value, ids)
    if kind.startswith("timedelta") and isinstance(value, int):
        return milliseconds(value)
    return (ids or {}).get(value, uuid.UUID(int=99)) if kind == "uuid" and isinstance(value, str) else value


def request_body(api_key: int, version: int, /, **values: Any) -> bytes:
    kind = request_type(api_key, version)
    return b"".join(encoder(kind)(message(kind, values)))


def request_header(api_key: int, version: int, correlation_id: int, client_id: str = "raw") -> bytes:
    encoded = client_id.encode()
    head = struct.pack(">hhih", api_key, version, correlation_id, len(encoded)) + encoded
    return head + (b"\x00" if request_type(api_key, version).__flexible__ else b"")


def request(
    api_key: int, version: int, correlation_id: int = 1, client_id: str = "raw", **values: Any
) -> bytes:
    """A whole request without its length."""
    header = request_header(api_key, version, correlation_id, client_id)
    return header + request_body(api_key, version, **values)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def parse_response(api_key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """Correlation id and message of a response without its length; all its bytes must be used."""
    types = response_types(api_key, version)
    (correlation_id,) = struct.unpack_from(">i", frame)
    at = 4
    if types.root.__header_schema__.__version__ > 0:
        assert frame[at] == 0
        at += 1
    message, end = decoder(types.root)(frame, at)
    assert end == len(frame)
    return correlation_id, message


def milliseconds(number: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=number)


def batch(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] = (),
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    attributes: int = 0,
    timestamp_ms: int = 1_700_000_000_000,
    stamps_ms: Sequence[int] = (),
    count: int | None = None,
) -> bytes:
    """A record batch of magic 2 with these values, written from the format's description alone.

    ``keys``: of the records; without them no record has one. ``stamps_ms``: of the records; without them all
    have ``timestamp_ms``.
    """
    stamps_ms = stamps_ms or [timestamp_ms] * len(values)
    rows = zip(stamps_ms, keys or [None] * len(values), values, strict=True)
    records = b"".join(
        _record(stamp_ms - stamps_ms[0], offset, key, value)
        for offset, (stamp_ms, key, value) in enumerate(rows)
    )
    count = len(values) if count is None else count
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        count - 1,
        stamps_ms[0] if stamps_ms else timestamp_ms,
        max(stamps_ms, default=timestamp_ms),
        producer_id,
        epoch,
        sequence,
        count,
    )
    covered += records
    return struct.pack(">qiibI", 0, len(covered) + 9, -1, 2, crc32c.crc32c(covered)) + covered


def _record(delta_ms: int, offset: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\x00" + zigzag(delta_ms) + zigzag(offset) + _nullable(key) + _nullable(value) + zigzag(0)
    return zigzag(len(body)) + body


def _nullable(data: bytes | None) -> bytes:
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def zigzag(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class RawClient:
    """A socket that sends bytes and reads frames."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> None:
        """``tls``: the client's context, if it is to use TLS."""
        self.socket = socket.create_connection(address, timeout=DEADLINE_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, api_key: int, version: int, correlation_id: int = 1, **values: Any) -> Any:
        self.send(framed(request(api_key, version, correlation_id, **values)))
        return self.answer(api_key, version, correlation_id)

    def answer(self, api_key: int, version: int, correlation_id: int = 1) -> Any:
        answered, message = parse_response(api_key, version, self.frame())
        assert answered == correlation_id
        return message

    def frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the server closed the connection")
            data += part
        return data

    def is_silent(self) -> bool:
        """Nothing comes within a tenth of a second."""
        return not select.select([self.socket], [], [], 0.1)[0]

    def is_closed_by_server(self) -> bool:
        """Waits for the end of the stream; False if a byte comes instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

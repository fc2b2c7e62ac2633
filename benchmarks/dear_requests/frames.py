"""Requests as bytes, a client that sends them, and the register of those that a broker finds dear."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from groupstorm.protocol.codec import decoder, encoder, request_type, response_types
from groupstorm.protocol.codec.shape import KioType, shapes_of

HOST = "127.0.0.1"
LONGEST_S = 120.0

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, SYNC_GROUP, LEAVE_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 11, 14, 13, 15, 16, 18
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID, EPOCH_END = 19, 20, 21, 22, 23
ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
DESCRIBE_CONFIGS, ALTER_CONFIGS, CREATE_PARTITIONS, DELETE_GROUPS, INCREMENTAL, OFFSET_DELETE = (
    32,
    33,
    37,
    42,
    44,
    47,
)
DESCRIBE_QUOTAS, ALTER_QUOTAS, DESCRIBE_SCRAM, ALTER_SCRAM = 48, 49, 50, 51
HEARTBEAT, GROUP_DESCRIBE, LIST_CONFIG_RESOURCES, DESCRIBE_PARTITIONS = 68, 69, 74, 75
SHARE_GROUP_HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 77, 78, 79
DESCRIBE_SHARE_OFFSETS, ALTER_SHARE_OFFSETS, DELETE_SHARE_OFFSETS = 90, 91, 92
STREAMS_GROUP_HEARTBEAT = 88


def made(api_key: int, version: int, kind: str = "", /, **values: Any) -> Any:
    """A structure of a request, or the request; fields that are not named have their defaults."""
    root = request_type(api_key, version)
    chosen: KioType = getattr(sys.modules[root.__module__], kind) if kind else root
    defaults = {shape.name: () if shape.array else shape.default for shape in shapes_of(chosen)}
    return chosen(**{name: values.get(name, default) for name, default in defaults.items()})


def frame(api_key: int, version: int, **values: Any) -> bytes:
    message = made(api_key, version, **values)
    kind: KioType = type(message)
    header = struct.pack(">hhih", api_key, version, 1, 5) + b"bench" + b"\x00" * bool(kind.__flexible__)
    payload = header + b"".join(encoder(kind)(message))
    return struct.pack(">i", len(payload)) + payload


class Client:
    """A connection that sends whole requests and reads whole answers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), LONGEST_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._waiting: list[socket.socket] = []

    def send(self, payload: bytes) -> bytes:
        """The answer without its length; empty if the broker closes the connection."""
        try:
            self._socket.sendall(payload)
            length = self._read(4)
            return self._read(struct.unpack(">i", length)[0]) if length else b""
        except ConnectionError:
            return b""

    def leave_waiting(self, payload: bytes) -> None:
        """Send a request on a connection of its own that nobody reads: its answer is to come later."""
        self._waiting.append(socket.create_connection(self._socket.getpeername(), LONGEST_S))
        self._waiting[-1].sendall(payload)

    def _read(self, count: int) -> bytes:
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            got = self._socket.recv_into(view[at:])
            if not got:
                return b""
            at += got
        return bytes(data)

    def ask(self, api_key: int, version: int, **values: Any) -> Any:
        payload = self.send(frame(api_key, version, **values))
        types = response_types(api_key, version)
        at = 5 if types.root.__header_schema__.__version__ else 4
        return decoder(types.root)(payload, at)[0]

    def close(self) -> None:
        for each in (self._socket, *self._waiting):
            each.close()


#: Prepares the broker and returns the requests to send, one after the other.
Prepare = Callable[[Client], Iterable[bytes]]
CASES: dict[str, tuple[Prepare, Sequence[str]]] = {}


def case(name: str, *options: str) -> Callable[[Prepare], Prepare]:
    def register(prepare: Prepare) -> Prepare:
        CASES[name] = prepare, options
        return prepare

    return register


def make_topics(client: Client, count: int, partitions: int = 1) -> list[str]:
    names = [f"topic-{number}" for number in range(count)]
    at_once = max(1, min(1000, 5_000 // partitions))
    for first in range(0, count, at_once):
        topics = tuple(
            made(
                CREATE_TOPICS, 5, "CreatableTopic", name=name, num_partitions=partitions, replication_factor=1
            )
            for name in names[first : first + at_once]
        )
        client.ask(CREATE_TOPICS, 4, topics=topics)
    return names

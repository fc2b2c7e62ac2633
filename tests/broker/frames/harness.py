"""A broker's own connection code without sockets: bytes in, answers out, time by hand."""

from __future__ import annotations

import asyncio
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest.mock import patch

from groupstorm.broker import assembly
from groupstorm.broker.apis import APIS
from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change, TopicCreated
from groupstorm.broker.connection import Connection
from groupstorm.broker.journal import decode, encode, frames
from groupstorm.broker.requests import BrokerEffects, Peer
from groupstorm.protocol.codec import decoder, response_types
from tests.broker.frames.requests import TOPICS, topic_id

#: A broker whose state stays small whatever is asked of it. Its clients may do everything, and have ACLs.
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "groupstorm.max.groups": "60",
    "groupstorm.max.topics": "60",
    "groupstorm.max.partitions": "600",
    "log.retention.bytes": "200000",
    "socket.request.max.bytes": "1000000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
#: CPU seconds that one frame may take.
MOST_CPU_S = 10.0
ANSWERED, CLOSED, WAITING, SILENT = "answered", "closed", "waiting", "silent"


class Hang(Exception):
    """A frame has taken more than `MOST_CPU_S` of CPU."""


@contextmanager
def cpu_limit(seconds: float = MOST_CPU_S) -> Iterator[None]:
    """Raise Hang in the block if it takes longer."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds} s of CPU")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class _Socket:
    def setsockopt(self, *_arguments: int) -> None:
        """The option does nothing here."""

    shutdown = setsockopt


class MemoryTransport(asyncio.Transport):
    """Collects what a connection writes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 9092), "socket": _Socket()})
        self.written = bytearray()
        self._closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True

    abort = close

    def pause_reading(self) -> None:
        """Nothing arrives by itself."""

    def resume_reading(self) -> None:
        """Nothing arrives by itself."""


class _MemberIds:
    """Counts, so that equal requests get equal answers."""

    def __init__(self) -> None:
        self._given = 0

    def __call__(self, prefix: str) -> str:
        self._given += 1
        return f"{prefix}-{self._given}"


class World:
    """One broker with connections; every step's changes are written and read as the journal does it."""

    def __init__(self) -> None:
        self.kept: list[Change] = [
            TopicCreated(name, topic_id(number), number, ((1,),) * partitions, {})
            for number, (name, partitions) in enumerate(TOPICS.items())
        ]
        with patch.object(assembly, "random_member_id", _MemberIds()):
            self.broker = assembly.make_broker(OPTIONS, {}, journal=self.kept)
        self.connections: dict[int, Connection] = {}
        self.closed: list[str] = []
        self.now_ms = 1_000
        self._next_number = 0

    # what a connection needs of its server

    def on_close(self, _peer: str, why: str, /) -> None:
        self.closed.append(why)

    def made(self, number: int, connection: Connection, /) -> None:
        self.connections[number] = connection

    def lost(self, number: int, /) -> None:
        del self.connections[number]
        self._carry_out(self.broker.forget(number, self.now_ms))

    def received(self, number: int, peer: Peer, frame: bytes, /) -> None:
        self._carry_out(self.broker.receive(number, peer, frame, self.now_ms))

    def now_s(self) -> float:
        return self.now_ms / 1000

    def call_later(self, _delay_s: float, _act: Callable[[], None], /) -> None:
        """Each connection sends one request: it would wait for nothing."""

    def arm(self) -> None:
        """`advance` looks at the deadlines."""

    def _carry_out(self, effects: BrokerEffects) -> None:
        if effects.changes:
            self.kept += decode(encode(effects.changes))[0]
        for output in effects.outputs:
            connection = self.connections.get(output.connection)
            if connection is not None:
                connection.write(output)

    # what the tests do

    def try_bytes(self, data: bytes) -> tuple[str, bytes]:
        """Send these bytes over a new connection; return what became of them and what was written."""
        self._next_number += 1
        connection = Connection(self, self._next_number, self.broker.state.cluster.nodes[0])
        transport = MemoryTransport()
        connection.connection_made(transport)
        closed = len(self.closed)
        connection.data_received(data)
        if len(self.closed) > closed:
            outcome = CLOSED
        elif transport.written:
            outcome = ANSWERED
        else:
            outcome = SILENT if connection.is_idle else WAITING
        connection.connection_lost(None)
        return outcome, bytes(transport.written)

    def advance(self, duration_ms: int) -> None:
        """Let time pass, timer by timer."""
        until_ms = self.now_ms + duration_ms
        while (deadline_ms := self.broker.next_deadline()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self._carry_out(self.broker.fire(self.now_ms))
        self.now_ms = until_ms

    def check_restart(self) -> Broker:
        """Restart from all changes, and from the shortest journal. Raises whatever the restart raises."""
        restarted = assembly.make_broker(OPTIONS, {}, journal=self.kept, now_ms=self.now_ms)
        short = decode(b"".join(one.data for one in frames(restarted.snapshot(), most_changes=1)))[0]
        return assembly.make_broker(OPTIONS, {}, journal=short, now_ms=self.now_ms)


def check_answer(frame: bytes, answer: bytes) -> Any:
    """The answer to one request, read to its last byte. Raises AssertionError if it is not one."""
    (length,) = struct.unpack_from(">i", answer)
    assert length == len(answer) - 4, "one answer to one request"
    api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
    if api_key == 18 and version not in range(APIS[api_key].max_version + 1):
        version = 0
    types = response_types(api_key, version)
    assert struct.unpack_from(">i", answer, 4) == (correlation_id,)
    at = 8
    if types.root.__header_schema__.__version__ > 0:
        assert answer[at] == 0
        at += 1
    message, end = decoder(types.root)(answer, at)
    assert end == len(answer), "bytes behind the answer"
    return message

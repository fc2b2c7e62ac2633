"""When responses are sent and timers set, with a connection without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.connection import SEND_BYTES, Connection
from groupstorm.broker.shell import TICK_S, Server
from groupstorm.protocol.framing import FrameBuffer
from tests.broker.test_connections import api_versions, join
from tests.broker.wire import framed


class Wire:
    """A transport that notes each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.writes.append(data)

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2), "socket": self}[name]

    def setsockopt(self, *_: int) -> None:
        """Socket options have no effect."""

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        """The test calls `data_received` itself."""

    resume_reading = pause_reading

    def correlation_ids(self) -> list[int]:
        frames = FrameBuffer(2**31 - 1)
        frames.feed(b"".join(self.writes))
        found = []
        while (frame := frames.next_frame()) is not None:
            found.append(int.from_bytes(frame[:4]))
        return found


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    options = {"group.initial.rebalance.delay.ms": "0"}
    running = Server(make_broker(options, {}), lambda *_: None, lambda *_: None)
    await running.start("127.0.0.1", 0)
    yield running
    await running.stop()


def connect(server: Server, number: int) -> tuple[Connection, Wire]:
    connection, wires = Connection(server, number, 1), Wire()
    connection.connection_made(wires)  # type: ignore[arg-type]  # as much of a transport as is used
    return connection, wires


async def test_answers_to_requests_that_came_together_leave_together_and_in_order(server: Server) -> None:
    connection, sent = connect(server, 1)
    connection.data_received(b"".join(api_versions(number) for number in range(5)))
    assert (len(sent.writes), sent.correlation_ids()) == (1, [0, 1, 2, 3, 4])


async def test_no_more_is_held_back_than_a_bound(server: Server) -> None:
    connection, sent = connect(server, 1)
    connection.data_received(b"".join(api_versions(number) for number in range(1000)))
    longest = max(map(len, sent.writes))
    assert sent.correlation_ids() == list(range(1000))
    assert SEND_BYTES <= longest < 2 * SEND_BYTES < sum(map(len, sent.writes))


async def test_responses_before_a_malformed_request_are_sent(server: Server) -> None:
    connection, sent = connect(server, 1)
    connection.data_received(api_versions(1) + framed(b"\xff" * 40) + api_versions(2))
    assert (sent.correlation_ids(), sent.is_closed) == ([1], True)


async def test_a_timer_that_is_due_at_once_comes_behind_requests_that_have_arrived(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def call_later(delay: float, *arguments: Any) -> asyncio.TimerHandle:
        delays.append(delay)
        return later(delay, *arguments)

    monkeypatch.setattr(loop, "call_later", call_later)
    connection, _ = connect(server, 1)
    connection.data_received(join("g"))
    assert delays == [TICK_S]

"""The asyncio shell around the broker: sockets, one timer, nothing that decides."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.broker import Answer, Broker, Peer, Step
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.coordinator.server.framing import FrameBuffer, FrameError

#: Is told of every event with the microseconds since the server started.
OnEvents = Callable[[int, Sequence[Event]], None]
#: Is told why a connection was closed by us.
OnClose = Callable[[str, str], None]


#: How long a stopping server waits for clients to take what was written for them.
GRACE_S = 1.0


def java_address(host: str) -> str:
    """An address as java.net.InetAddress prints one: /127.0.0.1, /0:0:0:0:0:0:0:1."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return f"/{host}"
    if isinstance(address, ipaddress.IPv4Address):
        return f"/{address}"
    if address.ipv4_mapped is not None:
        return f"/{address.ipv4_mapped}"
    return "/" + ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


class Connection(asyncio.Protocol):
    """One client. While a request of it is served nothing more is read from it, as Kafka mutes a channel.

    A muted connection's end is not seen before its request is answered, which is Kafka's way as well.
    """

    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self._number = number
        self._frames = FrameBuffer(server.broker.state.config.socket_request_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._peer = Peer("", Endpoint("", 0))
        self._in_flight = False
        self._can_write = True
        self._reading = True
        self._advancing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of that class
        remote: Any = transport.get_extra_info("peername")
        local: Any = transport.get_extra_info("sockname")
        self._peer = Peer(java_address(remote[0]), Endpoint(local[0], local[1]))
        self._server.connections[self._number] = self

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._server.lost(self._number)

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        self._advance()

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._advance()

    def take(self, answer: Answer) -> None:
        """The request in flight is answered."""
        if self._transport is None:
            return
        if answer.payload is not None:
            self._transport.write(answer.payload)
        if answer.close is not None:
            self.close(answer.close)
            return
        self._in_flight = False
        if not self._advancing and (not self._reading or len(self._frames)):
            # not here and now: a round that completes answers thousands, and each may have sent more
            asyncio.get_running_loop().call_soon(self._advance)

    def close(self, why: str) -> None:
        if self._transport is not None:
            self._server.on_close(self._peer.host, why)
            self._transport.close()

    def abort(self) -> None:
        """Close without sending what is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _advance(self) -> None:
        self._advancing = True
        try:
            self._serve_frames()
        finally:
            self._advancing = False
        self._mute_or_unmute()

    def _serve_frames(self) -> None:
        while self._transport is not None and not self._transport.is_closing():
            if self._in_flight or not self._can_write:
                break
            try:
                frame = self._frames.next_frame()
            except FrameError as problem:
                self.close(str(problem))
                break
            if frame is None:
                break
            self._in_flight = True
            self._server.received(self._number, self._peer, frame)

    def _mute_or_unmute(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        wanted = not self._in_flight and self._can_write
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif self._reading and not wanted:
            self._transport.pause_reading()
        self._reading = wanted


class Server:
    """A listening broker. One timer stands for all deadlines."""

    def __init__(self, broker: Broker, on_events: OnEvents, on_close: OnClose) -> None:
        self.broker = broker
        self.on_close = on_close
        self.connections: dict[int, Connection] = {}
        self._on_events = on_events
        self._next_number = 0
        self._listener: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started_ns = 0
        self._latest_ms = 0

    async def start(self, host: str, port: int) -> Endpoint:
        """Listen; gives the address, with the port that was free if ``port`` is 0. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        self._started_ns = time.monotonic_ns()
        self._listener = await self._loop.create_server(self._accept, host, port, reuse_address=True)
        bound: Any = self._listener.sockets[0].getsockname()
        return Endpoint(bound[0], bound[1])

    async def stop(self) -> None:
        """Close the listener and every connection; what is parked is never answered."""
        if self._timer is not None:
            self._timer.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections.values()):
            connection.close("the server stops")
        if self._listener is None:
            return
        try:
            async with asyncio.timeout(GRACE_S):
                await self._listener.wait_closed()
        except TimeoutError:
            for connection in list(self.connections.values()):
                connection.abort()

    def received(self, number: int, peer: Peer, frame: bytes) -> None:
        self._carry_out(self.broker.receive(number, peer, frame, self._now_ms()))

    def lost(self, number: int) -> None:
        self.connections.pop(number, None)
        self.broker.forget(number)

    def _accept(self) -> Connection:
        self._next_number += 1
        return Connection(self, self._next_number)

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._started_ns) // 1000  # a loop's own clock may tick in milliseconds

    def _now_ms(self, at_least_ms: int = 0) -> int:
        """The broker's time, which never goes back, even behind a timer that came a moment too early."""
        self._latest_ms = max(self._latest_ms, at_least_ms, self._now_us() // 1000)
        return self._latest_ms

    def _carry_out(self, step: Step) -> None:
        if step.events:
            self._on_events(self._now_us(), step.events)
        for answer in step.answers:
            connection = self.connections.get(answer.connection)
            if connection is not None:
                connection.take(answer)
        self._arm()

    def _arm(self) -> None:
        assert self._loop is not None
        deadline_ms = self.broker.next_deadline()
        if deadline_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timer_ms = deadline_ms
        if deadline_ms is not None:
            delay_s = (deadline_ms * 1000 - self._now_us()) / 1_000_000
            self._timer = self._loop.call_later(max(0.0, delay_s), self._fire, deadline_ms)

    def _fire(self, deadline_ms: int) -> None:
        self._timer = None
        self._timer_ms = None
        try:
            self._carry_out(self.broker.fire(self._now_ms(at_least_ms=deadline_ms)))
        finally:
            self._arm()

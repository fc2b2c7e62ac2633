"""One connection: two transports, and what is under way between them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from groupstorm.simulation.loop import Owner, VirtualLoop

#: (connection, direction, message) -> microseconds under way. Direction 0: to the listener, 1: from it.
Latency = Callable[[int, int, int], int]
Address = tuple[str, int]


class _Kind(Enum):
    """The kinds of message from one end to the other: bytes, its end (FIN), or that it is gone (RST)."""

    DATA = auto()
    END = auto()
    RESET = auto()


class Link:
    """Delivers in order. While it is held, everything waits."""

    def __init__(
        self,
        loop: VirtualLoop,
        number: int,
        owner: Owner | None,
        latency: Latency,
        is_held: Callable[[Link], bool],
        on_closed: Callable[[Link], None],
    ) -> None:
        """``owner``: the process that has connected."""
        self.number = number
        self.owner = owner
        self._loop = loop
        self._latency = latency
        self._is_held = is_held
        self._on_closed = on_closed
        self._messages = [0, 0]
        self._arrival_us = [0, 0]
        self._held: list[tuple[int, _Kind, bytes]] = []

    def connect(self, client: Transport, server: Transport) -> None:
        self.client, self.server = client, server
        server.begin()
        client.begin()

    def send(self, direction: int, kind: _Kind, data: bytes = b"") -> None:
        """Send to the other end. ``direction``: 0 from the client, 1 from the server."""
        if self._is_held(self):
            self._held.append((direction, kind, data))
            return
        number = self._messages[direction]
        self._messages[direction] += 1
        arrival_us = self._loop.now_us + self._latency(self.number, direction, number)
        arrival_us = self._arrival_us[direction] = max(arrival_us, self._arrival_us[direction] + 1)
        target = self.client if direction else self.server
        self._loop.call_at_us(arrival_us, target.arrived, kind, data, context=target.context)

    def release(self) -> None:
        """Send what was held."""
        held, self._held = self._held, []
        for one in held:
            self.send(*one)

    def closed(self) -> None:
        """An end has closed."""
        if self.client.is_lost and self.server.is_lost:
            self._on_closed(self)

    def lose(self) -> None:
        """Both ends learn that the connection is gone."""
        for end in (self.client, self.server):
            self._loop.call_soon(end.arrived, _Kind.RESET, b"", context=end.context)


class SocketInfo:
    """Stands for a socket: only its addresses and options are asked for."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address

    def setsockopt(self, *_arguments: Any) -> None:
        """No option has an effect here."""


class Transport(asyncio.Transport):
    """One end of a link, as asyncio's protocols and streams use it."""

    def __init__(
        self,
        loop: VirtualLoop,
        link: Link,
        direction: int,
        protocol: asyncio.BaseProtocol,
        context: contextvars.Context,
        here: Address,
        there: Address,
    ) -> None:
        """``context``: in which the protocol is called: that of the process that it belongs to."""
        super().__init__({"sockname": here, "peername": there, "socket": SocketInfo(here)})
        self.context = context
        self.is_lost = False
        self._loop = loop
        self._link = link
        self._direction = direction
        self._protocol: Any = protocol
        self._closing = False
        self._peer_is_gone = False
        self._reading = True
        self._unread: list[tuple[_Kind, bytes]] = []

    def begin(self) -> None:
        self.context.copy().run(self._protocol.connection_made, self)

    # sending

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        if self._peer_is_gone:  # the peer's system answers that nobody is there any more
            self._link.send(1 - self._direction, _Kind.RESET)
            return
        self._link.send(self._direction, _Kind.DATA, bytes(data))

    def write_eof(self) -> None:
        self._link.send(self._direction, _Kind.END)

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered here."""

    # closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._close(_Kind.END, None)

    def abort(self) -> None:
        self._close(_Kind.RESET, None)

    def _close(self, kind: _Kind | None, problem: Exception | None) -> None:
        """Close this end; ``kind``: what the other one is sent."""
        if self._closing:
            return
        self._closing = True
        if kind is not None and not self._peer_is_gone:
            self._link.send(self._direction, kind)
        self._loop.call_soon(self._lose, problem, context=self.context)

    def _lose(self, problem: Exception | None) -> None:
        self.is_lost = True
        self._link.closed()
        self._protocol.connection_lost(problem)

    def vanish(self) -> None:
        """The process of this end is gone: its system says so to the other end, and nobody here is told."""
        if not self._closing:
            self._link.send(self._direction, _Kind.RESET)
        self._closing = self.is_lost = True
        self._link.closed()

    # receiving

    def arrived(self, kind: _Kind, data: bytes) -> None:
        if self._closing:
            return
        if kind is _Kind.RESET:
            self._peer_is_gone = True
            self._close(None, ConnectionResetError(104, "the connection was lost"))
        elif self._reading:
            self._take(kind, data)
        else:
            self._unread.append((kind, data))

    def _take(self, kind: _Kind, data: bytes) -> None:
        if kind is _Kind.DATA:
            self._protocol.data_received(data)
            return
        self._peer_is_gone = True
        if not self._protocol.eof_received():
            self._close(None, None)

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        if self._unread:
            self._loop.call_soon(self._read_more, context=self.context)

    def _read_more(self) -> None:
        while self._unread and self._reading and not self._closing:
            self._take(*self._unread.pop(0))

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        found: asyncio.BaseProtocol = self._protocol
        return found

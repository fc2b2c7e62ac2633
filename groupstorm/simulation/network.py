"""Connections in memory: bytes arrive in order, each message after the latency that the seed gives it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from groupstorm.simulation.loop import MICROSECONDS, OWNER, Owner, VirtualLoop

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

    shutdown = setsockopt  # transports alone end connections


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


#: The first port that is given to a listener which asks for any.
_FIRST_PORT = 9092
_FIRST_CLIENT_PORT = 30_000
#: The address of code that belongs to no instance.
TEST_HOST = "10.0.2.1"

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class Network:
    """All connections of a simulation. An address is known if something listens there."""

    def __init__(self, loop: VirtualLoop, latency: Latency) -> None:
        self._loop = loop
        self._latency = latency
        self._listeners: dict[tuple[str, int], ProtocolFactory] = {}
        self._number = 0
        #: Every connection whose two ends are not both closed, by number.
        self.links: dict[int, Link] = {}
        self._cut: list[Owner] = []
        self._attempts: list[tuple[Owner, asyncio.Future[None]]] = []

    def listen(self, factory: ProtocolFactory, host: str, port: int) -> Listener:
        """Raises OSError if something listens there."""
        if port == 0:
            port = _FIRST_PORT
            while (host, port) in self._listeners:
                port += 1
        if (host, port) in self._listeners:
            raise OSError(98, f"{host}:{port} is in use")
        self._listeners[host, port] = factory
        return Listener(self, host, port)

    def unlisten(self, address: tuple[str, int]) -> None:
        self._listeners.pop(address, None)

    async def connect(
        self, factory: ProtocolFactory, host: str, port: int
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """Raises ConnectionRefusedError, a moment later, if nothing listens there."""
        self._number += 1
        number, owner = self._number, OWNER.get()
        await self._until_reached(number, owner)
        listener = self._listeners.get((host, port))
        if listener is None:
            raise ConnectionRefusedError(111, f"nothing listens at {host}:{port} in this simulation")
        here = (TEST_HOST if owner is None else owner.host, _FIRST_CLIENT_PORT + number)
        of_listener = contextvars.Context()
        client, server = factory(), of_listener.run(listener)
        link = Link(self._loop, number, owner, self._latency, self._is_held, self._forget)
        self.links[number] = link
        link.connect(
            Transport(self._loop, link, 0, client, contextvars.copy_context(), here, (host, port)),
            Transport(self._loop, link, 1, server, of_listener, (host, port), here),
        )
        return link.client, client

    def _is_held(self, link: Link) -> bool:
        return bool(self._cut) and self.is_cut_off(link.owner)

    def _forget(self, link: Link) -> None:
        self.links.pop(link.number, None)

    async def _until_reached(self, number: int, owner: Owner | None) -> None:
        """A process that is cut off gets no answer to its attempt before it is cut off no longer."""
        await asyncio.sleep(self._latency(number, 0, -1) / MICROSECONDS)
        while owner is not None and self.is_cut_off(owner):
            reached = self._loop.create_future()
            self._attempts.append((owner, reached))
            await reached
        await asyncio.sleep(self._latency(number, 1, -1) / MICROSECONDS)

    def is_cut_off(self, owner: Owner | None) -> bool:
        return any(one is owner for one in self._cut)

    def cut_off(self, owner: Owner) -> None:
        """Nothing reaches the process, and nothing from it arrives, until `reconnect`."""
        if not self.is_cut_off(owner):
            self._cut.append(owner)

    def reconnect(self, owner: Owner) -> None:
        """End the cut: everything that was sent during it arrives, as TCP sends it again."""
        self._cut = [one for one in self._cut if one is not owner]
        for link in self.of(owner):
            link.release()
        for of, attempt in self._attempts:
            if of is owner and not attempt.done():
                attempt.set_result(None)
        self._attempts = [one for one in self._attempts if one[0] is not owner]

    def of(self, owner: Owner) -> list[Link]:
        """The connections that a process has opened, the oldest first."""
        return [link for link in self.links.values() if link.owner is owner]

    def end(self, owner: Owner) -> None:
        """The process is gone: its system closes its sockets."""
        for link in self.of(owner):
            link.client.vanish()


class Listener:
    """Stands in for asyncio's server in code that listens."""

    def __init__(self, network: Network, host: str, port: int) -> None:
        self._network = network
        self._address = (host, port)
        self.sockets = (SocketInfo(self._address),)

    def close(self) -> None:
        self._network.unlisten(self._address)

    async def wait_closed(self) -> None:
        """Connections live on, and close on their own."""

    def is_serving(self) -> bool:
        return True

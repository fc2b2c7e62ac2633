"""Connections in memory: bytes arrive in order, each message after the latency that the seed gives it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from groupstorm.simulation.link import Latency, Link, SocketInfo, Transport
from groupstorm.simulation.loop import MICROSECONDS, OWNER, Owner, VirtualLoop

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

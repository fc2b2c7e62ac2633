"""Faults between the sockets and the broker: which request a fault takes, what becomes of it, and paused
brokers, which accept connections, read nothing and answer nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from groupstorm.broker.connection import Connection
from groupstorm.broker.requests import Peer
from groupstorm.broker.shell import Server
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError
from groupstorm.testing.faults import Delay, Disconnect, Fail, Faults, read_seen

#: Behind API key, version and correlation id of a request.
_CLIENT_ID_AT = 8
#: The number of client ids that are remembered, the first ones.
CLIENT_IDS_KEPT = 10_000


class Interception:
    """A server's `intercept`. It calls ``on_hit`` when a fault has taken a request."""

    def __init__(self, server: Server, faults: Faults, on_hit: Callable[[], None]) -> None:
        self._server = server
        self._faults = faults
        self._on_hit = on_hit
        #: The client ids of all requests so far.
        self.client_ids: set[str] = set()
        #: By connection: its last client id, as it is in a request, with its length.
        self._seen: dict[int, bytes] = {}

    def __call__(self, number: int, peer: Peer, frame: bytes) -> bool:
        """Whether a fault has taken the request. The broker refuses a request that cannot be read."""
        if not self._faults.waiting and frame.startswith(self._seen.get(number, b"-"), _CLIENT_ID_AT):
            return False  # as with the last request of the connection
        try:
            seen = read_seen(frame, self._faults)
        except CodecError:
            return False
        if seen is None:
            return False
        connection = self._server.connections.get(number)
        if connection is not None:
            connection.client_id = seen.client_id
            self._note(number, seen.client_id)
            if len(self.client_ids) < CLIENT_IDS_KEPT:
                self.client_ids.add(seen.client_id)
        effect = self._faults.decide(seen)
        match effect:
            case None:
                return False
            case Delay(delay_ms):
                loop = asyncio.get_running_loop()
                loop.call_later(delay_ms / 1000, self._serve_late, number, peer, frame)
            case Fail(error):
                self._refuse(number, peer, frame, error)
            case Disconnect() if connection is not None:
                connection.close(f"a fault: the connection ends at a {seen.api} request")
        self._on_hit()
        return True

    def _note(self, number: int, client_id: str) -> None:
        encoded = client_id.encode()
        if len(self._seen) >= CLIENT_IDS_KEPT:
            self._seen.clear()
        self._seen[number] = len(encoded).to_bytes(2, "big") + encoded

    def _refuse(self, number: int, peer: Peer, frame: bytes, error: Error) -> None:
        self._server.apply(lambda broker, now_ms: broker.refuse(number, peer, frame, error, now_ms))

    def _serve_late(self, number: int, peer: Peer, frame: bytes) -> None:
        if number in self._server.connections:
            self._server.serve(number, peer, frame)
            self._server.arm()


class PausedBrokers:
    """The paused brokers of one server. Time goes on: sessions may end meanwhile."""

    def __init__(self, server: Server) -> None:
        self._server = server
        #: The ids of the brokers that are paused.
        self.nodes: set[int] = set()
        server.on_connection = self._pause_new

    def pause(self, node: int) -> None:
        self.nodes.add(node)
        for connection in self._connections(node):
            connection.pause()

    def resume(self, node: int) -> None:
        """The broker sends the responses that it has held back, then reads again."""
        self.nodes.discard(node)
        for connection in self._connections(node):
            connection.resume()

    def _connections(self, node: int) -> list[Connection]:
        return [connection for connection in self._server.connections.values() if connection.node == node]

    def _pause_new(self, connection: Connection) -> None:
        if connection.node in self.nodes:
            connection.pause()

"""Between the sockets and the broker: reads as much of a request as a fault asks for, and carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from groupstorm.coordinator.server.apis import APIS
from groupstorm.coordinator.server.broker import Peer
from groupstorm.coordinator.server.codec import CodecError, decoder, request_type
from groupstorm.coordinator.server.headers import peek, read_header
from groupstorm.coordinator.server.shell import Server
from groupstorm.testing.faults import GROUPS_OF, Delay, Disconnect, Fail, Faults, Seen


class Interception:
    """A server's `intercept`. ``on_hit`` is called when a fault has taken a request."""

    def __init__(self, server: Server, faults: Faults, on_hit: Callable[[], None]) -> None:
        self._server = server
        self._faults = faults
        self._on_hit = on_hit

    def __call__(self, number: int, peer: Peer, frame: bytes) -> bool:
        """Whether a fault has taken the request. What cannot be read is the broker's to refuse."""
        try:
            seen = self._read(frame)
        except CodecError:
            return False
        if seen is None:
            return False
        connection = self._server.connections.get(number)
        if connection is not None:
            connection.client_id = seen.client_id
        effect = self._faults.decide(seen)
        match effect:
            case None:
                return False
            case Delay(delay_ms):
                loop = asyncio.get_running_loop()
                loop.call_later(delay_ms / 1000, self._serve_late, number, peer, frame)
            case Fail(error):
                self._server.refuse(number, peer, frame, error)
            case Disconnect() if connection is not None:
                connection.close(f"a fault: the connection ends at a {seen.api} request")
        self._on_hit()
        return True

    def _serve_late(self, number: int, peer: Peer, frame: bytes) -> None:
        if number in self._server.connections:
            self._server.serve(number, peer, frame)
            self._server.arm()

    def _read(self, frame: bytes) -> Seen | None:
        """None for an API or a version that is not served. Raises CodecError."""
        api_key, version = peek(frame)
        api = APIS.get(api_key)
        if api is None or not api.min_version <= version <= api.max_version:
            return None
        message_type = request_type(api_key, version)
        header = read_header(frame, message_type.__flexible__)
        if not self._faults.ask_for_groups(api.name):
            return Seen(api.name, header.client_id)
        message, _ = decoder(message_type)(frame, header.body_at)
        return Seen(api.name, header.client_id, GROUPS_OF[api.name](message))

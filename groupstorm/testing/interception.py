"""Faults between the sockets and the broker: which request a fault takes, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from groupstorm.broker.apis import APIS
from groupstorm.broker.shell import Server
from groupstorm.broker.surface import Peer
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError, decoder, request_type
from groupstorm.protocol.headers import peek, read_header
from groupstorm.testing.faults import GROUPS_OF, Delay, Disconnect, Fail, Faults, Seen

#: How many client ids are remembered, the first ones.
CLIENT_IDS_KEPT = 10_000


class Interception:
    """A server's `intercept`. It calls ``on_hit`` when a fault has taken a request."""

    def __init__(self, server: Server, faults: Faults, on_hit: Callable[[], None]) -> None:
        self._server = server
        self._faults = faults
        self._on_hit = on_hit
        #: The client ids of all requests so far.
        self.client_ids: set[str] = set()

    def __call__(self, number: int, peer: Peer, frame: bytes) -> bool:
        """Whether a fault has taken the request. The broker refuses a request that cannot be read."""
        try:
            seen = self._read(frame)
        except CodecError:
            return False
        if seen is None:
            return False
        connection = self._server.connections.get(number)
        if connection is not None:
            connection.client_id = seen.client_id
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

    def _refuse(self, number: int, peer: Peer, frame: bytes, error: Error) -> None:
        self._server.apply(lambda broker, now_ms: broker.refuse(number, peer, frame, error, now_ms))

    def _serve_late(self, number: int, peer: Peer, frame: bytes) -> None:
        if number in self._server.connections:
            self._server.serve(number, peer, frame)
            self._server.arm()

    def _read(self, frame: bytes) -> Seen | None:
        """The parts that faults look at; None for an API or a version that is not served. Raises
        CodecError."""
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

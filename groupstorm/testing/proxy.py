"""The proxy through which clients reach a real broker in a test: faults, pauses and dropped connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.requests import Peer
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.storms.live.forwarding import HOST, UNKNOWN_NODE, Connection, Forwarded, Forwarder, Listener
from groupstorm.testing.faults import Delay, Disconnect, Fail, FaultControl, check_client, read_seen


class FaultProxy(Forwarder, FaultControl):
    """A forwarder that carries out faults. As a broker does, it serves one request of a connection after the
    other."""

    def __init__(self, brokers: Sequence[Endpoint]) -> None:
        """``brokers``: the cluster's bootstrap addresses."""
        Forwarder.__init__(self, brokers)
        FaultControl.__init__(self)
        self._client_ids: set[str] = set()
        self._all_are_paused = False
        #: Builds responses to requests that are not carried out; it serves nobody.
        self._refusing = make_broker({}, {})

    def drop_connections(self, client_id: str | None = None) -> int:
        check_client(client_id, self._client_ids)
        dropped = [
            one for one in self.connections if client_id in (None, one.client_id) and not one.is_aborted
        ]
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def pause(self, broker: int | None = None) -> None:
        for listener in self._of(broker):
            listener.goes_on.clear()
        self._all_are_paused |= broker is None

    def resume(self, broker: int | None = None) -> None:
        for listener in self._of(broker):
            listener.goes_on.set()
        self._all_are_paused &= broker is not None

    def _of(self, broker: int | None) -> list[Listener]:
        """Raises InputError for a broker that no response has named."""
        if broker is None:
            return list(self.listeners.values())
        found = [one for one in self.listeners.values() if one.node_id == broker]
        if not found:
            named = sorted({one.node_id for one in self.listeners.values()} - {UNKNOWN_NODE})
            raise InputError(
                f"broker: {broker!r}: expected one that a response has named to a client:"
                f" {', '.join(map(str, named)) or 'so far none'}"
            )
        return found

    def on_listener(self, listener: Listener) -> None:
        if self._all_are_paused:
            listener.goes_on.clear()

    async def on_request(self, connection: Connection, request: Forwarded) -> bool:
        await connection.is_answered.wait()
        seen = read_seen(request.frame, self.faults)
        if seen is None:
            return False
        self._client_ids.add(seen.client_id)
        effect = self.faults.decide(seen)
        if effect is None:
            return False
        self._conditions.look_again()
        match effect:
            case Delay(delay_ms):
                await asyncio.sleep(delay_ms / 1000)
                return False
            case Fail(error):
                peer = Peer(HOST, connection.listener.at, None)
                now_ms = time.time_ns() // 1_000_000
                refused = self._refusing.refuse(id(connection), peer, request.frame, error, now_ms)
                await connection.send(b"".join(output.payload or b"" for output in refused.outputs))
            case Disconnect():
                connection.close()
        return True

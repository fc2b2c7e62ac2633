"""A TCP proxy before a broker that notes when the requests of a group's members pass, and what is answered.

It reads the beginnings of frames alone: sizes, API keys, client ids and the error codes of Heartbeat.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from groupstorm.protocol.endpoints import Endpoint

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
_NOTED = (JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP)
_FIRST_FLEXIBLE_HEARTBEAT = 4


class Passed(NamedTuple):
    """A request or, with ``error``, the response to a Heartbeat. ``at_us``: of a monotonic clock."""

    at_us: int
    client_id: str
    api_key: int
    error: int | None


class HeartbeatProxy:
    """Passes everything on between clients and ``broker``; ``note`` gets what passes."""

    def __init__(self, note: Callable[[Passed], None]) -> None:
        self._note = note
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, port: int, broker: Endpoint) -> None:
        """Listen on this port of the loopback interface."""
        self._broker = broker
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)

    async def stop(self) -> None:
        self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            from_broker, to_broker = await asyncio.open_connection(self._broker.host, self._broker.port)
            heartbeats: dict[int, tuple[str, int]] = {}
            ways = (
                asyncio.ensure_future(self._requests(client, to_broker, heartbeats)),
                asyncio.ensure_future(self._responses(from_broker, to_client, heartbeats)),
            )
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                to_broker.close()
        except asyncio.CancelledError:
            pass  # the proxy stops; nothing waits for this connection but `stop`
        finally:
            to_client.close()
            self._connections.discard(task)

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        heartbeats: dict[int, tuple[str, int]],
    ) -> None:
        while True:
            frame = await _frame(reader)
            at_us = _now_us()
            api_key, version, correlation, length = struct.unpack_from(">hhih", frame, 4)
            if api_key in _NOTED:
                client_id = frame[14 : 14 + max(length, 0)].decode()
                self._note(Passed(at_us, client_id, api_key, None))
                if api_key == HEARTBEAT:
                    heartbeats[correlation] = client_id, version
            writer.write(frame)
            await writer.drain()

    async def _responses(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        heartbeats: dict[int, tuple[str, int]],
    ) -> None:
        while True:
            frame = await _frame(reader)
            at_us = _now_us()
            (correlation,) = struct.unpack_from(">i", frame, 4)
            asked = heartbeats.pop(correlation, None)
            if asked is not None:
                client_id, version = asked
                # size, correlation id, tagged fields if flexible, throttle time from version 1 on
                at = 8 + (version >= _FIRST_FLEXIBLE_HEARTBEAT) + 4 * (version >= 1)
                (error,) = struct.unpack_from(">h", frame, at)
                self._note(Passed(at_us, client_id, HEARTBEAT, error))
            writer.write(frame)
            await writer.drain()


def _now_us() -> int:
    return time.monotonic_ns() // 1000


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))

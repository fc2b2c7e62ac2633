"""A proxy before a broker that notes when the requests of a group's members pass, and what is answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from groupstorm.protocol.endpoints import Endpoint
from groupstorm.storms.live.forwarding import Connection, Forwarded, Forwarder

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
_NOTED = (JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP)
_FIRST_FLEXIBLE_HEARTBEAT = 4


class Passed(NamedTuple):
    """A request or, with ``error``, the response to a Heartbeat. ``at_us``: of a monotonic clock."""

    at_us: int
    client_id: str
    api_key: int
    error: int | None


class HeartbeatProxy(Forwarder):
    """Passes everything on between clients and ``brokers``; ``note`` gets what passes."""

    def __init__(self, brokers: Sequence[Endpoint], note: Callable[[Passed], None]) -> None:
        super().__init__(brokers)
        self._note = note

    async def on_request(self, connection: Connection, request: Forwarded) -> bool:
        if request.header is not None and request.api_key in _NOTED:
            self._note(Passed(_now_us(), request.header.client_id, request.api_key, None))
        return False

    async def on_response(self, connection: Connection, request: Forwarded, response: bytes) -> None:
        if request.header is not None and request.api_key == HEARTBEAT:
            # correlation id, tagged fields if flexible, throttle time from version 1 on
            at = 4 + (request.version >= _FIRST_FLEXIBLE_HEARTBEAT) + 4 * (request.version >= 1)
            error = int.from_bytes(response[at : at + 2], signed=True)
            self._note(Passed(_now_us(), request.header.client_id, HEARTBEAT, error))


def _now_us() -> int:
    return time.monotonic_ns() // 1000

"""One client's connection: frames in, responses out, one request at a time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, cast

from groupstorm.broker.broker import Broker
from groupstorm.broker.requests import ConnectionOutput, Peer
from groupstorm.protocol.endpoints import Endpoint, java_address
from groupstorm.protocol.headers import FrameBuffer, FrameError

#: Responses to requests that came together leave together, as soon as they are so many bytes.
SEND_BYTES = 65_536
#: Requests that came together are served together for so long: then other connections have their turn.
TURN_S = 0.005


class ConnectionServer(Protocol):
    """The calls of a connection to its server (`groupstorm.broker.shell.Server`)."""

    @property
    def broker(self) -> Broker: ...

    def on_close(self, peer: str, why: str, /) -> None: ...

    def made(self, number: int, connection: Connection, /) -> None: ...

    def lost(self, number: int, /) -> None: ...

    def received(self, number: int, peer: Peer, frame: bytes, /) -> None: ...

    def now_s(self) -> float: ...

    def arm(self) -> None: ...

    def call_later(self, delay_s: float, act: Callable[[], None], /) -> None: ...


def shut_down(connected: Any) -> None:
    """End a connection, or a listener, in front of its close: a process that was forked from this one, as the
    service of a test, has the socket too, and keeps it open."""
    with suppress(OSError, TypeError):  # uvloop's sockets refuse it
        connected.shutdown(socket.SHUT_RDWR)


class Connection(asyncio.Protocol):
    """One client. While the broker serves a request of it, the connection is muted: nothing more is read.

    The end of a muted connection is not seen before its request is answered, as in Kafka.
    """

    def __init__(self, server: ConnectionServer, number: int, node: int) -> None:
        """``node``: the broker that the client has connected to."""
        self._server = server
        self._number = number
        self.node = node
        #: The client id of its last request, if the server's `intercept` reads requests.
        self.client_id: str | None = None
        self.used_at_s = 0.0
        self._frames = FrameBuffer(server.broker.state.config.socket_request_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._socket: Any = None
        self._peer = Peer("", Endpoint("", 0))
        self._in_flight = False
        self._can_write = True
        self._reading = True
        self._advancing = False
        self._paused = False
        self._throttled = False
        self._behind = False
        self._held: ConnectionOutput | None = None
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of that class
        remote: Any = transport.get_extra_info("peername")
        local: Any = transport.get_extra_info("sockname")
        self._peer = Peer(java_address(remote[0]), Endpoint(local[0], local[1]), self.node)
        self._socket = transport.get_extra_info("socket")
        # the system notices a host that is gone without closing its connection, as with Kafka's sockets
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._server.made(self._number, self)

    @property
    def is_idle(self) -> bool:
        """No request is being served, and the client has read every response."""
        return not self._in_flight and self._can_write and not self._paused and not self._throttled

    def pause(self) -> None:
        """Read nothing and send nothing until `resume`."""
        self._paused = True
        self._mute_or_unmute()

    def resume(self) -> None:
        self._paused = False
        held, self._held = self._held, None
        if held is not None:
            self.write(held)
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        shut_down(self._socket)
        self._server.lost(self._number)

    def data_received(self, data: bytes) -> None:
        self.used_at_s = self._server.now_s()
        self._frames.feed(data)
        self._advance()

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._advance()

    def write(self, output: ConnectionOutput) -> None:
        """Send the response to the request in flight, or close the connection."""
        if self._transport is None:
            return
        if self._paused:
            self._held = output
            return
        if output.payload is not None:
            self._unsent.append(output.payload)
            self._unsent_bytes += len(output.payload)
            if not self._advancing or self._unsent_bytes >= SEND_BYTES:
                self.send()
        if output.close is not None:
            self.close(output.close)
            return
        self._in_flight = False
        if output.mute_ms:
            self._throttled = True
            self._server.call_later(output.mute_ms / 1000, self._end_throttling)
        if self._advancing:
            return
        self.used_at_s = self._server.now_s()
        if not self._reading or len(self._frames):
            # later: a round that completes answers thousands of members, and each may have sent more
            asyncio.get_running_loop().call_soon(self._advance)

    def _end_throttling(self) -> None:
        self._throttled = False
        self._advance()

    def send(self) -> None:
        """Send the responses that were collected while requests were served."""
        unsent, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if unsent and self._transport is not None:
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def close(self, why: str) -> None:
        if self._transport is not None:
            self._server.on_close(self._peer.host, why)
            self.send()
            self._transport.close()

    def abort(self) -> None:
        """Close without sending the remaining responses."""
        if self._transport is not None:
            self._transport.abort()

    def _advance(self) -> None:
        if len(self._frames) and not self._behind:
            self._advancing = True
            try:
                self._serve_frames()
            finally:
                self._advancing = False
                self.send()
                self._server.arm()
        self._mute_or_unmute()

    def _serve_frames(self) -> None:
        end_s = self._server.now_s() + TURN_S
        while self._transport is not None and not self._transport.is_closing():
            if self._in_flight or not self._can_write or self._paused or self._throttled:
                break
            try:
                frame = self._frames.next_frame()
            except FrameError as problem:
                self.close(str(problem))
                break
            if frame is None:
                break
            self._in_flight = True
            self._receive_frame(frame)
            if self._server.now_s() > end_s and len(self._frames):
                self._behind = True
                asyncio.get_running_loop().call_soon(self._catch_up)
                break

    def _catch_up(self) -> None:
        self._behind = False
        self._advance()

    def _receive_frame(self, frame: bytes) -> None:
        self._server.received(self._number, self._peer, frame)

    def _mute_or_unmute(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        busy = self._in_flight or self._paused or self._throttled or self._behind
        wanted = not busy and self._can_write
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif self._reading and not wanted:
            self._transport.pause_reading()
        self._reading = wanted

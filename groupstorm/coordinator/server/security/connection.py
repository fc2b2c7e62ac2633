"""Connections with TLS, SASL or both: what `shell.Connection` is to those without."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from groupstorm.coordinator.server.broker import Answer
from groupstorm.coordinator.server.security.gate import Gate, Pass, Refuse, Reply, Verdict
from groupstorm.coordinator.server.security.listener import PLAINTEXT, Security, tls_reason
from groupstorm.coordinator.server.shell import Connection

if TYPE_CHECKING:
    from groupstorm.coordinator.server.shell import Server

#: How long a client may take for TLS's handshake, and for its farewell.
HANDSHAKE_S, FAREWELL_S = 30.0, 1.0


def connections(security: Security) -> Callable[[Server, int, int], Connection]:
    """What a server makes its connections with; the arguments are those of `shell.Connection`."""
    if security == PLAINTEXT:
        return Connection

    def make(server: Server, number: int, node: int) -> Connection:
        return SecuredConnection(server, number, node, security)

    return make


class SecuredConnection(Connection):
    """It counts as a connection from the moment that it is there, its handshake included."""

    def __init__(self, server: Server, number: int, node: int, security: Security) -> None:
        super().__init__(server, number, node)
        self._tls = security.tls
        self._config = server.broker.state.config
        self._securing: asyncio.Task[None] | None = None
        self._gate = None if security.users is None else Gate(security.users, self._config)
        self._set_room()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._tls is not None and not transport.is_closing():
            plain = cast("asyncio.Transport", transport)
            plain.pause_reading()  # the first bytes are the handshake's
            self._securing = asyncio.get_running_loop().create_task(self._secure(plain, self._tls))

    async def _secure(self, plain: asyncio.Transport, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(
                plain,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=FAREWELL_S,
            )
        except OSError as problem:  # ssl.SSLError and TimeoutError are such, too
            plain.abort()
            if self._transport is not None:
                self._server.on_close(self._peer.host, f"no TLS: {tls_reason(problem)}")
                self.connection_lost(None)
            return
        self._securing = None
        self._transport = secured
        self._advance()

    def data_received(self, data: bytes) -> None:
        if self._securing is None:
            super().data_received(data)
            return
        # it came with the end of the handshake: to be looked at as soon as it can be answered
        self._frames.feed(data)

    def _hear(self, frame: bytes) -> None:
        if self._gate is None:
            super()._hear(frame)
            return
        verdict = self._gate.receive(frame, int(self._server.now_s() * 1000))
        self._set_room()
        if self._gate.is_open:
            self._gate = None
        self._carry_out(verdict, frame)

    def _carry_out(self, verdict: Verdict, frame: bytes) -> None:
        match verdict:
            case Pass():
                super()._hear(frame)
            case Reply(payload):
                self.take(Answer(self._number, payload))
            case Refuse(payload, why, delayed):
                answer = Answer(self._number, payload, why)
                delay_ms = self._config.connection_failed_authentication_delay_ms if delayed else 0
                if delay_ms:
                    asyncio.get_running_loop().call_later(delay_ms / 1000, self.take, answer)
                else:
                    self.take(answer)

    def _set_room(self) -> None:
        if self._gate is not None:
            self._frames.max_bytes = self._gate.max_bytes

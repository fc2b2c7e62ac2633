"""Connections with TLS, SASL or both: what `shell.Connection` is to those without."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from groupstorm.coordinator.server.broker import Answer
from groupstorm.coordinator.server.security.gate import Gate, Pass, Refuse, Reply, Verdict
from groupstorm.coordinator.server.security.listener import PLAINTEXT, Security, tls_reason
from groupstorm.coordinator.server.security.tls import TlsTransport
from groupstorm.coordinator.server.shell import Connection

if TYPE_CHECKING:
    from groupstorm.coordinator.server.shell import Server


def connections(security: Security) -> Callable[[Server, int, int], Connection]:
    """What a server makes its connections with; the arguments are those of `shell.Connection`."""
    if security == PLAINTEXT:
        return Connection

    def make(server: Server, number: int, node: int) -> Connection:
        return SecuredConnection(server, number, node, security)

    return make


class SecuredConnection(Connection):
    """Its handshake is a part of it: it counts meanwhile, and goes if that takes too long, as idle ones."""

    def __init__(self, server: Server, number: int, node: int, security: Security) -> None:
        super().__init__(server, number, node)
        self._context = security.tls
        self._tls: TlsTransport | None = None
        self._config = server.broker.state.config
        self._gate = None if security.users is None else Gate(security.users, self._config)
        self._set_room()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._context is not None:
            self._tls = TlsTransport(cast("asyncio.Transport", transport), self._context)
            self._transport = self._tls

    def data_received(self, data: bytes) -> None:
        if self._tls is None:
            super().data_received(data)
            return
        try:
            super().data_received(self._tls.decrypted(data))
            if self._tls.said_farewell:
                self._tls.close()
        except ssl.SSLError as problem:
            self.close(f"no TLS: {tls_reason(problem)}")

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

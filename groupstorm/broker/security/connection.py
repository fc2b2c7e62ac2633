"""Connections with TLS, SASL or both."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from groupstorm.broker.authorization.principals import user
from groupstorm.broker.connection import Connection, ConnectionServer
from groupstorm.broker.security.authenticator import Authenticator, Pass, Refuse, Reply, Verdict
from groupstorm.broker.security.listener import PLAINTEXT, ListenerSecurity, tls_reason
from groupstorm.broker.security.subject import subject_of
from groupstorm.broker.security.tls import TlsTransport
from groupstorm.broker.surface import ConnectionOutput


def connections(security: ListenerSecurity) -> Callable[[ConnectionServer, int, int], Connection]:
    """Makes the connections of a server; the arguments of the function are those of `Connection`."""
    if security == PLAINTEXT:
        return Connection

    def make(server: ConnectionServer, number: int, node: int) -> Connection:
        return SecuredConnection(server, number, node, security)

    return make


class SecuredConnection(Connection):
    """A connection during its handshake too: it counts, and is closed as an idle one if that takes too
    long."""

    def __init__(self, server: ConnectionServer, number: int, node: int, security: ListenerSecurity) -> None:
        super().__init__(server, number, node)
        self._context = security.tls
        self._tls: TlsTransport | None = None
        self._is_named = security.users is not None
        state = server.broker.state
        self._config = state.config
        self._authenticator = (
            None if security.users is None else Authenticator(state.credentials, self._config)
        )
        self._set_frame_limit()

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
            if self._tls.has_ended:
                self._tls.close()
        except ssl.SSLError as problem:
            self.close(f"no TLS: {tls_reason(problem)}")

    def _receive_frame(self, frame: bytes) -> None:
        if self._authenticator is None:
            self._name_by_certificate()
            super()._receive_frame(frame)
            return
        verdict = self._authenticator.receive(frame, int(self._server.now_s() * 1000))
        self._set_frame_limit()
        if self._authenticator.username is not None:
            self._peer = self._peer._replace(principal=user(self._authenticator.username))
        if self._authenticator.is_open:
            self._authenticator = None
        self._carry_out(verdict, frame)

    def _name_by_certificate(self) -> None:
        """The client is the subject of its certificate, unless it has proved to be somebody by SASL."""
        if self._tls is None or self._is_named:
            return
        self._is_named = True
        certificate = self._tls.client_certificate
        if certificate is not None:
            self._peer = self._peer._replace(principal=user(subject_of(certificate)))

    def _carry_out(self, verdict: Verdict, frame: bytes) -> None:
        match verdict:
            case Pass():
                super()._receive_frame(frame)
            case Reply(payload):
                self.write(ConnectionOutput(self._number, payload))
            case Refuse(payload, why, delayed):
                output = ConnectionOutput(self._number, payload, why)
                delay_ms = self._config.connection_failed_authentication_delay_ms if delayed else 0
                if delay_ms:
                    asyncio.get_running_loop().call_later(delay_ms / 1000, self.write, output)
                else:
                    self.write(output)

    def _set_frame_limit(self) -> None:
        if self._authenticator is not None:
            self._frames.max_bytes = self._authenticator.max_bytes

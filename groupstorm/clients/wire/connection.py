"""One connection to a broker: responses arrive in the order of the requests (NetworkClient)."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias, cast, get_args

import groupstorm
from groupstorm.clients.wire.security import PLAINTEXT, AuthenticationRefused, ClientSecurity
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.protocol.codec import (
    CodecError,
    ResponseTypes,
    decoder,
    encoder,
    request_type,
    response_types,
)
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import FrameBuffer, FrameError, frame, request_header

#: Makes the structures of one request in one version; fields that the version lacks are dropped.
RequestTypes: TypeAlias = ResponseTypes
#: Makes a request of kio's from its structures, in the negotiated version.
Build: TypeAlias = Callable[[RequestTypes], Any]


def fields(**values: Any) -> Build:
    """A request with these fields; structures within it are a list of mappings with theirs."""
    return lambda types: _structure(types.root, values)


def _structure(kind: Any, values: Mapping[str, Any]) -> Any:
    known = _structures_in(kind)
    made = {name: value for name, value in values.items() if name in known}
    for name, inner in known.items():
        if inner is not None and made.get(name) is not None:
            made[name] = tuple([_structure(inner, one) for one in made[name]])
    return kind(**made)


@cache
def _structures_in(kind: Any) -> Mapping[str, Any]:
    """The fields of a structure, each with the structure of its elements; None if these are plain values."""
    return {field.name: _element(field.type) for field in dataclasses.fields(kind)}


def _element(kind: Any) -> Any:
    return kind if dataclasses.is_dataclass(kind) else next(filter(None, map(_element, get_args(kind))), None)


MAX_RESPONSE_BYTES = 104_857_600
"""A longer response is refused. A broker accepts as much (socket.request.max.bytes)."""

_API_VERSIONS = 18
_API_VERSIONS_VERSION = 3
_SOFTWARE = "groupstorm"


class ConnectionLost(ConnectionError):
    """The connection broke, could not be opened, or was closed because a response was late."""


class ClientApi(NamedTuple):
    """The versions of one API that this client speaks; a broker that serves none of them is refused."""

    key: int
    name: str
    lowest: int
    highest: int


_SASL_HANDSHAKE = ClientApi(17, "SaslHandshake", 1, 1)
_SASL_AUTHENTICATE = ClientApi(36, "SaslAuthenticate", 0, 2)


class _Pending(NamedTuple):
    """A request whose response has not come."""

    correlation_id: int
    api_key: int
    types: ResponseTypes
    response: asyncio.Future[Any]


class BrokerConnection(asyncio.Protocol):
    """An open connection whose broker has listed the versions that it serves; `open` makes one.

    Requests are small and few: the transport buffers bytes that the socket does not take at once.
    """

    def __init__(self, endpoint: Endpoint, client_id: str) -> None:
        self.endpoint = endpoint
        self.on_lost: Callable[[BrokerConnection], None] | None = None
        self._client_id = client_id
        self._transport: asyncio.Transport | None = None
        self._frames = FrameBuffer(MAX_RESPONSE_BYTES)
        self._pending: deque[_Pending] = deque()
        self._next_correlation_id = 0
        self._served: Mapping[int, tuple[int, int]] = {}
        self._why_lost = "the broker closed the connection"

    @classmethod
    async def open(
        cls, endpoint: Endpoint, client_id: str, timeout_ms: int, security: ClientSecurity = PLAINTEXT
    ) -> BrokerConnection:
        """Connect, ask for the versions that the broker serves, and authenticate.

        Raises ConnectionLost, and AuthenticationRefused if one side refuses the other's credentials.
        """
        loop = asyncio.get_running_loop()
        connection = cls(endpoint, client_id)
        opened = False
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await loop.create_connection(
                    lambda: connection, endpoint.host, endpoint.port, ssl=security.tls
                )
                await connection._learn_versions(timeout_ms)
                if security.sasl_mechanism is not None:
                    await connection._authenticate(security, timeout_ms)
            opened = True
        except ssl.SSLCertVerificationError as problem:
            raise AuthenticationRefused(f"broker {endpoint}: {problem.verify_message}") from problem
        except OSError as problem:
            raise ConnectionLost(f"{endpoint}: {_in_words(problem)}") from problem
        finally:
            if not opened:
                connection.abort()
        return connection

    async def ask(self, api: ClientApi, highest: int, build: Build, timeout_ms: int) -> Any:
        """The response, kio's dataclass of the highest version that both sides know, at most ``highest``.

        Raises ConnectionLost if the response is late: the client closes the connection, as Kafka's does.
        Raises InputError if the two sides have no version in common.
        """
        return await self._ask(api.key, self._version(api, highest), build, timeout_ms)

    def close(self) -> None:
        """Close it after sending what was written. Tasks that wait for a response get ConnectionLost."""
        if self._transport is not None:
            self._why_lost = "closed by the client"
            self._transport.close()

    def abort(self) -> None:
        """Close it at once: bytes that were written may never be sent."""
        self._give_up("closed by the client")

    # -- asyncio.Protocol ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of that class

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if exc is not None:
            self._why_lost = str(exc)
        while self._pending:
            response = self._pending.popleft().response
            if not response.done():
                response.set_exception(self._lost())
        if self.on_lost is not None:
            self.on_lost(self)

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        try:
            while (received := self._frames.next_frame()) is not None:
                self._take(received)
        except (CodecError, FrameError) as problem:
            self._give_up(str(problem))

    # -- parts -----------------------------------------------------------------------------------

    async def _ask(self, api_key: int, version: int, build: Build, timeout_ms: int) -> Any:
        if self._transport is None or self._transport.is_closing():
            raise self._lost()
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        types = response_types(api_key, version)
        self._pending.append(_Pending(self._next_correlation_id, api_key, types, response))
        self._transport.write(self._request(api_key, version, build))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await response
        except TimeoutError as late:
            self._give_up(f"no response within {timeout_ms} ms")
            raise self._lost() from late

    def _request(self, api_key: int, version: int, build: Build) -> bytes:
        root = request_type(api_key, version)
        header = request_header(
            api_key, version, self._next_correlation_id, self._client_id, root.__flexible__
        )
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        return frame([header, *encoder(root)(build(RequestTypes(root)))])

    def _take(self, received: bytes) -> None:
        if not self._pending:
            raise FrameError("a response came without a request")
        correlation_id, api_key, types, response = self._pending[0]
        header_type = types.root.__header_schema__
        header, body_at = decoder(header_type)(received, 0)
        if header.correlation_id != correlation_id:
            raise FrameError(f"response {header.correlation_id} came where {correlation_id} was due")
        message, _ = decoder(body_type(api_key, types, received, body_at))(received, body_at)
        self._pending.popleft()
        if not response.done():
            response.set_result(message)

    def _give_up(self, why: str) -> None:
        if self._transport is not None:
            self._why_lost = why
            self._transport.abort()

    def _lost(self) -> ConnectionLost:
        return ConnectionLost(f"{self.endpoint}: {self._why_lost}")

    def _version(self, api: ClientApi, highest: int) -> int:
        least, most = self._served.get(api.key, (0, -1))
        version = min(highest, most)
        if version < max(least, api.lowest):
            served = f"serves it in versions {least} to {most}" if most >= 0 else "does not serve it"
            raise InputError(
                f"broker {self.endpoint}: {api.name} is needed in one of the versions {api.lowest} to"
                f" {highest}, and it {served}"
            )
        return version

    async def _learn_versions(self, timeout_ms: int) -> None:
        software = fields(client_software_name=_SOFTWARE, client_software_version=groupstorm.__version__)
        response = await self._ask(_API_VERSIONS, _API_VERSIONS_VERSION, software, timeout_ms)
        self._served = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    async def _authenticate(self, security: ClientSecurity, timeout_ms: int) -> None:
        """KIP-152: a handshake names the mechanism, requests carry its messages."""
        mechanism = security.sasl_mechanism
        named = fields(mechanism=mechanism)
        handshake = await self.ask(_SASL_HANDSHAKE, _SASL_HANDSHAKE.highest, named, timeout_ms)
        if Error(handshake.error_code) is not Error.NONE:
            raise AuthenticationRefused(
                f"broker {self.endpoint}: {mechanism} is not among its mechanisms"
                f" ({', '.join(handshake.mechanisms)})"
            )
        conversation = security.authenticate()
        message = next(conversation)
        while True:
            challenge = await self._send_sasl(message, timeout_ms)
            try:
                message = conversation.send(challenge)
            except StopIteration:
                return

    async def _send_sasl(self, message: bytes, timeout_ms: int) -> bytes:
        sent = fields(auth_bytes=message)
        response = await self.ask(_SASL_AUTHENTICATE, _SASL_AUTHENTICATE.highest, sent, timeout_ms)
        error = Error(response.error_code)
        if error is not Error.NONE:
            raise AuthenticationRefused(
                f"broker {self.endpoint}: {error.name}: {response.error_message or ''}"
            )
        return bytes(response.auth_bytes)


def body_type(api_key: int, types: ResponseTypes, received: bytes, body_at: int) -> Any:
    """The class of a response: a broker that does not know our ApiVersions uses version 0 (KIP-511)."""
    if api_key == _API_VERSIONS:
        error = int.from_bytes(received[body_at : body_at + 2], signed=True)
        if error == Error.UNSUPPORTED_VERSION:
            return response_types(_API_VERSIONS, 0).root
    return types.root


def _in_words(problem: OSError) -> str:
    """Why no connection could be opened."""
    if isinstance(problem, ConnectionRefusedError):
        return "connection refused: nothing listens there"
    if isinstance(problem, socket.gaierror):
        return "no such host"
    return problem.strerror or str(problem) or "no response in time"

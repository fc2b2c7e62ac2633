"""One connection to a broker: requests out, answers in, in the order of the requests (NetworkClient)."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.static.primitive import i16, i32

import groupstorm
from groupstorm.clients.wire.security import PLAINTEXT, AuthenticationRefused, Security
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.codec import (
    CodecError,
    ResponseTypes,
    decoder,
    encoder,
    request_type,
    response_types,
)
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.coordinator.server.framing import FrameBuffer, FrameError, frame
from groupstorm.problems import InputError

#: Makes the structures of one request in one version; what the version lacks is dropped.
RequestTypes: TypeAlias = ResponseTypes
#: Makes a request of kio's out of its structures, in the version that was agreed upon.
Build: TypeAlias = Callable[[RequestTypes], Any]

MAX_ANSWER_BYTES = 104_857_600
"""A longer answer is not believed: as much as a broker accepts (socket.request.max.bytes)."""

_API_VERSIONS = 18
_API_VERSIONS_VERSION = 3
_SOFTWARE = "groupstorm"


class ConnectionLost(ConnectionError):
    """The connection broke, could not be made, or was given up because an answer did not come in time."""


class Api(NamedTuple):
    """One API as this client speaks it; a broker that serves none of these versions is refused."""

    key: int
    name: str
    lowest: int
    highest: int


_SASL_HANDSHAKE = Api(17, "SaslHandshake", 1, 1)
_SASL_AUTHENTICATE = Api(36, "SaslAuthenticate", 0, 2)


class _Pending(NamedTuple):
    """A request whose answer has not come."""

    correlation_id: int
    types: ResponseTypes
    answer: asyncio.Future[Any]


class Connection(asyncio.Protocol):
    """An open connection whose broker has said which versions it serves; make one with `open`.

    Requests are small and few: what the socket does not take at once is kept by the transport.
    """

    def __init__(self, endpoint: Endpoint, client_id: str) -> None:
        self.endpoint = endpoint
        self.on_lost: Callable[[Connection], None] | None = None
        self._client_id = client_id
        self._transport: asyncio.Transport | None = None
        self._frames = FrameBuffer(MAX_ANSWER_BYTES)
        self._pending: deque[_Pending] = deque()
        self._next_correlation_id = 0
        self._served: Mapping[int, tuple[int, int]] = {}
        self._why_lost = "the broker closed the connection"

    @classmethod
    async def open(
        cls, endpoint: Endpoint, client_id: str, timeout_ms: int, security: Security = PLAINTEXT
    ) -> Connection:
        """Connect, ask for the versions that the broker serves and say who the client is.

        Raises ConnectionLost, and AuthenticationRefused where one side does not believe the other.
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
            raise AuthenticationRefused(f"broker {_name(endpoint)}: {problem.verify_message}") from problem
        except OSError as problem:
            raise ConnectionLost(f"{_name(endpoint)}: {str(problem) or 'no answer in time'}") from problem
        finally:
            if not opened:
                connection.abort()
        return connection

    async def ask(self, api: Api, highest: int, build: Build, timeout_ms: int) -> Any:
        """The answer, kio's dataclass of the highest version that both sides know, at most ``highest``.

        Raises ConnectionLost when it does not come in time, since a later answer cannot be waited for
        (the client closes the connection, as Kafka's does), and InputError if the versions do not meet.
        """
        return await self._ask(api.key, self._version(api, highest), build, timeout_ms)

    def close(self) -> None:
        """Close it when what was written is sent; who still waits is told that it is lost."""
        if self._transport is not None:
            self._why_lost = "closed by the client"
            self._transport.close()

    def abort(self) -> None:
        """Close it at once: what was written may never be sent."""
        if self._transport is not None:
            self._why_lost = "closed by the client"
            self._transport.abort()

    # -- asyncio.Protocol ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of that class

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if exc is not None:
            self._why_lost = str(exc)
        while self._pending:
            answer = self._pending.popleft().answer
            if not answer.done():
                answer.set_exception(self._lost())
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
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        types = response_types(api_key, version)
        self._pending.append(_Pending(self._next_correlation_id, types, answer))
        self._transport.write(self._request(api_key, version, build))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await answer
        except TimeoutError as late:
            self._give_up(f"no answer within {timeout_ms} ms")
            raise self._lost() from late

    def _request(self, api_key: int, version: int, build: Build) -> bytes:
        root = request_type(api_key, version)
        header_type = RequestHeaderV2 if root.__flexible__ else RequestHeaderV1
        header = header_type(
            request_api_key=i16(api_key),
            request_api_version=i16(version),
            correlation_id=i32(self._next_correlation_id),
            client_id=self._client_id,
        )
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        return frame([*encoder(header_type)(header), *encoder(root)(build(RequestTypes(root)))])

    def _take(self, received: bytes) -> None:
        if not self._pending:
            raise FrameError("an answer came that nobody had asked for")
        correlation_id, types, answer = self._pending[0]
        header_type = types.root.__header_schema__
        header, body_at = decoder(header_type)(received, 0)
        if header.correlation_id != correlation_id:
            raise FrameError(f"answer {header.correlation_id} came where {correlation_id} was due")
        message, _ = decoder(_body_type(types, received, body_at))(received, body_at)
        self._pending.popleft()
        if not answer.done():
            answer.set_result(message)

    def _give_up(self, why: str) -> None:
        if self._transport is not None:
            self._why_lost = why
            self._transport.abort()

    def _lost(self) -> ConnectionLost:
        return ConnectionLost(f"{_name(self.endpoint)}: {self._why_lost}")

    def _version(self, api: Api, highest: int) -> int:
        least, most = self._served.get(api.key, (0, -1))
        version = min(highest, most)
        if version < max(least, api.lowest):
            served = f"serves it in versions {least} to {most}" if most >= 0 else "does not serve it"
            raise InputError(
                f"broker {_name(self.endpoint)}: {api.name} is needed in one of the versions {api.lowest} to"
                f" {highest}, and it {served}"
            )
        return version

    async def _learn_versions(self, timeout_ms: int) -> None:
        def build(types: RequestTypes) -> Any:
            return types.make(
                types.root.__name__,
                client_software_name=_SOFTWARE,
                client_software_version=groupstorm.__version__,
            )

        answer = await self._ask(_API_VERSIONS, _API_VERSIONS_VERSION, build, timeout_ms)
        self._served = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    async def _authenticate(self, security: Security, timeout_ms: int) -> None:
        """KIP-152: a handshake names the mechanism, its messages travel as requests."""
        mechanism = security.sasl_mechanism

        def shake_hands(types: RequestTypes) -> Any:
            return types.make(types.root.__name__, mechanism=mechanism)

        met = await self.ask(_SASL_HANDSHAKE, _SASL_HANDSHAKE.highest, shake_hands, timeout_ms)
        if Error(met.error_code) is not Error.NONE:
            raise AuthenticationRefused(
                f"broker {_name(self.endpoint)}: {mechanism} is not among its mechanisms"
                f" ({', '.join(met.mechanisms)})"
            )
        conversation = security.authenticate()
        said = next(conversation)
        while True:
            heard = await self._say(said, timeout_ms)
            try:
                said = conversation.send(heard)
            except StopIteration:
                return

    async def _say(self, said: bytes, timeout_ms: int) -> bytes:
        def build(types: RequestTypes) -> Any:
            return types.make(types.root.__name__, auth_bytes=said)

        answer = await self.ask(_SASL_AUTHENTICATE, _SASL_AUTHENTICATE.highest, build, timeout_ms)
        error = Error(answer.error_code)
        if error is not Error.NONE:
            raise AuthenticationRefused(
                f"broker {_name(self.endpoint)}: {error.name}: {answer.error_message or ''}"
            )
        return bytes(answer.auth_bytes)


def _body_type(types: ResponseTypes, received: bytes, body_at: int) -> Any:
    """The class of an answer: a broker that does not know our ApiVersions answers in version 0 (KIP-511)."""
    if types is response_types(_API_VERSIONS, _API_VERSIONS_VERSION):
        error = int.from_bytes(received[body_at : body_at + 2], signed=True)
        if error == Error.UNSUPPORTED_VERSION:
            return response_types(_API_VERSIONS, 0).root
    return types.root


def _name(endpoint: Endpoint) -> str:
    return f"{endpoint.host}:{endpoint.port}"

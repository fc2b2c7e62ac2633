"""The requests of a connection before its client has authenticated (SaslServerAuthenticator, KIP-43, KIP-152,
KIP-368). Without sockets; time is given.

The broker answers ApiVersions. SaslHandshake names the mechanism, then the mechanism's tokens follow: in
SaslAuthenticate after SaslHandshake 1, as bare frames after SaslHandshake 0. Any other frame closes the
connection. The mechanisms are PLAIN (RFC 4616) and, with two hashes and without channel binding, SCRAM
(RFC 5802, RFC 7677; ScramSaslServer, ScramMessages).
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Generator, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple, TypeAlias

from groupstorm.broker.apis.api import Api
from groupstorm.broker.apis.api_versions import API_VERSIONS
from groupstorm.broker.apis.authentication import SASL_AUTHENTICATE, SASL_HANDSHAKE
from groupstorm.broker.config import BrokerConfig
from groupstorm.broker.security.users import Credential, Credentials
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError, decoder, encoder, request_type, response_types
from groupstorm.protocol.headers import frame as framed
from groupstorm.protocol.headers import peek, read_header, response_header


class InvalidCredentials(Exception):
    """The authentication has failed. The client does not see the reason, which could name users."""


class NotAuthenticated(Exception):
    """The authentication has failed. The client sees the message."""


class Authenticated(NamedTuple):
    """``token``: the last one for the client."""

    username: str
    token: bytes


#: Receives the client's tokens, yields the server's, and returns the user. Raises InvalidCredentials and
#: NotAuthenticated.
SaslExchange: TypeAlias = Generator[bytes, bytes, Authenticated]


#: The shortest time between two authentications (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS).
REAUTHENTICATION_INTERVAL_MS = 1000


class AuthenticatorState(Enum):
    """As SaslServerAuthenticator.SaslState names them."""

    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()


class Pass(NamedTuple):
    """The broker serves the frame."""


class Reply(NamedTuple):
    """The authenticator answers the frame."""

    payload: bytes


class Refuse(NamedTuple):
    """The connection is closed, after ``payload`` was sent if there is one.

    ``delayed``: after connection.failed.authentication.delay.ms, so that nobody tries passwords fast.
    """

    payload: bytes | None
    why: str
    delayed: bool


Verdict: TypeAlias = Pass | Reply | Refuse


class _Session(NamedTuple):
    username: str
    mechanism: str
    expires_ms: int | None


class Authenticator:
    """The authenticator of one connection. `receive` takes each frame; a frame may be up to `max_bytes`
    long."""

    def __init__(self, users: Credentials, config: BrokerConfig) -> None:
        self._users = users
        self._config = config
        self._state = AuthenticatorState.HANDSHAKE_OR_VERSIONS_REQUEST
        self._session: _Session | None = None
        self._reauthenticated_ms: int | None = None
        self._mechanism = ""
        self._has_headers = False
        self._exchange: SaslExchange | None = None

    @property
    def username(self) -> str | None:
        """The authenticated user, if there is one."""
        return None if self._session is None else self._session.username

    @property
    def max_bytes(self) -> int:
        """The longest frame: less before authentication (sasl.server.max.receive.size)."""
        if self._state is AuthenticatorState.COMPLETE:
            return self._config.socket_request_max_bytes
        return self._config.sasl_server_max_receive_size

    @property
    def is_open(self) -> bool:
        """Whether every later frame passes."""
        return (
            self._state is AuthenticatorState.COMPLETE
            and self._session is not None
            and self._session.expires_ms is None
        )

    def receive(self, frame: bytes, now_ms: int) -> Verdict:
        """Decide about a frame. No frame raises."""
        try:
            match self._state:
                case AuthenticatorState.HANDSHAKE_OR_VERSIONS_REQUEST:
                    return self._begin(frame)
                case AuthenticatorState.AUTHENTICATE:
                    return self._authenticate(frame, now_ms)
                case AuthenticatorState.COMPLETE:
                    return self._in_session(frame, now_ms)
        except CodecError as problem:
            return Refuse(None, f"before authentication: {problem}", delayed=False)

    def _begin(self, frame: bytes) -> Verdict:
        api_key, version = peek(frame)
        if api_key == API_VERSIONS.key:
            return Pass()
        if not SASL_HANDSHAKE.serves(api_key, version):
            raise CodecError(f"API key {api_key} version {version} instead of ApiVersions or SaslHandshake")
        return self._handshake(frame, version)

    def _handshake(self, frame: bytes, version: int) -> Verdict:
        mechanism = _message(SASL_HANDSHAKE, version, frame).mechanism
        enabled = self._config.sasl_enabled_mechanisms
        if mechanism not in enabled:
            refused = {"error_code": Error.UNSUPPORTED_SASL_MECHANISM, "mechanisms": enabled}
            answer = _answer(SASL_HANDSHAKE, version, frame, **refused)
            return Refuse(answer, f"SASL mechanism {mechanism[:40]!r} is not enabled", delayed=True)
        self._mechanism = mechanism
        self._has_headers = version > 0
        self._exchange = MECHANISMS[mechanism](self._users)
        next(self._exchange)
        self._state = AuthenticatorState.AUTHENTICATE
        return Reply(_answer(SASL_HANDSHAKE, version, frame, error_code=Error.NONE, mechanisms=enabled))

    def _authenticate(self, frame: bytes, now_ms: int) -> Verdict:
        if self._session is not None and self._session.mechanism != self._mechanism:
            return Refuse(None, f"SASL mechanism {self._mechanism} for a session of another", delayed=True)
        if not self._has_headers:
            return self._take_bare_token(frame, now_ms)
        api_key, version = peek(frame)
        if not SASL_AUTHENTICATE.serves(api_key, version):
            return Refuse(
                None, f"API key {api_key} version {version} instead of SaslAuthenticate", delayed=True
            )
        token = _message(SASL_AUTHENTICATE, version, frame).auth_bytes
        try:
            challenge, lifetime_ms = self._take_token(token, now_ms)
        except (InvalidCredentials, NotAuthenticated) as refused:
            answer = _authenticated(
                version, frame, error=Error.SASL_AUTHENTICATION_FAILED, message=self._message_of(refused)
            )
            return Refuse(answer, f"SASL {self._mechanism}: {refused}", delayed=True)
        return Reply(_authenticated(version, frame, token=challenge, lifetime_ms=lifetime_ms))

    def _take_bare_token(self, token: bytes, now_ms: int) -> Verdict:
        """For clients from before KIP-152: a refusal has no message."""
        try:
            challenge, _ = self._take_token(token, now_ms)
        except (InvalidCredentials, NotAuthenticated) as refused:
            return Refuse(None, f"SASL {self._mechanism}: {refused}", delayed=True)
        return Reply(framed([challenge]))

    def _take_token(self, token: bytes, now_ms: int) -> tuple[bytes, int]:
        """The response token, and the session's length in ms; 0: for ever, or it has not begun."""
        assert self._exchange is not None
        try:
            return self._exchange.send(token), 0
        except StopIteration as end:
            proved: Authenticated = end.value
        if self._session is not None and proved.username != self._session.username:
            raise NotAuthenticated(
                "Cannot change principals during re-authentication from "
                f"User.{self._session.username}: User.{proved.username}"
            )
        lifetime_ms = self._config.connections_max_reauth_ms
        expires_ms = now_ms + lifetime_ms if lifetime_ms else None
        self._session = _Session(proved.username, self._mechanism, expires_ms)
        self._exchange = None
        self._state = AuthenticatorState.COMPLETE
        return proved.token, lifetime_ms

    def _message_of(self, refused: InvalidCredentials | NotAuthenticated) -> str:
        if isinstance(refused, NotAuthenticated):
            return str(refused)
        doing = "authentication" if self._session is None else "re-authentication"
        return (
            f"Authentication failed during {doing} due to invalid credentials with "
            f"SASL mechanism {self._mechanism}"
        )

    def _in_session(self, frame: bytes, now_ms: int) -> Verdict:
        expires_ms = None if self._session is None else self._session.expires_ms
        if expires_ms is None:
            return Pass()
        api_key, version = peek(frame)
        last_ms = self._reauthenticated_ms
        in_haste = last_ms is not None and now_ms - last_ms < REAUTHENTICATION_INTERVAL_MS
        if SASL_HANDSHAKE.serves(api_key, version) and not in_haste:
            self._reauthenticated_ms = now_ms
            return self._handshake(frame, version)
        if now_ms > expires_ms:
            return Refuse(None, "the SASL session is over (connections.max.reauth.ms)", delayed=False)
        return Pass()


def _message(api: Api, version: int, frame: bytes) -> Any:
    message_type = request_type(api.key, version)
    header = read_header(frame, message_type.__flexible__)
    return decoder(message_type)(frame, header.body_at)[0]


def _answer(api: Api, version: int, frame: bytes, **values: Any) -> bytes:
    types = response_types(api.key, version)
    correlation_id = read_header(frame, request_type(api.key, version).__flexible__).correlation_id
    header = response_header(correlation_id, flexible=types.root.__header_schema__.__version__ > 0)
    return framed([header, *encoder(types.root)(types.make(types.root.__name__, **values))])


def _authenticated(
    version: int,
    frame: bytes,
    error: Error = Error.NONE,
    message: str | None = None,
    token: bytes = b"",
    lifetime_ms: int = 0,
) -> bytes:
    return _answer(
        SASL_AUTHENTICATE,
        version,
        frame,
        error_code=error,
        error_message=message,
        auth_bytes=token,
        session_lifetime=datetime.timedelta(milliseconds=lifetime_ms),
    )


#: Mechanism -> hash.
SCRAM_HASHES: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NONCE_BYTES = 18
_PLAIN_TOKENS = 3


def plain(users: Credentials) -> SaslExchange:
    """One message, ``authzid NUL user NUL password``. Refusals have the words of PlainSaslServer."""
    said = (yield b"").decode(errors="replace")
    tokens = said.split("\0", _PLAIN_TOKENS)
    if len(tokens) != _PLAIN_TOKENS:
        raise NotAuthenticated(
            f"Invalid SASL/PLAIN response: expected {_PLAIN_TOKENS} tokens, got {len(tokens)}"
        )
    authorization_id, username, password = tokens
    for name, value in (("username", username), ("password", password)):
        if not value:
            raise NotAuthenticated(f"Authentication failed: {name} not specified")
    if not users.has(username, password):
        raise NotAuthenticated("Authentication failed: Invalid username or password")
    if authorization_id not in ("", username):
        raise NotAuthenticated(OTHER_AUTHORIZATION_ID)
    return Authenticated(username, b"")


_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


def scram(find: Callable[[str], Credential | None], nonce: str) -> SaslExchange:
    """One exchange. ``find``: the credential of a user; ``nonce``: printable, different each time."""
    first = _matched(_CLIENT_FIRST, (yield b""))
    username = _username(first["name"])
    credential = find(username)
    if credential is None:
        raise InvalidCredentials(f"there is no user {username[:40]!r}")
    if first["authzid"] is not None and _username(first["authzid"]) != username:
        raise NotAuthenticated(OTHER_AUTHORIZATION_ID)
    both = first["nonce"] + nonce
    challenge = f"r={both},s={_encoded(credential.salt)},i={credential.iterations}"
    final = _matched(_CLIENT_FINAL, (yield challenge.encode()))
    if final["nonce"] != both or base64.b64decode(final["channel"]) != first["gs2"].encode():
        raise InvalidCredentials("the last message is of another exchange")
    said = f"{first['bare']},{challenge},{final['bare']}".encode()
    _check_proof(credential, said, base64.b64decode(final["proof"]))
    signature = hmac.digest(credential.server_key, said, credential.hash_name)
    return Authenticated(username, f"v={_encoded(signature)}".encode())


OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


def _check_proof(credential: Credential, said: bytes, proof: bytes) -> None:
    signature = hmac.digest(credential.stored_key, said, credential.hash_name)
    if len(proof) != len(signature):
        raise InvalidCredentials("the proof has another length")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    stored_key = hashlib.new(credential.hash_name, client_key).digest()
    if not hmac.compare_digest(stored_key, credential.stored_key):
        raise InvalidCredentials("the password is another one")


def _matched(form: re.Pattern[str], message: bytes) -> re.Match[str]:
    match = form.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise InvalidCredentials("that is no message of SCRAM")
    return match


def _username(sasl_name: str) -> str:
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _scram_with(hash_name: str) -> Callable[[Credentials], SaslExchange]:
    def begin(users: Credentials) -> SaslExchange:
        nonce = base64.b64encode(os.urandom(_NONCE_BYTES)).decode()
        return scram(lambda name: users.credential(name, hash_name), nonce)

    return begin


#: By name; the strongest first.
MECHANISMS: Mapping[str, Callable[[Credentials], SaslExchange]] = {
    **{name: _scram_with(SCRAM_HASHES[name]) for name in ("SCRAM-SHA-512", "SCRAM-SHA-256")},
    "PLAIN": plain,
}

"""Connections with TLS, SASL or both, and the name of a client that shows a certificate.

Kafka's principal of such a client is the subject of its certificate as X500Principal.getName() writes it
(DefaultKafkaPrincipalBuilder, without ssl.principal.mapping.rules): RFC 2253, the last attribute in front.
Attributes that RFC 2253 has no name for are written by their number, their value as the hexadecimal digits of
its DER.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, cast

from groupstorm.broker.authorization import user
from groupstorm.broker.connection import Connection, ConnectionServer
from groupstorm.broker.requests import ConnectionOutput
from groupstorm.broker.security.authenticator import Authenticator, Pass, Refuse, Reply, Verdict
from groupstorm.broker.security.listener import PLAINTEXT, ListenerSecurity, tls_reason


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


_READ_BYTES = 256 * 1024


class TlsTransport(asyncio.Transport):
    """Encrypts all that is written, and writes it to ``plain``; `decrypted` takes the bytes that it
    receives.

    It has no tasks: bytes are decrypted as they come. A connection therefore exists from its first byte on,
    muting it mutes its socket, and asyncio's own loop and uvloop behave alike.
    """

    def __init__(self, plain: asyncio.Transport, context: ssl.SSLContext) -> None:
        super().__init__()
        self._plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken_hands = False
        #: The client has sent close_notify.
        self.has_ended = False

    def decrypted(self, data: bytes) -> bytes:
        """Decrypt the bytes, as far as they are complete; afterwards `has_ended` may be true.

        Raises ssl.SSLError, after the alert was sent to the client.
        """
        self._incoming.write(data)
        said: list[bytes] = []
        try:
            if not self._shaken_hands:
                self._tls.do_handshake()
                self._shaken_hands = True
            while part := self._tls.read(_READ_BYTES):
                said.append(part)
            self.has_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.has_ended = True
        finally:
            self._flush()
        return b"".join(said)

    @property
    def client_certificate(self) -> bytes | None:
        """The certificate (DER) that the client has shown, once both have shaken hands."""
        return self._tls.getpeercert(binary_form=True) if self._shaken_hands else None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_closing():
            return
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                at += self._tls.write(rest[at:])
                self._flush()

    def close(self) -> None:
        """Close after everything was sent, TLS's close_notify last."""
        if self._shaken_hands and not self._plain.is_closing():
            with contextlib.suppress(ssl.SSLError):  # the client's close_notify comes later, or never
                self._tls.unwrap()
            self._flush()
        self._plain.close()

    def abort(self) -> None:
        self._plain.abort()

    def is_closing(self) -> bool:
        return self._plain.is_closing()

    def pause_reading(self) -> None:
        self._plain.pause_reading()

    def resume_reading(self) -> None:
        self._plain.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._plain.get_write_buffer_size()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._plain.is_closing():
            self._plain.write(self._outgoing.read())


_SEQUENCE, _OBJECT_IDENTIFIER = 0x30, 0x06
#: The version of a certificate; the first version has none.
_EXPLICIT_VERSION = 0xA0
#: Fields of a certificate in front of its subject: serial number, algorithm, issuer, validity.
_BEFORE_SUBJECT = 4

#: RFC 2253, section 2.3.
_NAMES: Mapping[str, str] = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
#: Tag of a string type -> its encoding.
_ENCODINGS: Mapping[int, str] = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
_ESCAPED = frozenset(',+=<>;"\\')


class _Value(NamedTuple):
    """One value of DER; ``whole``: with its tag and length."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER), which OpenSSL has read before."""
    (body, *_) = _values(next(_values(certificate)).content)
    fields = list(_values(body.content))
    if fields[0].tag == _EXPLICIT_VERSION:
        del fields[0]
    names = [_name_of(one) for one in _values(fields[_BEFORE_SUBJECT].content)]
    return ",".join(reversed(names))


def _name_of(relative: _Value) -> str:
    """One relative distinguished name, which may have several attributes."""
    return "+".join(_attribute(*_values(one.content)) for one in _values(relative.content))


def _attribute(kind: _Value, value: _Value) -> str:
    number = _identifier(kind.content)
    encoding = _ENCODINGS.get(value.tag)
    if number not in _NAMES or encoding is None:
        return f"{_NAMES.get(number, number)}=#{value.whole.hex()}"
    return f"{_NAMES[number]}={_escaped(value.content.decode(encoding, 'replace'))}"


def _escaped(text: str) -> str:
    """RFC 2253, section 2.4: special characters, # in front, and spaces at both ends."""
    escaped = ["\\" + sign if sign in _ESCAPED else sign for sign in text]
    spaces = len(text) - len(text.lstrip(" ")), len(text.rstrip(" "))
    for index, sign in enumerate(text):
        if sign == " " and not spaces[0] <= index < spaces[1]:
            escaped[index] = "\\ "
    if text.startswith("#"):
        escaped[0] = "\\#"
    return "".join(escaped)


def _identifier(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _values(data: bytes) -> Iterator[_Value]:
    at = 0
    while at < len(data):
        length, start = data[at + 1], at + 2
        if length >= 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[at + 2 : start], "big")
        yield _Value(data[at], data[start : start + length], data[at : start + length])
        at = start + length

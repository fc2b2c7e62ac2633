"""TLS without sockets: two ends in memory."""

from __future__ import annotations

import ssl

import pytest

from groupstorm.broker.security.connection import TlsTransport
from groupstorm.broker.security.listener import tls_context
from tests.broker.frames.harness import MemoryTransport
from tests.certificates import Certificates


class Client:
    """The other end, after the handshake."""

    def __init__(self, certificates: Certificates) -> None:
        self.wire = MemoryTransport()
        self.server = TlsTransport(self.wire, tls_context(certificates.server, certificates.server_key))
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = certificates.client_context()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        assert self.server.decrypted(self.sent()) == b""
        self.hear()
        self.tls.do_handshake()
        assert self.server.decrypted(self.sent()) == b""
        self.hear()

    def sent(self) -> bytes:
        return self._outgoing.read()

    def hear(self) -> None:
        self._incoming.write(self.wire.written)
        self.wire.written.clear()

    def say(self, text: bytes) -> bytes:
        self.tls.write(text)
        return self.sent()


def test_bytes_are_decrypted_one_by_one_as_well(certificates: Certificates) -> None:
    client = Client(certificates)
    assert client.server.decrypted(client.say(b"one") + client.say(b"two")) == b"onetwo"
    heard = [client.server.decrypted(bytes([byte])) for byte in client.say(b"three")]
    assert b"".join(heard) == b"three"
    assert heard[-1] == b"three", "only when it is complete and proved"


def test_much_is_written_in_order(certificates: Certificates) -> None:
    client = Client(certificates)
    much = bytes(range(256)) * 4000
    client.server.write(much)
    assert much[:1000] not in client.wire.written
    client.hear()
    read = b""
    while len(read) < len(much):
        read += client.tls.read(1_000_000)
    assert read == much


def test_bytes_before_close_notify_are_decrypted(certificates: Certificates) -> None:
    """As from a client that leaves its group and closes at once."""
    client = Client(certificates)
    client.tls.write(b"I leave")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert client.server.decrypted(client.sent()) == b"I leave"
    assert client.server.has_ended
    assert not client.wire.is_closing()


def test_our_farewell_is_said_once_and_nothing_after_it(certificates: Certificates) -> None:
    client = Client(certificates)
    client.server.write(b"last")
    client.server.close()
    client.hear()
    assert client.tls.read(10) == b"last"
    assert client.tls.read(10) == b"", "the end"
    client.server.write(b"more")
    client.server.close()
    assert not client.wire.written


def test_altered_bytes_are_refused_with_an_alert(certificates: Certificates) -> None:
    client = Client(certificates)
    said = bytearray(client.say(b"commit"))
    said[-1] ^= 1
    with pytest.raises(ssl.SSLError):
        client.server.decrypted(bytes(said))
    assert client.wire.written

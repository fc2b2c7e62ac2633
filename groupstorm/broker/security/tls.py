"""TLS between a transport and its connection, without tasks: bytes are decrypted as they come.

A connection therefore exists from its first byte on, muting it mutes its socket, and asyncio's own loop and
uvloop behave alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

_READ_BYTES = 256 * 1024


class TlsTransport(asyncio.Transport):
    """Encrypts all that is written, and writes it to ``plain``; `decrypted` takes the bytes that it
    receives."""

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

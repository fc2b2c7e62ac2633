"""A client's side of TLS, and of SASL with PLAIN or SCRAM. Sans-IO.

SCRAM follows RFC 5802 and RFC 7677 as Kafka does (ScramSaslClient): without channel binding.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import ssl
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple, TypeAlias

from groupstorm.problems import InputError

#: security.protocol -> whether it uses TLS, whether it uses SASL.
SECURITY_PROTOCOLS: Mapping[str, tuple[bool, bool]] = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}

#: Yields the client's messages, is sent the broker's, and returns when the broker is authenticated.
Conversation: TypeAlias = Generator[bytes, bytes, None]

_GS2_HEADER = "n,,"
_NONCE_BYTES = 24

#: The least that brokers ask for (ScramMechanism.minIterations), and a bound on the client's work.
_ITERATIONS_MIN, _ITERATIONS_MAX = 4_096, 10_000_000


class AuthenticationRefused(InputError):
    """The broker refuses the credentials, or cannot prove that it knows the password."""


class ClientSecurity(NamedTuple):
    """``tls``: None is a plain connection. ``sasl_mechanism``: one of `MECHANISMS`, or None."""

    tls: ssl.SSLContext | None = None
    sasl_mechanism: str | None = None
    username: str = ""
    password: str = ""

    def authenticate(self) -> Conversation:
        """The messages after the handshake. The generator raises AuthenticationRefused."""
        return MECHANISMS[self.sasl_mechanism or ""](self.username, self.password)


PLAINTEXT = ClientSecurity()


def plain(username: str, password: str) -> Conversation:
    """RFC 4616; the broker's message is empty."""
    yield f"\0{username}\0{password}".encode()


def scram(hash_name: str, username: str, password: str, nonce: str | None = None) -> Conversation:
    """``nonce``: makes the client's first message unique; drawn by default."""
    nonce = nonce or base64.b64encode(os.urandom(_NONCE_BYTES)).decode()
    first_bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    server_first = _text((yield (_GS2_HEADER + first_bare).encode()))
    attributes = _attributes(server_first)
    server_nonce, iterations = attributes.get("r", ""), _iterations(attributes.get("i", ""))
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise AuthenticationRefused("SCRAM: the broker's nonce does not begin with the client's")
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), _decoded(attributes.get("s", "")), iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    final_bare = f"c={base64.b64encode(_GS2_HEADER.encode()).decode()},r={server_nonce}"
    auth_message = f"{first_bare},{server_first},{final_bare}".encode()
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), auth_message, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = _attributes(_text((yield f"{final_bare},p={base64.b64encode(proof).decode()}".encode())))
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), auth_message, hash_name)
    if "e" in final or not hmac.compare_digest(_decoded(final.get("v", "")), expected):
        raise AuthenticationRefused(f"SCRAM: {final.get('e', 'the broker does not know the password')}")


def _scram_sha_256(username: str, password: str) -> Conversation:
    return scram("sha256", username, password)


def _scram_sha_512(username: str, password: str) -> Conversation:
    return scram("sha512", username, password)


MECHANISMS: Mapping[str, Callable[[str, str], Conversation]] = {
    "PLAIN": plain,
    "SCRAM-SHA-256": _scram_sha_256,
    "SCRAM-SHA-512": _scram_sha_512,
}


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError as garbage:
        raise AuthenticationRefused("SCRAM: the broker's message is not UTF-8 text") from garbage


def _attributes(message: str) -> dict[str, str]:
    pairs = (attribute.partition("=") for attribute in message.split(","))
    return {name: value for name, _, value in pairs}


def _iterations(text: str) -> int:
    iterations = int(text) if text.isascii() and text.isdigit() and len(text) <= 8 else 0
    if not _ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise AuthenticationRefused(
            f"SCRAM: the broker asks for {text!r} iterations, expected {_ITERATIONS_MIN} to {_ITERATIONS_MAX}"
        )
    return iterations


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as garbage:
        raise AuthenticationRefused("SCRAM: the broker's message is not Base64") from garbage

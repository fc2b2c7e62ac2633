"""A client's side of TLS, and of SASL with PLAIN or SCRAM, sans-IO, and the file of its settings.

The file is that of Kafka's own tools (--command-config).
SCRAM follows RFC 5802 and RFC 7677 as Kafka does (ScramSaslClient): without channel binding.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import ssl
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from groupstorm.java_properties import parse_java_properties
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


MECHANISMS: Mapping[str, Callable[[str, str], Conversation]] = {
    "PLAIN": plain,
    "SCRAM-SHA-256": partial(scram, "sha256"),
    "SCRAM-SHA-512": partial(scram, "sha512"),
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


_KNOWN = frozenset(
    {
        "security.protocol",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.endpoint.identification.algorithm",
        "sasl.mechanism",
        "sasl.jaas.config",
    }
)
_JAAS = re.compile(r"""(?P<name>\w+)\s*=\s*(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<bare>[^\s;"]+))""")
_FILE_BYTES_MAX = 1_000_000


def read_client_properties(path: Path) -> ClientSecurity:
    """Read the security settings of the file; other settings are ignored.

    Raises InputError for a setting of TLS or SASL that is not supported. No message contains a password.
    """
    options = _properties(path)
    where = f"--client-config {path}: "
    for name in options:
        if name.startswith(("ssl.", "sasl.", "security.")) and name not in _KNOWN:
            raise InputError(f"{where}{name}: not known here, expected some of {', '.join(sorted(_KNOWN))}")
    protocol = options.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in SECURITY_PROTOCOLS:
        expected = ", ".join(SECURITY_PROTOCOLS)
        raise InputError(f"{where}security.protocol: {protocol!r}, expected one of {expected}")
    with_tls, with_sasl = SECURITY_PROTOCOLS[protocol]
    security = PLAINTEXT
    if with_tls:
        security = security._replace(tls=_tls(where, options))
    if with_sasl:
        mechanism = options.get("sasl.mechanism", "")
        if mechanism not in MECHANISMS:
            expected = ", ".join(MECHANISMS)
            raise InputError(f"{where}sasl.mechanism: {mechanism!r}, expected one of {expected}")
        username, password = _credentials(where, options.get("sasl.jaas.config", ""))
        security = security._replace(sasl_mechanism=mechanism, username=username, password=password)
    return security


def _tls(where: str, options: Mapping[str, str]) -> ssl.SSLContext:
    authority = _pem(where, options, "ssl.truststore")
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as problem:
        reason = f"ssl.truststore.location: {authority}: {problem}"
        raise InputError(f"{where}{reason}, expected certificates in PEM") from problem
    if not options.get("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    own = _pem(where, options, "ssl.keystore")
    if own is not None:
        try:
            context.load_cert_chain(own, password=lambda: "")
        except (OSError, ssl.SSLError) as problem:
            reason = f"ssl.keystore.location: {own}: {problem}"
            raise InputError(f"{where}{reason}, expected certificate and key in PEM") from problem
    return context


def _pem(where: str, options: Mapping[str, str], store: str) -> str | None:
    location = options.get(f"{store}.location")
    if location is not None and options.get(f"{store}.type", "JKS").upper() != "PEM":
        raise InputError(f"{where}{store}.type: expected PEM, no other kind of store is read")
    return location


def _credentials(where: str, jaas: str) -> tuple[str, str]:
    found = {
        match["name"]: match["bare"] or re.sub(r"\\(.)", r"\1", match["quoted"] or "")
        for match in _JAAS.finditer(jaas)
    }
    if not (found.get("username") and found.get("password")):
        raise InputError(f'{where}sasl.jaas.config: expected ... required username="..." password="...";')
    return found["username"], found["password"]


def _properties(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX).decode("utf-8")
    except OSError as problem:
        raise InputError(
            f"--client-config {path}: cannot be read: {problem.strerror or problem}"
        ) from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"--client-config {path}: expected text in UTF-8") from problem
    return parse_java_properties(text)

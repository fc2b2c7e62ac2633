"""SCRAM's server side (RFC 5802, RFC 7677) as Kafka has it (ScramSaslServer, ScramMessages).

There is no channel binding. This module knows no password: a credential has the parts that RFC 5802 lets a
server keep.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Generator
from typing import NamedTuple, TypeAlias

#: The fewest that Kafka takes (ScramMechanism); our credentials are made with as many.
ITERATIONS = 4096

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


class Credential(NamedTuple):
    """The parts of a password that a server keeps; ``hash_name`` as hashlib calls it."""

    hash_name: str
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def make_credential(hash_name: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> Credential:
    """As ScramFormatter.generateCredential. Passwords are used as they are, without SASLprep."""
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    return credential_of_salted(hash_name, salt, iterations, salted)


def credential_of_salted(hash_name: str, salt: bytes, iterations: int, salted: bytes) -> Credential:
    """The credential of a password that a client has salted."""
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return Credential(hash_name, salt, iterations, stored_key, hmac.digest(salted, b"Server Key", hash_name))


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

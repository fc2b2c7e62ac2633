"""The SASL mechanisms that a listener can offer: PLAIN (RFC 4616) and SCRAM with two hashes."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping

from groupstorm.broker.security.scram import (
    OTHER_AUTHORIZATION_ID,
    Authenticated,
    NotAuthenticated,
    SaslExchange,
    scram,
)
from groupstorm.broker.security.users import KnownUsers

#: Mechanism -> hash.
SCRAM_HASHES: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NONCE_BYTES = 18
_PLAIN_TOKENS = 3


def plain(users: KnownUsers) -> SaslExchange:
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


def _scram_with(hash_name: str) -> Callable[[KnownUsers], SaslExchange]:
    def begin(users: KnownUsers) -> SaslExchange:
        nonce = base64.b64encode(os.urandom(_NONCE_BYTES)).decode()
        return scram(lambda name: users.credential(name, hash_name), nonce)

    return begin


#: By name; the strongest first.
MECHANISMS: Mapping[str, Callable[[KnownUsers], SaslExchange]] = {
    **{name: _scram_with(SCRAM_HASHES[name]) for name in ("SCRAM-SHA-512", "SCRAM-SHA-256")},
    "PLAIN": plain,
}

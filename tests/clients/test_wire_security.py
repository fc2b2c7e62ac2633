"""SASL conversations: the example of RFC 7677, and brokers with invalid messages."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from groupstorm.clients.wire.security import (
    AuthenticationRefused,
    ClientSecurity,
    Conversation,
    plain,
    scram,
)

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def end(conversation: Conversation, received: bytes) -> None:
    with pytest.raises(StopIteration):
        conversation.send(received)


def test_the_example_of_the_rfc() -> None:
    conversation = scram("sha256", "user", "pencil", NONCE)
    assert next(conversation) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert conversation.send(SERVER_FIRST) == CLIENT_FINAL
    end(conversation, SERVER_FINAL)


@pytest.mark.parametrize(
    "received",
    [
        b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",  # nothing of the broker's own
        SERVER_FIRST.replace(b"4096", b"1"),
        SERVER_FIRST.replace(b"4096", b"999999999"),
        SERVER_FIRST.replace(b"4096", b"many"),
        SERVER_FIRST.replace(b"W22Z", b"W2!Z"),
        b"\xff",
        b"",
    ],
)
def test_an_invalid_first_message_is_refused(received: bytes) -> None:
    conversation = scram("sha256", "user", "pencil", NONCE)
    next(conversation)
    with pytest.raises(AuthenticationRefused):
        conversation.send(received)


@pytest.mark.parametrize("received", [b"e=invalid-proof", b"v=AAAA", b"v=!", b""])
def test_a_broker_that_does_not_know_the_password(received: bytes) -> None:
    conversation = scram("sha256", "user", "pencil", NONCE)
    next(conversation)
    conversation.send(SERVER_FIRST)
    with pytest.raises(AuthenticationRefused):
        conversation.send(received)


def test_sha_512_and_a_name_with_special_characters() -> None:
    """Checked with the broker's side of RFC 5802."""
    conversation = ClientSecurity(None, "SCRAM-SHA-512", "a=b,c", "secret").authenticate()
    first = next(conversation).decode()
    assert first.startswith("n,,n=a=3Db=2Cc,r=")
    server_first = f"r={first.rpartition('r=')[2]}more,s={base64.b64encode(b'salt').decode()},i=4096"
    final = conversation.send(server_first.encode()).decode()
    bare, _, proof = final.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 4096)
    said = f"{first.removeprefix('n,,')},{server_first},{bare}".encode()
    stored = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
    signature = hmac.digest(stored, said, "sha512")
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(key).digest() == stored
    answer = base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), said, "sha512"))
    end(conversation, b"v=" + answer)


def test_plain() -> None:
    conversation = plain("user", "pencil")
    assert next(conversation) == b"\0user\0pencil"
    end(conversation, b"")

"""SCRAM's server side: the RFCs' examples, our client, and clients that cheat."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.broker.security.authenticator import (
    Authenticated,
    InvalidCredentials,
    NotAuthenticated,
    SaslExchange,
    scram,
)
from groupstorm.broker.security.users import Credential, make_credential
from groupstorm.clients.wire.security import scram as client_side

# RFC 7677, section 3
CREDENTIAL = make_credential("sha256", "pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)


def begin(credential: Credential = CREDENTIAL, user: str = "user", nonce: str = SERVER_NONCE) -> SaslExchange:
    exchange = scram({user: credential}.get, nonce)
    next(exchange)
    return exchange


def finish(exchange: SaslExchange, token: bytes) -> Authenticated:
    with pytest.raises(StopIteration) as end:
        exchange.send(token)
    assert isinstance(end.value.value, Authenticated)
    return end.value.value


def test_the_example_of_rfc_7677() -> None:
    exchange = begin()
    challenge = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert exchange.send(FIRST) == challenge.encode()
    signature = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert finish(exchange, FINAL) == Authenticated("user", signature)


NAMES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1)
PASSWORDS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1)


@settings(deadline=None)  # four thousand iterations, on a machine that may be busy
@given(st.sampled_from(["sha256", "sha512"]), NAMES, PASSWORDS, PASSWORDS, st.binary(min_size=1))
def test_our_client_is_believed_with_the_password_and_with_no_other(
    hash_name: str, name: str, password: str, other: str, salt: bytes
) -> None:
    exchange = begin(make_credential(hash_name, password, salt), name, nonce="abc")
    client = client_side(hash_name, name, other)
    final = client.send(exchange.send(next(client)))
    if other == password:
        proved = finish(exchange, final)
        assert proved.username == name
        with pytest.raises(StopIteration):
            client.send(proved.token)
    else:
        with pytest.raises(InvalidCredentials):
            exchange.send(final)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"y,,n=user,r=abc", id="would bind the channel"),
        pytest.param(b"p=tls-unique,,n=user,r=abc", id="binds the channel"),
        pytest.param(b"n,,n=user", id="no nonce"),
        pytest.param(b"n,,n=,r=abc", id="no name"),
        pytest.param(b"n,,n=us=er,r=abc", id="a sign that is not escaped"),
        pytest.param(b"n,,n=user,r=a\x00c", id="a nonce with a NUL"),
        pytest.param(b"n,,n=\xff,r=abc", id="no text"),
        pytest.param(b"n,,n=nobody,r=abc", id="a user that there is not"),
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        begin().send(first)


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(NotAuthenticated, match="different from username"):
        begin().send(b"n,a=admin,n=user,r=abc")


@pytest.mark.parametrize(
    "final",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(FINAL.replace(b"c=biws", b"c=biwsCg=="), id="another header"),
        pytest.param(FINAL.replace(b"k0,", b"k1,"), id="another nonce"),
        pytest.param(FINAL.replace(b"p=dH", b"p=dI"), id="another proof"),
        pytest.param(FINAL.partition(b",p=")[0] + b",p=", id="no proof"),
        pytest.param(FINAL.partition(b",p=")[0] + b",p=AAAA", id="a short proof"),
        pytest.param(FINAL + b"!", id="a proof that is no Base64"),
    ],
)
def test_last_messages_that_are_refused(final: bytes) -> None:
    exchange = begin()
    exchange.send(FIRST)
    with pytest.raises(InvalidCredentials):
        exchange.send(final)


def proved(first: bytes, challenge: bytes, channel: bytes, before_nonce: bytes = b"") -> bytes:
    """The last message of a client that has the password and names ``channel``: its proof is right.

    ``before_nonce``: what stands before the challenge's nonce there.
    """
    nonce = challenge.partition(b",")[0].removeprefix(b"r=")
    bare = b"c=" + base64.b64encode(channel) + b",r=" + before_nonce + nonce
    signed = b",".join((first[first.index(b"n=") :], challenge, bare))
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", CREDENTIAL.salt, CREDENTIAL.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return bare + b",p=" + base64.b64encode(proof)


@pytest.mark.parametrize(
    ("first", "header", "others"),
    [
        (FIRST, b"n,,", (b"", b"n,", b"y,,", b"p=tls-unique,,", b"n,a=user,", b"n,,\n")),
        (b"n,a=user,n=user,r=abc", b"n,a=user,", (b"n,,", b"n,a=admin,")),
    ],
)
def test_the_last_message_names_the_header_of_the_first(
    first: bytes, header: bytes, others: tuple[bytes, ...]
) -> None:
    """RFC 5802, section 6: a header that was changed on the way (each side then takes the other for one that
    cannot bind the channel) is noticed, although the proof is right."""
    exchange = begin()
    assert finish(exchange, proved(first, exchange.send(first), header)).username == "user"
    for other in others:
        exchange = begin()
        challenge = exchange.send(first)
        with pytest.raises(InvalidCredentials, match="another exchange"):
            exchange.send(proved(first, challenge, other))


def test_the_last_message_has_the_nonce_of_the_challenge_and_nothing_before_it() -> None:
    """librdkafka before 2.6.1 repeats its own nonce there. The proof is right; Kafka 4 refuses it, too."""
    exchange = begin()
    challenge = exchange.send(FIRST)
    with pytest.raises(InvalidCredentials, match="another exchange"):
        exchange.send(proved(FIRST, challenge, b"n,,", CLIENT_NONCE.encode()))


def test_extensions_count_in_the_proof() -> None:
    """The proof covers the client's extensions too."""
    exchange = begin(nonce="abc")
    exchange.send(FIRST + b",ext=1")
    with pytest.raises(InvalidCredentials, match="password"):
        exchange.send(FINAL.replace(SERVER_NONCE.encode(), b"abc"))

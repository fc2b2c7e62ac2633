"""Requests before, during and after authentication; the test advances the clock."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from groupstorm.broker.config import BrokerConfig
from groupstorm.broker.security.authenticator import Authenticator, Pass, Refuse, Reply, Verdict
from groupstorm.broker.security.users import Credentials, Users
from groupstorm.clients.wire.security import MECHANISMS as CLIENT_SIDE
from groupstorm.coordinator.errors import Error
from tests.broker import wire

HANDSHAKE, AUTHENTICATE = wire.SASL_HANDSHAKE, wire.SASL_AUTHENTICATE
USERS = Credentials(Users({"alice": "secret", "bob": "word"}))
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SESSION_MS = 60_000


class Client:
    """Gives frames to an authenticator, as a connection does."""

    def __init__(self, **options: str) -> None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        self.config = BrokerConfig.from_mapping(named)
        self.authenticator = Authenticator(USERS, self.config)
        self.now_ms = 1000

    def say(self, frame: bytes) -> Verdict:
        return self.authenticator.receive(frame, self.now_ms)

    def ask(self, api_key: int, version: int, **values: Any) -> Any:
        """The message of a Reply, or the last one before the connection is closed."""
        verdict = self.say(wire.request(api_key, version, 7, **values))
        assert not isinstance(verdict, Pass)
        assert verdict.payload is not None
        correlation_id, message = wire.parse_response(api_key, version, verdict.payload[4:])
        assert correlation_id == 7
        self.refused = isinstance(verdict, Refuse)
        return message

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(HANDSHAKE, version, mechanism=mechanism)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.ask(AUTHENTICATE, version, auth_bytes=token)

    def log_in(self, name: str = "alice", password: str = "secret", mechanism: str = "PLAIN") -> Any:
        """The last answer of the exchange."""
        assert self.handshake(mechanism).error_code == Error.NONE
        conversation = CLIENT_SIDE[mechanism](name, password)
        said = next(conversation)
        while True:
            answer = self.token(said)
            if answer.error_code != Error.NONE:
                return answer
            try:
                said = conversation.send(answer.auth_bytes)
            except StopIteration:
                return answer


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_request_passes_after_authentication(mechanism: str) -> None:
    client = Client()
    assert client.authenticator.max_bytes == 524_288
    answer = client.log_in(mechanism=mechanism)
    assert (answer.error_code, answer.error_message) == (Error.NONE, None)
    assert answer.session_lifetime == wire.milliseconds(0)
    assert client.authenticator.username == "alice"
    assert client.authenticator.is_open
    assert client.authenticator.max_bytes == client.config.socket_request_max_bytes
    assert client.say(wire.request(wire.METADATA, 1, topics=None)) == Pass()
    # out of place now, which the API itself says
    assert client.say(wire.request(HANDSHAKE, 1, mechanism="PLAIN")) == Pass()


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(wire.request(wire.METADATA, 1, topics=None), id="another API"),
        pytest.param(wire.request(AUTHENTICATE, 1, auth_bytes=b"\0alice\0secret"), id="no mechanism"),
        pytest.param(struct.pack(">hhih", HANDSHAKE, 2, 1, -1), id="a version that there is not"),
        pytest.param(struct.pack(">hhihh", HANDSHAKE, 1, 1, -1, 900), id="a name longer than the frame"),
        pytest.param(b"\x60\x82", id="a token of GSSAPI"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_another_first_request_closes_the_connection_at_once(frame: bytes) -> None:
    verdict = Client().say(frame)
    assert isinstance(verdict, Refuse)
    assert (verdict.payload, verdict.delayed) == (None, False)


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    client = Client(sasl_enabled_mechanisms="SCRAM-SHA-512,SCRAM-SHA-256")
    answer = client.handshake("PLAIN")
    assert answer.error_code == Error.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert client.refused


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"bob\0alice\0secret", "authorization id that is different from username"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (b"\0alice\0secret\0more", "expected 3 tokens, got 4"),
    ],
)
def test_plain_is_refused_in_kafkas_words(token: bytes, message: str) -> None:
    client = Client()
    client.handshake()
    answer = client.token(token)
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message.endswith(message)
    assert client.refused
    assert client.authenticator.username is None


def test_one_may_name_oneself() -> None:
    client = Client()
    client.handshake()
    assert client.token(b"alice\0alice\0secret").error_code == Error.NONE


@pytest.mark.parametrize("name", ["alice", "nobody"])
def test_scram_does_not_say_what_was_wrong(name: str) -> None:
    answer = Client().log_in(name, "wrong", "SCRAM-SHA-256")
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with "
        "SASL mechanism SCRAM-SHA-256"
    )


def test_another_request_in_the_middle_closes_the_connection() -> None:
    client = Client()
    client.handshake()
    verdict = client.say(wire.request(wire.METADATA, 1, topics=None))
    assert isinstance(verdict, Refuse)
    assert verdict.delayed


def test_handshake_0_is_followed_by_bare_tokens() -> None:
    client = Client()
    assert client.handshake("SCRAM-SHA-256", version=0).error_code == Error.NONE
    conversation = CLIENT_SIDE["SCRAM-SHA-256"]("alice", "secret")
    said = next(conversation)
    for _ in range(2):
        verdict = client.say(said)
        assert isinstance(verdict, Reply)
        (length,) = struct.unpack_from(">i", verdict.payload)
        assert length == len(verdict.payload) - 4
        try:
            said = conversation.send(verdict.payload[4:])
        except StopIteration:
            break
    assert client.authenticator.username == "alice"


def test_a_bare_token_that_proves_nothing_is_not_answered() -> None:
    client = Client()
    client.handshake(version=0)
    verdict = client.say(b"\0alice\0wrong")
    assert isinstance(verdict, Refuse)
    assert (verdict.payload, verdict.delayed) == (None, True)


def with_sessions() -> Client:
    client = Client(connections_max_reauth_ms=str(SESSION_MS))
    assert client.log_in().session_lifetime == wire.milliseconds(SESSION_MS)
    assert not client.authenticator.is_open
    return client


METADATA = wire.request(wire.METADATA, 1, topics=None)


def test_a_session_ends() -> None:
    client = with_sessions()
    client.now_ms += SESSION_MS
    assert client.say(METADATA) == Pass()
    client.now_ms += 1
    verdict = client.say(METADATA)
    assert isinstance(verdict, Refuse)
    assert "connections.max.reauth.ms" in verdict.why


@pytest.mark.parametrize("late_ms", [-1, 1])
def test_a_client_that_proves_itself_again_goes_on(late_ms: int) -> None:
    client = with_sessions()
    client.now_ms += SESSION_MS + late_ms
    assert client.log_in().error_code == Error.NONE
    client.now_ms += SESSION_MS
    assert client.say(METADATA) == Pass()


def test_reauthentication_as_another_user_is_refused() -> None:
    client = with_sessions()
    answer = client.log_in("bob", "word")
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message.endswith("during re-authentication from User.alice: User.bob")


def test_the_mechanism_stays() -> None:
    client = with_sessions()
    assert client.handshake("SCRAM-SHA-256").error_code == Error.NONE
    verdict = client.say(wire.request(AUTHENTICATE, 1, auth_bytes=b"n,,n=alice,r=abc"))
    assert isinstance(verdict, Refuse)
    assert verdict.payload is None


def test_once_a_second_is_enough() -> None:
    client = with_sessions()
    client.log_in()
    client.now_ms += 999
    handshake = wire.request(HANDSHAKE, 1, mechanism="PLAIN")
    assert client.say(handshake) == Pass()  # and the API says that it is out of place
    client.now_ms += 1
    assert isinstance(client.say(handshake), Reply)

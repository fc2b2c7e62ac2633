"""Listeners with TLS or SASL, at the level of bytes: refusals, delays and limits."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.security.listener import ListenerSecurity, tls_context
from groupstorm.broker.security.users import Users
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.test_connections import join
from tests.broker.wire import RawClient, framed, request
from tests.certificates import Certificates
from tests.waiting import wait_until

USERS = Users({"alice": "secret"})
SASL = ListenerSecurity(users=USERS)
DELAY_MS = 150
DEADLINE_S = 60.0


def with_tls(
    certificates: Certificates, users: Users | None = None, demands: bool = False
) -> ListenerSecurity:
    authority = certificates.authority if demands else None
    return ListenerSecurity(tls_context(certificates.server, certificates.server_key, authority), users)


@contextmanager
def listening(security: ListenerSecurity, **options: str) -> Iterator[EmbeddedBroker]:
    named = {name.replace("_", "."): value for name, value in options.items()}
    with EmbeddedBroker(named, {"orders": 3}, security=security) as broker:
        yield broker


def address(broker: EmbeddedBroker) -> tuple[str, int]:
    return broker.host, broker.port


def log_in(client: RawClient, password: str = "secret") -> Error:
    assert client.ask(wire.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == Error.NONE
    token = b"\0alice\0" + password.encode()
    return Error(client.ask(wire.SASL_AUTHENTICATE, 2, auth_bytes=token).error_code)


@pytest.mark.slow
def test_many_requests_in_one_packet_over_tls_are_answered_in_their_order(certificates: Certificates) -> None:
    """Muting and unmuting applies to decrypted bytes too."""
    with (
        EmbeddedBroker({}, {"wide": 2000}, security=with_tls(certificates)) as broker,
        RawClient(address(broker), certificates.client_context()) as client,
    ):
        client.send(b"".join(framed(request(wire.METADATA, 1, number, topics=None)) for number in range(60)))
        for number in range(60):
            assert len(client.answer(wire.METADATA, 1, number).topics[0].partitions) == 2000


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(framed(request(wire.API_VERSIONS, 0)), id="a client without TLS"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
    ],
)
def test_a_connection_without_tls_is_closed(certificates: Certificates, data: bytes) -> None:
    with listening(with_tls(certificates)) as broker:
        with RawClient(address(broker)) as client:
            client.send(data)
            wait_until(lambda: broker.closed)
        assert broker.closed[0][0] == "/127.0.0.1"
        assert broker.closed[0][1].startswith("no TLS: ")
        wait_until(lambda: not broker.call(broker.open_connections))


def test_a_client_must_show_its_certificate_if_the_listener_wants_one(certificates: Certificates) -> None:
    with listening(with_tls(certificates, demands=True)) as broker:
        with RawClient(address(broker), certificates.client_context(with_certificate=True)) as client:
            assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
        # TLS 1.3: a client learns that it is refused when it reads
        with RawClient(address(broker), certificates.client_context()) as client, pytest.raises(OSError):  # noqa: PT011
            client.ask(wire.API_VERSIONS, 0)
        wait_until(lambda: broker.closed)
        assert "certificate" in broker.closed[0][1]


def test_old_versions_of_tls_are_refused(certificates: Certificates) -> None:
    context = certificates.client_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with listening(with_tls(certificates)) as broker, pytest.raises(ssl.SSLError):
        RawClient(address(broker), context)


def test_a_connection_counts_before_its_handshake(certificates: Certificates) -> None:
    """Silent sockets count for max.connections."""
    with listening(with_tls(certificates), max_connections="2") as broker, ExitStack() as silent:
        for _ in range(3):
            last = silent.enter_context(socket.create_connection(address(broker), timeout=DEADLINE_S))
        assert last.recv(1) == b""
        assert [why for _, why in broker.closed] == ["max.connections=2 are there"]


def test_stopping_closes_connections_in_every_state(certificates: Certificates) -> None:
    with listening(with_tls(certificates, USERS), group_initial_rebalance_delay_ms="60000") as broker:
        silent = socket.create_connection(address(broker), timeout=DEADLINE_S)
        stranger = RawClient(address(broker), certificates.client_context())
        parked = RawClient(address(broker), certificates.client_context())
        assert log_in(parked) is Error.NONE
        parked.send(join("g"))
        with RawClient(address(broker), certificates.client_context()) as asking:
            log_in(asking)
            wait_until(lambda: asking.ask(wire.LIST_GROUPS, 0).groups)
    assert parked.answer(wire.JOIN_GROUP, 3).error_code == Error.NOT_COORDINATOR
    assert parked.is_closed_by_server()
    assert stranger.is_closed_by_server()
    assert silent.recv(1) == b""
    for client in (parked.socket, stranger.socket, silent):
        client.close()


def test_strangers_are_not_served() -> None:
    with listening(SASL) as broker, RawClient(address(broker)) as client:
        assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
        client.send(framed(request(wire.METADATA, 1, topics=None)))
        assert client.is_closed_by_server()
        assert "before authentication: API key 3" in broker.closed[0][1]


def test_strangers_get_little_room_and_others_all() -> None:
    with listening(SASL, sasl_server_max_receive_size="1000") as broker:
        with RawClient(address(broker)) as client:
            client.send(struct.pack(">i", 1001))
            assert client.is_closed_by_server()
        with RawClient(address(broker)) as client:
            assert log_in(client) is Error.NONE
            client.ask(wire.METADATA, 1, topics=({"name": "n" * 2000},))
        assert [why for _, why in broker.closed] == [
            "a request of 1001 bytes was announced, allowed are 1000"
        ]


def test_a_request_behind_the_last_token_in_the_same_packet_is_served() -> None:
    token = request(wire.SASL_AUTHENTICATE, 2, 2, auth_bytes=b"\0alice\0secret")
    with listening(SASL) as broker, RawClient(address(broker)) as client:
        client.send(
            framed(request(wire.SASL_HANDSHAKE, 1, 1, mechanism="PLAIN"))
            + framed(token)
            + framed(request(wire.METADATA, 1, 3, topics=None))
        )
        client.answer(wire.SASL_HANDSHAKE, 1, 1)
        assert client.answer(wire.SASL_AUTHENTICATE, 2, 2).error_code == Error.NONE
        assert client.answer(wire.METADATA, 1, 3).topics


def test_a_wrong_password_is_answered_late_and_then_closed() -> None:
    with listening(SASL, connection_failed_authentication_delay_ms=str(DELAY_MS)) as broker:
        with RawClient(address(broker)) as client:
            started_s = time.monotonic()
            assert log_in(client, "wrong") is Error.SASL_AUTHENTICATION_FAILED
            assert time.monotonic() - started_s >= DELAY_MS / 1000
            assert client.is_closed_by_server()
        assert [why for _, why in broker.closed] == [
            "SASL PLAIN: Authentication failed: Invalid username or password"
        ]


def test_the_server_stops_while_a_refusal_waits() -> None:
    with listening(SASL, connection_failed_authentication_delay_ms="600000") as broker:
        client = RawClient(address(broker))
        client.ask(wire.SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(framed(request(wire.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0wrong")))
    assert client.is_closed_by_server()
    client.socket.close()


def test_authentication_is_out_of_place_on_a_plain_listener() -> None:
    with EmbeddedBroker() as broker, RawClient(address(broker)) as client:
        assert client.ask(wire.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == Error.ILLEGAL_SASL_STATE
        assert client.ask(wire.SASL_AUTHENTICATE, 1, auth_bytes=b"").error_code == Error.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_SSL", "SSL"])
def test_clients_are_not_sent_to_a_protocol_that_is_not_spoken(protocol: str) -> None:
    options = {"advertised.listeners": f"{protocol}://kafka:9092"}
    with pytest.raises(InputError, match=f"{protocol}://...: SASL_PLAINTEXT is spoken here"):
        EmbeddedBroker(options, security=SASL)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT://kafka:9092", "kafka:9092"])
def test_clients_are_sent_to_the_advertised_address(listener: str) -> None:
    options = {"advertised.listeners": listener}
    with EmbeddedBroker(options, security=SASL) as broker, RawClient(address(broker)) as client:
        log_in(client)
        (told,) = client.ask(wire.METADATA, 1, topics=()).brokers
        assert (told.host, told.port) == ("kafka", 9092)

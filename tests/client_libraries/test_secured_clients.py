"""Real clients, unmodified, over TLS, over SASL, and over both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.security.listener import ListenerSecurity, tls_context
from groupstorm.broker.security.users import Users
from groupstorm.clients.wire.security import AuthenticationRefused
from groupstorm.trace.events.coordinator import JoinAnswered
from tests.certificates import Certificates, make_certificates
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import GROUP, TOPIC
from tests.client_libraries.secured import PRODUCING, VALUE, Access, cooperative_consumer, round_trip
from tests.soaking import one_in

USER, PASSWORD = "alice", "alice's, secret=π"
#: Protocol, mechanism.
WAYS = [
    ("SSL", ""),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]
OPTIONS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def listening(
    access: Access, options: dict[str, str] | None = None, demands_certificate: bool = False
) -> Iterator[EmbeddedBroker]:
    files = access.certificates
    tls = None
    if files is not None:
        tls = tls_context(files.server, files.server_key, files.authority if demands_certificate else None)
    users = Users({USER: PASSWORD}) if access.mechanism else None
    security = ListenerSecurity(tls, users)
    assert security.protocol == access.protocol
    with EmbeddedBroker(OPTIONS | (options or {}), {TOPIC: 1}, security=security) as broker:
        yield broker


def access_by(protocol: str, mechanism: str, certificates: Certificates) -> Access:
    credentials = (USER, PASSWORD) if mechanism else ("", "")
    return Access(protocol, mechanism, *credentials, certificates if protocol.endswith("SSL") else None)


@pytest.mark.parametrize(("protocol", "mechanism"), one_in(2, WAYS))
def test_produce_join_read_commit_leave(
    library: str, protocol: str, mechanism: str, certificates: Certificates
) -> None:
    access = access_by(protocol, mechanism, certificates)
    with listening(access) as broker:
        assert round_trip(library, broker.address, access) == VALUE
        assert [event for _, event in broker.events if isinstance(event, JoinAnswered)]
        assert broker.closed == [], "nothing was refused"


@pytest.mark.parametrize(("protocol", "mechanism"), one_in(3, WAYS))
def test_our_asyncio_consumer(protocol: str, mechanism: str, certificates: Certificates) -> None:
    access = access_by(protocol, mechanism, certificates)
    with listening(access) as broker:
        PRODUCING["aiokafka"](broker.address, access)
        assert cooperative_consumer(broker.address, access) == VALUE
        assert broker.closed == []


def test_a_client_that_shows_its_certificate(library: str, certificates: Certificates) -> None:
    access = Access("SSL", certificates=certificates, shows_certificate=True)
    with listening(access, demands_certificate=True) as broker:
        assert round_trip(library, broker.address, access) == VALUE
        assert broker.closed == []


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_client_learns_that_its_password_is_wrong(mechanism: str) -> None:
    checked("aiokafka")
    from aiokafka.errors import KafkaError

    access = Access("SASL_PLAINTEXT", mechanism, USER, "wrong")
    with listening(access) as broker:
        with pytest.raises(KafkaError, match=r"Unable to bootstrap|Authentication failed"):
            PRODUCING["aiokafka"](broker.address, access)
        with pytest.raises(AuthenticationRefused, match="Authentication failed"):
            cooperative_consumer(broker.address, access)
        assert {why.partition(":")[0] for _, why in broker.closed} == {f"SASL {mechanism}"}


@pytest.mark.slow
def test_librdkafka_proves_itself_again_and_keeps_its_connection() -> None:
    """librdkafka authenticates again before its session ends: the broker closes no connection."""
    checked("confluent-kafka")
    from confluent_kafka import Consumer

    access = Access("SASL_PLAINTEXT", "SCRAM-SHA-256", USER, PASSWORD)
    with listening(access, {"connections.max.reauth.ms": "2000"}) as broker:
        options = {"bootstrap.servers": broker.address, "group.id": GROUP, "heartbeat.interval.ms": 200}
        own = {"security.protocol": access.protocol, "sasl.mechanisms": access.mechanism}
        consumer = Consumer(options | own | {"sasl.username": USER, "sasl.password": PASSWORD})
        consumer.subscribe([TOPIC])
        for _ in range(60):
            consumer.poll(0.1)
        assert consumer.assignment()
        consumer.close()
        assert broker.closed == []

"""The consumer on Kafka itself (a JVM process): patterns, a broker without the protocol, TLS and SASL.

`tests/conformance` has it in groups of Kafka with other libraries, in both protocols.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.consumer import CooperativeConsumer
from groupstorm.clients.wire.admin import await_coordinator, create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ClientApi, RequestTypes
from groupstorm.clients.wire.security import PLAINTEXT, AuthenticationRefused, ClientSecurity
from groupstorm.problems import InputError
from tests.clients.consumer.applications import GROUP, QUICK, TOPIC, quick, until
from tests.conformance.programs.building import kafka_java
from tests.needs import needed
from tests.processes import run_process

pytestmark = pytest.mark.slow

PARTITIONS = 12
NEW: dict[str, Any] = {"group_protocol": "consumer"}
OPTIONS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}


@asynccontextmanager
async def kafka(
    options: Mapping[str, str] = {}, security: ClientSecurity = PLAINTEXT
) -> AsyncIterator[RunningBroker]:
    """Kafka with the topic and a coordinator that is ready. Skips the test without Kafka, and fails it if
    Kafka does not start.
    """
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    with needed():
        kafka_java()
    async with jvm({**OPTIONS, **options}) as broker:
        cluster = ClusterClient(broker.bootstrap, "admin", 10_000, security)
        await create_topics(cluster, {TOPIC: PARTITIONS})
        await await_coordinator(cluster, GROUP)
        cluster.close()
        yield broker


async def test_a_pattern_is_resolved_by_kafka() -> None:
    async with kafka() as broker:
        consumer = CooperativeConsumer(
            bootstrap_servers=broker.address,
            group_id=GROUP,
            **quick(subscription_pattern=f"{TOPIC[:2]}.*", **NEW),
        )
        async with consumer:
            reading = asyncio.create_task(consumer.getmany(timeout_ms=20_000))
            await until(lambda: len(consumer.assignment) == PARTITIONS)
            reading.cancel()
            assert consumer.subscription == {TOPIC}


async def test_a_broker_without_the_protocol_names_the_remedy() -> None:
    async with kafka({"group.coordinator.rebalance.protocols": "classic"}) as broker:
        consumer = CooperativeConsumer(
            TOPIC, bootstrap_servers=broker.address, group_id=GROUP, **quick(**NEW)
        )
        with pytest.raises(InputError, match=r"Kafka 4.0 or later.*set group.protocol=classic"):
            async with consumer:
                await consumer.getone()


# -- TLS and SASL ------------------------------------------------------------------------------------

_ALTER_SCRAM = ClientApi(51, "AlterUserScramCredentials", 0, 0)
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_LISTENER = "listener.name.plaintext."  # the name stays, what it speaks does not


def _certificate(folder: Path) -> tuple[str, str]:
    """A key and a certificate for 127.0.0.1, as PEM."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate (Debian: apt install openssl)")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kafka"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    run_process(command, cwd=folder, check=True, capture_output=True)
    return (folder / "key.pem").read_text("ascii"), (folder / "cert.pem").read_text("ascii")


def _secured(key: str, certificate: str) -> dict[str, str]:
    return {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": certificate,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificate,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{_LISTENER}plain.sasl.jaas.config": (
            f'{_PLAIN_MODULE} required username="admin" password="admin" user_admin="admin" user_eve="e,=e";'
        ),
        f"{_LISTENER}scram-sha-256.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
        f"{_LISTENER}scram-sha-512.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
    }


async def _add_scram_user(
    cluster: ClusterClient, name: str, password: str, mechanism: int, hash_name: str
) -> None:
    salt, iterations = os.urandom(16), 4_096

    def build(types: RequestTypes) -> Any:
        upsertion = types.make(
            "ScramCredentialUpsertion",
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=salt,
            salted_password=hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations),
        )
        return types.make(types.root.__name__, deletions=(), upsertions=(upsertion,))

    answer = await cluster.ask_any(_ALTER_SCRAM, build)
    assert [int(one.error_code) for one in answer.results] == [0]


async def test_tls_and_sasl_of_a_real_broker(tmp_path: Path) -> None:
    key, certificate = _certificate(tmp_path)
    trusting = ssl.create_default_context(cadata=certificate)
    admin = ClientSecurity(trusting, "PLAIN", "admin", "admin")
    async with kafka(_secured(key, certificate), admin) as broker:
        cluster = ClusterClient(broker.bootstrap, "admin", 10_000, admin)
        await _add_scram_user(cluster, "eve", "e,=e", 1, "sha256")
        await _add_scram_user(cluster, "eve", "e,=e", 2, "sha512")
        cluster.close()

        def consumer(mechanism: str, password: str, trusted: ssl.SSLContext) -> CooperativeConsumer:
            return CooperativeConsumer(
                TOPIC,
                bootstrap_servers=broker.address,
                group_id=f"{GROUP}-{mechanism}",
                security_protocol="SASL_SSL",
                ssl_context=trusted,
                sasl_mechanism=mechanism,
                sasl_plain_username="eve",
                sasl_plain_password=password,
                **QUICK,
            )

        async def reads(mechanism: str, password: str, trusted: ssl.SSLContext) -> int:
            async with consumer(mechanism, password, trusted) as one:
                return (await one.getone()).offset

        await _produce_one(broker.address, trusting)
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert await reads(mechanism, "e,=e", trusting) == 0
            with pytest.raises(AuthenticationRefused):
                await reads(mechanism, "wrong", trusting)
        with pytest.raises(AuthenticationRefused, match="certificate"):
            await reads("PLAIN", "e,=e", ssl.create_default_context())


async def _produce_one(address: str, trusting: ssl.SSLContext) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        security_protocol="SASL_SSL",
        ssl_context=trusting,
        sasl_mechanism="PLAIN",
        sasl_plain_username="admin",
        sasl_plain_password="admin",
    )
    async with producer:
        await producer.send_and_wait(TOPIC, b"1", partition=0)

"""The consumer on Kafka itself (a JVM process): rolling restarts with Kafka's Java consumer, TLS and SASL."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors.userdata import decode_assignment
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.consumer import CooperativeConsumer, TopicPartition
from groupstorm.clients.wire.admin import await_coordinator, create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ClientApi, RequestTypes
from groupstorm.clients.wire.security import PLAINTEXT, AuthenticationRefused, ClientSecurity
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events import member as events
from tests.clients.consumer.applications import GROUP, QUICK, TOPIC, ConsumerApplication, until
from tests.conformance.programs.building import kafka_java
from tests.needs import needed
from tests.oracle.build import build
from tests.oracle.member.members import JavaMember
from tests.oracle.member.situation import Act
from tests.processes import run_process

pytestmark = pytest.mark.slow

PARTITIONS = 12
OURS = ("a", "b", "c", "d")
_ABOUT_PARTITIONS = (events.PartitionsAssigned, events.PartitionsRevoked, events.PartitionsLost)
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


class Production:
    """Sends records to all partitions until it is stopped, and counts them."""

    def __init__(self, address: str) -> None:
        self.sent = 0
        self._address = address
        self._ends = False

    async def run(self) -> None:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(bootstrap_servers=self._address) as producer:
            while not self._ends:
                for number in range(PARTITIONS):
                    await producer.send(TOPIC, str(self.sent).encode(), partition=number)
                await producer.flush()
                self.sent += 1
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Production]:
        task = asyncio.create_task(self.run())
        yield self
        self._ends = True
        await task


def has_settled(ours: Sequence[ConsumerApplication], others: int) -> bool:
    """All our members are in one generation with even shares, and the others can have even shares too.

    No member of ours is inside a call of its listener, whose event comes at the end of the call.
    """
    members = len(ours) + others
    least, most = PARTITIONS // members, -(-PARTITIONS // members)
    owned = [partition for one in ours for partition in one.owned]
    generations = {one.generation for one in ours if one.is_classic}
    return (
        len(generations) <= 1
        and None not in generations
        and len(owned) == len(set(owned))
        and all(least <= len(one.owned) <= most for one in ours)
        and least * others <= PARTITIONS - len(owned) <= most * others
        and all(one.owned == one.consumer.assignment for one in ours)
        and all(
            {f"{each.topic}-{each.partition}" for each in one.owned} == one.owned_by_events for one in ours
        )
    )


async def described_group(bootstrap: Sequence[Endpoint]) -> tuple[str, int, int]:
    """The group's state, its number of members, and the number of assigned partitions."""
    cluster = ClusterClient(bootstrap, "admin", 10_000)
    answer = await cluster.ask_any(
        ClientApi(15, "DescribeGroups", 0, 5),
        lambda types: types.make(types.root.__name__, groups=(GROUP,), include_authorized_operations=False),
    )
    cluster.close()
    (group,) = answer.groups
    given = [one.member_assignment for one in group.members if one.member_assignment]
    count = sum(len(decode_assignment(assignment).partitions) for assignment in given)
    return group.group_state, len(group.members), count


class RollingRestart:
    """Stops and starts our members in turn, and compares the calls and events of the staying ones."""

    def __init__(self, broker: RunningBroker, others: int) -> None:
        self._address = broker.address
        self._bootstrap = broker.bootstrap
        self._others = others
        self.running: dict[str, ConsumerApplication] = {}
        self.all: list[ConsumerApplication] = []
        #: The partitions that members kept while another was stopped or started, and those of them in calls.
        self.kept = 0
        self.interrupted: list[tuple[str, set[TopicPartition]]] = []

    def start(self, name: str) -> None:
        application = ConsumerApplication(self._address, name, session_timeout_ms=10_000).start()
        self.running[name] = application
        self.all.append(application)

    async def settle(self) -> None:
        """Wait until our members have settled and the coordinator waits for no other member."""
        members = len(self.running) + self._others
        while True:
            await until(lambda: has_settled(list(self.running.values()), self._others))
            described = await described_group(self._bootstrap)
            if described == ("Stable", members, PARTITIONS) and has_settled(
                list(self.running.values()), self._others
            ):
                return

    async def roll(self) -> None:
        for name in OURS:
            gone = self.running.pop(name)
            before = self._note()
            await gone.stop()
            await self.settle()
            self._compare(before)
            before = self._note()
            self.start(name)
            await self.settle()
            self._compare(before)

    def _note(self) -> dict[str, tuple[set[TopicPartition], int, int]]:
        return {
            name: (one.owned, len(one.listener.calls), len(one.emitted)) for name, one in self.running.items()
        }

    def _compare(self, before: Mapping[str, tuple[set[TopicPartition], int, int]]) -> None:
        """Partitions that a member kept are in no call of its listener and in no event of its trace."""
        for name, (owned, calls, emitted) in before.items():
            one = self.running[name]
            stayed = owned & one.owned
            self.kept += len(stayed)
            touched = [partitions for _, partitions in one.listener.calls[calls:]]
            for _, event in one.emitted[emitted:]:
                if isinstance(event, _ABOUT_PARTITIONS):
                    names = set(event.partitions)
                    touched.append({each for each in stayed if f"{each.topic}-{each.partition}" in names})
            self.interrupted += [(name, each & stayed) for each in touched if each & stayed]


async def test_no_partition_of_a_staying_member_is_interrupted_by_a_rolling_restart() -> None:
    """Four of our members and Kafka's Java consumer in one cooperative-sticky group."""
    with needed():
        built = await asyncio.to_thread(build)
    async with kafka() as broker, JavaMember(built) as java:
        await java.start(broker.bootstrap[0], _java_config(), (TOPIC,))
        restart = RollingRestart(broker, others=1)
        for name in OURS:
            restart.start(name)
        await restart.settle()
        async with Production(broker.address).running() as production:
            await restart.roll()
        await until(lambda: _read_to(restart.running.values(), production.sent))
        # before they close one after the other: who closes in the middle of a round has lost its partitions
        assert [event for one in restart.all for event in one.of(events.PartitionsLost)] == []
        _check_offsets(restart.all)
        await java.act(Act.CLOSE)
        await java.ended()
        for one in restart.running.values():
            await one.stop()
    assert restart.interrupted == []
    assert restart.kept > PARTITIONS
    assert production.sent > 10
    _check_java(java)


def _java_config() -> dict[str, str | int]:
    return {
        "group.id": GROUP,
        "client.id": "java",
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": 30,
        "session.timeout.ms": 10_000,
        "enable.auto.commit": "true",
        "auto.offset.reset": "earliest",
    }


def _read_to(applications: Any, sent: int) -> bool:
    """The last record of every partition of ours has been read."""
    return all(
        (one.offsets.get(partition.partition) or [-1])[-1] == sent - 1
        for one in applications
        for partition in one.owned
    )


def _check_offsets(applications: Sequence[ConsumerApplication]) -> None:
    """No offset was read twice, and each owner read its partitions in order."""
    for number in range(PARTITIONS):
        read = [offset for one in applications for offset in one.offsets.get(number, ())]
        assert len(read) == len(set(read)), number
    for one in applications:
        for offsets in one.offsets.values():
            assert offsets == sorted(offsets)


def _check_java(java: JavaMember) -> None:
    """The listener of Kafka's consumer got the differences only, too."""
    owned: set[str] = set()
    for call in java.observed:
        changed = set(call["partitions"])
        if call["event"] == "onPartitionsAssigned":
            assert not owned & changed
            owned |= changed
        else:
            assert call["event"] == "onPartitionsRevoked"
            assert changed <= owned
            owned -= changed
    assert owned == set()
    assert len(java.observed) > 4


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

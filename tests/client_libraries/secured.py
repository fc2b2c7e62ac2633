"""Each client library over a listener with TLS or SASL: produce, join a group, read, commit, leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.clients.consumer import CooperativeConsumer
from tests.certificates import Certificates
from tests.client_libraries.members import DEADLINE_S, GROUP, TOPIC

VALUE = b"v" * 300_000  # more than one record of TLS, and more than strangers may send


class Access(NamedTuple):
    """The configuration of a client; ``certificates``: if there is TLS."""

    protocol: str
    mechanism: str = ""
    username: str = ""
    password: str = ""
    certificates: Certificates | None = None
    shows_certificate: bool = False


def _kafka_python_options(access: Access, address: str) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap_servers": address, "security_protocol": access.protocol}
    if access.certificates is not None:
        options["ssl_cafile"] = str(access.certificates.authority)
    if access.certificates is not None and access.shows_certificate:
        options["ssl_certfile"] = str(access.certificates.client)
        options["ssl_keyfile"] = str(access.certificates.client_key)
    return options | _sasl_options(access)


def _sasl_options(access: Access) -> dict[str, Any]:
    """As kafka-python, aiokafka and CooperativeConsumer call them."""
    if not access.mechanism:
        return {}
    named = {"sasl_mechanism": access.mechanism, "sasl_plain_username": access.username}
    return named | {"sasl_plain_password": access.password}


def kafka_python(address: str, access: Access) -> bytes:
    from kafka import KafkaConsumer, KafkaProducer

    options = _kafka_python_options(access, address)
    producer = KafkaProducer(**options)
    producer.send(TOPIC, VALUE).get(timeout=DEADLINE_S)
    producer.close()
    consumer = KafkaConsumer(
        TOPIC, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False, **options
    )
    try:
        return _first(lambda: [one.value for read in consumer.poll(500).values() for one in read], consumer)
    finally:
        consumer.close(autocommit=False)


def _first(poll: Callable[[], list[bytes]], consumer: Any) -> bytes:
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        for value in poll():
            consumer.commit()
            return value
    raise TimeoutError("nothing was read")


def confluent_kafka(address: str, access: Access) -> bytes:
    from confluent_kafka import Consumer, Producer

    options: dict[str, Any] = {"bootstrap.servers": address, "security.protocol": access.protocol}
    if access.certificates is not None:
        options["ssl.ca.location"] = str(access.certificates.authority)
    if access.certificates is not None and access.shows_certificate:
        options["ssl.certificate.location"] = str(access.certificates.client)
        options["ssl.key.location"] = str(access.certificates.client_key)
    if access.mechanism:
        options["sasl.mechanisms"] = access.mechanism
        options |= {"sasl.username": access.username, "sasl.password": access.password}
    producer = Producer(options)
    producer.produce(TOPIC, VALUE)
    assert producer.flush(DEADLINE_S) == 0
    own = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(options | own)
    consumer.subscribe([TOPIC])
    try:
        record = consumer.poll(DEADLINE_S)
        assert record is not None
        assert record.error() is None, record.error()
        consumer.commit(message=record, asynchronous=False)
        return bytes(record.value())
    finally:
        consumer.close()


def _asyncio_options(access: Access, address: str) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap_servers": address, "security_protocol": access.protocol}
    if access.certificates is not None:
        options["ssl_context"] = access.certificates.client_context(access.shows_certificate)
    return options | _sasl_options(access)


def aiokafka(address: str, access: Access) -> bytes:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> bytes:
        options = _asyncio_options(access, address)
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(TOPIC, VALUE)
        own = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with AIOKafkaConsumer(TOPIC, **own, **options) as consumer:
            record = await asyncio.wait_for(consumer.getone(), DEADLINE_S)
            await consumer.commit()
            return bytes(record.value)

    return asyncio.run(run())


def cooperative_consumer(address: str, access: Access) -> bytes:
    """A consumer only: another client has produced the record."""

    async def run() -> bytes:
        consumer = CooperativeConsumer(
            TOPIC,
            group_id="asyncio",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **_asyncio_options(access, address),
        )
        async with consumer:
            async with asyncio.timeout(DEADLINE_S):
                async for record in consumer:
                    await consumer.commit()
                    return record.value or b""
        raise TimeoutError("nothing was read")

    return asyncio.run(run())


#: Library -> what one client does; gives the value that it has read.
CLIENTS: Mapping[str, Callable[[str, Access], bytes]] = {
    "aiokafka": aiokafka,
    "confluent-kafka": confluent_kafka,
    "kafka-python": kafka_python,
}

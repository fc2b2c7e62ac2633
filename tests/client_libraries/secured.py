"""Each client library over a listener with TLS or SASL: produce, join a group, read, commit, leave."""

from __future__ import annotations

import asyncio
import importlib
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


def _sasl_options(access: Access, address: str) -> dict[str, Any]:
    """As kafka-python, aiokafka and CooperativeConsumer call them."""
    options: dict[str, Any] = {"bootstrap_servers": address, "security_protocol": access.protocol}
    if not access.mechanism:
        return options
    named = {"sasl_mechanism": access.mechanism, "sasl_plain_username": access.username}
    return options | named | {"sasl_plain_password": access.password}


def _kafka_python_options(access: Access, address: str) -> dict[str, Any]:
    options = _sasl_options(access, address)
    if access.certificates is not None:
        options["ssl_cafile"] = str(access.certificates.authority)
    if access.certificates is not None and access.shows_certificate:
        options["ssl_certfile"] = str(access.certificates.client)
        options["ssl_keyfile"] = str(access.certificates.client_key)
    return options


def kafka_python_produce(address: str, access: Access) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(**_kafka_python_options(access, address))
    try:
        producer.send(TOPIC, VALUE).get(timeout=DEADLINE_S)
    finally:
        producer.close(timeout=1)


def kafka_python_consume(address: str, access: Access) -> bytes:
    from kafka import KafkaConsumer

    own = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(TOPIC, **own, **_kafka_python_options(access, address))
    deadline_s = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < deadline_s:
            for read in consumer.poll(500).values():
                consumer.commit()
                return bytes(read[0].value)
    finally:
        consumer.close(autocommit=False)
    raise TimeoutError("neither a record nor an error")


def confluent_options(address: str, access: Access) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap.servers": address, "security.protocol": access.protocol}
    if access.certificates is not None:
        options["ssl.ca.location"] = str(access.certificates.authority)
    if access.certificates is not None and access.shows_certificate:
        options["ssl.certificate.location"] = str(access.certificates.client)
        options["ssl.key.location"] = str(access.certificates.client_key)
    if access.mechanism:
        options["sasl.mechanisms"] = access.mechanism
        options |= {"sasl.username": access.username, "sasl.password": access.password}
    return options


def confluent_produce(address: str, access: Access) -> None:
    from confluent_kafka import KafkaException, Producer

    reports: list[Any] = []
    producer = Producer(confluent_options(address, access))
    producer.produce(TOPIC, VALUE, on_delivery=lambda error, _message: reports.append(error))
    assert producer.flush(DEADLINE_S) == 0
    if reports[0] is not None:
        raise KafkaException(reports[0])


def confluent_consume(address: str, access: Access) -> bytes:
    from confluent_kafka import Consumer, KafkaException

    own = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(confluent_options(address, access) | own)
    consumer.subscribe([TOPIC])
    try:
        record = consumer.poll(DEADLINE_S)
        assert record is not None
        if record.error() is not None:
            raise KafkaException(record.error())
        consumer.commit(message=record, asynchronous=False)
        return bytes(record.value())
    finally:
        consumer.close()


def _asyncio_options(access: Access, address: str) -> dict[str, Any]:
    options = _sasl_options(access, address)
    if access.certificates is not None:
        options["ssl_context"] = access.certificates.client_context(access.shows_certificate)
    return options


def aiokafka_produce(address: str, access: Access) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        async with AIOKafkaProducer(**_asyncio_options(access, address)) as producer:
            await producer.send_and_wait(TOPIC, VALUE)

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


def aiokafka_consume(address: str, access: Access) -> bytes:
    from aiokafka import AIOKafkaConsumer

    async def run() -> bytes:
        own = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = AIOKafkaConsumer(TOPIC, **own, **_asyncio_options(access, address))
        try:
            await consumer.start()
            record = await consumer.getone()
            await consumer.commit()
            return bytes(record.value)
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


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


#: Library -> produces one record.
PRODUCING: Mapping[str, Callable[[str, Access], None]] = {
    "aiokafka": aiokafka_produce,
    "confluent-kafka": confluent_produce,
    "kafka-python": kafka_python_produce,
}
#: Library -> consumes one record as a member of a group, commits it and gives its value.
CONSUMING: Mapping[str, Callable[[str, Access], bytes]] = {
    "aiokafka": aiokafka_consume,
    "confluent-kafka": confluent_consume,
    "kafka-python": kafka_python_consume,
}
#: Library -> the class of its errors.
_ERRORS = {
    "aiokafka": ("aiokafka.errors", "KafkaError"),
    "confluent-kafka": ("confluent_kafka", "KafkaException"),
    "kafka-python": ("kafka.errors", "KafkaError"),
}


def round_trip(library: str, address: str, access: Access) -> bytes:
    """Produce and consume; the value that was read."""
    PRODUCING[library](address, access)
    return CONSUMING[library](address, access)


def error_of(library: str, act: Callable[[str, Access], object], address: str, access: Access) -> str:
    """The name that the library gives the error of ``act``; "" if there is none."""
    module, name = _ERRORS[library]
    kind: type[Exception] = getattr(importlib.import_module(module), name)
    try:
        act(address, access)
    except kind as problem:
        return problem.args[0].name() if name == "KafkaException" else type(problem).__name__
    return ""

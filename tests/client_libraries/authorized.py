"""Each client library on a topic or a group that it may not use, and under a quota."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.client_libraries.members import DEADLINE_S, GROUP, TOPIC

USER, PASSWORD = "alice", "secret"
_SASL = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}


def _python_options(address: str) -> dict[str, Any]:
    return {"bootstrap_servers": address, "security_protocol": "SASL_PLAINTEXT", **_SASL}


def confluent_options(address: str, user: str = USER) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }


def confluent_produce(address: str) -> str:
    from confluent_kafka import Producer

    reports: list[Any] = []
    producer = Producer(confluent_options(address))
    producer.produce(TOPIC, b"v", on_delivery=lambda error, _message: reports.append(error))
    assert producer.flush(DEADLINE_S) == 0
    return "" if reports[0] is None else str(reports[0].name())


def confluent_consume(address: str) -> str:
    from confluent_kafka import Consumer

    consumer = Consumer(confluent_options(address) | {"group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        record = consumer.poll(DEADLINE_S)
        assert record is not None
        return "" if record.error() is None else str(record.error().name())
    finally:
        consumer.close()


def kafka_python_produce(address: str) -> str:
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(**_python_options(address))
    try:
        producer.send(TOPIC, b"v").get(timeout=DEADLINE_S)
    except KafkaError as problem:
        return type(problem).__name__
    finally:
        producer.close(timeout=1)
    return ""


def kafka_python_consume(address: str) -> str:
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    options = _python_options(address)
    consumer = KafkaConsumer(TOPIC, group_id=GROUP, auto_offset_reset="earliest", **options)
    deadline_s = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < deadline_s:
            if consumer.poll(500):
                return ""
    except KafkaError as problem:
        return type(problem).__name__
    finally:
        consumer.close(autocommit=False)
    raise TimeoutError("neither a record nor an error")


def aiokafka_produce(address: str) -> str:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    async def run() -> str:
        async with AIOKafkaProducer(**_python_options(address)) as producer:
            try:
                await producer.send_and_wait(TOPIC, b"v")
            except KafkaError as problem:
                return type(problem).__name__
        return ""

    return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


def aiokafka_consume(address: str) -> str:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    async def run() -> str:
        own = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = AIOKafkaConsumer(TOPIC, **own, **_python_options(address))
        try:
            await consumer.start()
            await consumer.getone()
        except KafkaError as problem:
            return type(problem).__name__
        finally:
            await consumer.stop()
        return ""

    return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


#: Library -> produces one record, or consumes one; gives the name of the error, "" if there was none.
PRODUCING: Mapping[str, Callable[[str], str]] = {
    "aiokafka": aiokafka_produce,
    "confluent-kafka": confluent_produce,
    "kafka-python": kafka_python_produce,
}
CONSUMING: Mapping[str, Callable[[str], str]] = {
    "aiokafka": aiokafka_consume,
    "confluent-kafka": confluent_consume,
    "kafka-python": kafka_python_consume,
}

"""Produce with each client library, unmodified."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from tests.client_libraries.members import TOPIC

#: (partition, value)
Record = tuple[int, str]


def produce_with_kafka_python(address: str, records: Sequence[Record], topic: str = TOPIC) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address, acks="all", linger_ms=1)
    futures = [producer.send(topic, value.encode(), partition=partition) for partition, value in records]
    for future in futures:
        future.get(timeout=10)
    producer.close()


def produce_with_confluent(address: str, records: Sequence[Record], topic: str = TOPIC) -> None:
    from confluent_kafka import Producer

    failures: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 1})
    for partition, value in records:
        producer.produce(topic, value.encode(), partition=partition, on_delivery=delivered)
    assert producer.flush(10) == 0
    assert not failures


def produce_with_aiokafka(address: str, records: Sequence[Record], topic: str = TOPIC) -> None:
    async def produce() -> None:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True) as producer:
            sent = [await producer.send(topic, value.encode(), partition=part) for part, value in records]
            await asyncio.gather(*sent)

    asyncio.run(produce())


PRODUCERS: dict[str, Callable[..., None]] = {
    "aiokafka": produce_with_aiokafka,
    "confluent-kafka": produce_with_confluent,
    "kafka-python": produce_with_kafka_python,
}

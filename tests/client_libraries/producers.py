"""Produce with librdkafka, unmodified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.client_libraries.members import TOPIC

#: (partition, value)
Record = tuple[int, str]


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

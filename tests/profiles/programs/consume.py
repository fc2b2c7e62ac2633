"""One consumer of a Python library with the library's own defaults, until SIGTERM.

python consume.py LIBRARY BOOTSTRAP GROUP TOPIC CLIENT_ID [ASSIGNOR]

Two of the libraries have cooperative-sticky beside their default.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import Any

POLL_S = 0.1
_ended = threading.Event()


def _end(*_: Any) -> None:
    _ended.set()


def kafka_python(bootstrap: str, group: str, topic: str, client_id: str, assignor: str = "") -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    own: dict[str, Any] = {"partition_assignment_strategy": [CooperativeStickyAssignor]} if assignor else {}
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, client_id=client_id, **own)
    while not _ended.is_set():
        consumer.poll(timeout_ms=POLL_S * 1000)
    consumer.close()


def librdkafka(bootstrap: str, group: str, topic: str, client_id: str, assignor: str = "") -> None:
    from confluent_kafka import Consumer

    own = {"partition.assignment.strategy": assignor} if assignor else {}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": client_id, **own})
    consumer.subscribe([topic])
    while not _ended.is_set():
        consumer.poll(POLL_S)
    consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    from aiokafka import AIOKafkaConsumer

    async def consume() -> None:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, client_id=client_id)
        async with consumer:
            while not _ended.is_set():
                await consumer.getmany(timeout_ms=int(POLL_S * 1000))

    asyncio.run(consume())


LIBRARIES = {"kafka-python": kafka_python, "librdkafka": librdkafka, "aiokafka": aiokafka}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    LIBRARIES[sys.argv[1]](*sys.argv[2:])

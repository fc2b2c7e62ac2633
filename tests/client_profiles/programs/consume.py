"""One consumer of a Python library with the library's own defaults, until SIGTERM.

python consume.py LIBRARY BOOTSTRAP GROUP TOPIC CLIENT_ID [ASSIGNOR [GROUP_PROTOCOL]]

Two of the libraries have cooperative-sticky beside their default. WORK_MS in the environment: how long the
application works on each record.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Any

POLL_S = 0.1
WORK_S = int(os.environ.get("WORK_MS", "0")) / 1000
_ended = threading.Event()


def _end(*_: Any) -> None:
    _ended.set()


def kafka_python(bootstrap: str, group: str, topic: str, client_id: str, assignor: str = "") -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    own: dict[str, Any] = {"partition_assignment_strategy": [CooperativeStickyAssignor]} if assignor else {}
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, client_id=client_id, **own)
    while not _ended.is_set():
        for records in consumer.poll(timeout_ms=POLL_S * 1000).values():
            time.sleep(WORK_S * len(records))
    consumer.close()


def librdkafka(
    bootstrap: str, group: str, topic: str, client_id: str, assignor: str = "", protocol: str = ""
) -> None:
    from confluent_kafka import Consumer

    own = {"partition.assignment.strategy": assignor} if assignor else {}
    own |= {"group.protocol": protocol} if protocol else {}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": client_id, **own})
    consumer.subscribe([topic])
    while not _ended.is_set():
        if consumer.poll(POLL_S) is not None:
            time.sleep(WORK_S)
    consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    from aiokafka import AIOKafkaConsumer

    async def consume() -> None:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, client_id=client_id)
        async with consumer:
            while not _ended.is_set():
                for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
                    await asyncio.sleep(WORK_S * len(records))

    asyncio.run(consume())


LIBRARIES = {"kafka-python": kafka_python, "librdkafka": librdkafka, "aiokafka": aiokafka}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    LIBRARIES[sys.argv[1]](*sys.argv[2:])

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.clients.consumer.applications import PARTITIONS, TOPIC, ConsumerApplication

#: Sends a number of records to each of the named partitions (by default all) of a topic.
Produce = Callable[..., Awaitable[None]]
#: Starts an application, which ends with the test.
Start = Callable[..., ConsumerApplication]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    options = {
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "100",
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "30",
        "group.consumer.heartbeat.interval.ms": "30",
        "group.consumer.min.session.timeout.ms": "500",
        "group.consumer.session.timeout.ms": "15000",
    }
    with EmbeddedBroker(options, {TOPIC: PARTITIONS, "refunds": 2}) as running:
        yield running


@pytest.fixture
async def produce(broker: EmbeddedBroker) -> AsyncIterator[Produce]:
    aiokafka = pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=broker.address) as producer:

        async def to_all(count: int, *numbers: int, topic: str = TOPIC) -> None:
            for number in numbers or range(PARTITIONS):
                for value in range(count):
                    await producer.send(topic, str(value).encode(), partition=number)
            await producer.flush()

        yield to_all


@pytest.fixture
async def start(broker: EmbeddedBroker) -> AsyncIterator[Start]:
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    started: list[ConsumerApplication] = []

    def make(name: str, **options: Any) -> ConsumerApplication:
        application = ConsumerApplication(broker.address, name, **options)
        started.append(application)
        return application.start()

    yield make
    for application in started:
        await application.give_up()

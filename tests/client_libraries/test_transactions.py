"""Consume, produce and commit in one transaction; several brokers, a moving coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import TOPIC
from tests.waiting import wait_until

DEADLINE_S = 60.0


@pytest.fixture
def three() -> Iterator[EmbeddedBroker]:
    """Three brokers, so that one broker does not coordinate and lead everything."""
    options = {"group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(options, {TOPIC: 3}, brokers=3) as running:
        yield running


def test_confluent_kafka(three: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer({"bootstrap.servers": three.address, "transactional.id": "t"})
    producer.init_transactions(DEADLINE_S)
    for value, is_commit in ((b"yes", True), (b"no", False), (b"also", True)):
        producer.begin_transaction()
        producer.produce(TOPIC, value, partition=1)
        if is_commit:
            producer.commit_transaction(DEADLINE_S)
        else:
            producer.flush(DEADLINE_S)
            producer.abort_transaction(DEADLINE_S)
    consumer = Consumer(
        {"bootstrap.servers": three.address, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    messages = consumer.consume(2, timeout=DEADLINE_S)
    assert [message.value() for message in messages] == [b"yes", b"also"]
    producer.begin_transaction()
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(TOPIC, 1, 5)], metadata, DEADLINE_S)
    producer.commit_transaction(DEADLINE_S)
    (committed,) = consumer.committed([TopicPartition(TOPIC, 1)], timeout=DEADLINE_S)
    assert committed.offset == 5
    consumer.close()


def test_kafka_python(three: EmbeddedBroker) -> None:
    checked("kafka-python")
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=three.address, transactional_id="t")
    producer.init_transactions()
    for value, is_commit in ((b"yes", True), (b"no", False), (b"also", True)):
        producer.begin_transaction()
        producer.send(TOPIC, value, partition=1).get(DEADLINE_S)
        if is_commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=three.address,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        group_id="g",
        consumer_timeout_ms=int(DEADLINE_S * 1000),
    )
    values = [next(consumer).value for _ in range(2)]
    consumer.close()
    assert values == [b"yes", b"also"]


def test_aiokafka(three: EmbeddedBroker) -> None:
    checked("aiokafka")
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=three.address, transactional_id="t")
        await producer.start()
        async with producer.transaction():
            await producer.send_and_wait(TOPIC, b"yes", partition=1)
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, b"no", partition=1)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(TOPIC, b"also", partition=1)
            await producer.send_offsets_to_transaction({TopicPartition(TOPIC, 1): 5}, "g")
        await producer.stop()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=three.address,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            group_id="g",
        )
        await consumer.start()
        try:
            partition = TopicPartition(TOPIC, 1)
            consumer.assign([partition])
            assert await consumer.committed(partition) == 5
            consumer.seek(partition, 0)
            values = [(await asyncio.wait_for(consumer.getone(), DEADLINE_S)).value for _ in range(2)]
            assert values == [b"yes", b"also"]
        finally:
            await consumer.stop()

    asyncio.run(run())


def test_a_member_follows_its_coordinator_to_another_broker(three: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": three.address, "group.id": "g", "session.timeout.ms": 6000})
    consumer.subscribe([TOPIC])
    wait_until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 3)
    before = three.call(lambda: three.broker.state.cluster.groups.node_of("g"))
    three.move_coordinator("g")
    assert three.call(lambda: three.broker.state.cluster.groups.node_of("g")) != before

    def commits() -> bool:
        from confluent_kafka import KafkaException

        consumer.poll(0.1)
        try:
            consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)
        except KafkaException:
            return False
        return True

    wait_until(commits)
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=DEADLINE_S)
    assert committed.offset == 7
    kept = three.call(three.broker.snapshot)
    assert any(getattr(change, "generation", None) == 1 for change in kept)
    consumer.close()

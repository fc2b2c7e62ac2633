"""Administration with the libraries' own admin clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import TOPIC
from tests.client_libraries.producers import produce_with_confluent

DEADLINE_S = 60.0
SECOND = "second"


def confluent_admin(broker: EmbeddedBroker) -> Any:
    checked("confluent-kafka")
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": broker.address})


def results(futures: dict[Any, Any]) -> list[Any]:
    return [future.result(DEADLINE_S) for future in futures.values()]


def test_confluent_kafka_administers_topics(broker: EmbeddedBroker) -> None:
    admin = confluent_admin(broker)
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import (
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewPartitions,
        NewTopic,
        ResourceType,
    )

    results(admin.create_topics([NewTopic(SECOND, 2, 1, config={"retention.ms": "5000"})]))
    results(admin.create_partitions([NewPartitions(SECOND, 4)]))
    change = ConfigEntry("retention.bytes", "77", incremental_operation=AlterConfigOpType.SET, source=None)
    resource = ConfigResource(ResourceType.TOPIC, SECOND, incremental_configs=[change])
    results(admin.incremental_alter_configs([resource]))
    (configs,) = results(admin.describe_configs([ConfigResource(ResourceType.TOPIC, SECOND)]))
    assert (configs["retention.ms"].value, configs["retention.bytes"].value) == ("5000", "77")
    assert len(admin.list_topics(timeout=DEADLINE_S).topics[SECOND].partitions) == 4
    produce_with_confluent(broker.address, [(0, str(number)) for number in range(5)])
    (deleted,) = results(admin.delete_records([TopicPartition(TOPIC, 0, 3)]))
    assert deleted.low_watermark == 3
    cluster = admin.describe_cluster().result(DEADLINE_S)
    assert [node.id for node in cluster.nodes] == [1]
    results(admin.delete_topics([SECOND]))
    assert set(admin.list_topics(timeout=DEADLINE_S).topics) == {TOPIC}


def test_confluent_kafka_administers_groups(broker: EmbeddedBroker) -> None:
    admin = confluent_admin(broker)
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 4)], asynchronous=False)
    consumer.close()
    listed = admin.list_consumer_groups().result(DEADLINE_S)
    assert [group.group_id for group in listed.valid] == ["readers"]
    asked = ConsumerGroupTopicPartitions("readers", [TopicPartition(TOPIC, 0)])
    (found,) = results(admin.list_consumer_group_offsets([asked]))
    assert [one.offset for one in found.topic_partitions] == [4]
    moved = ConsumerGroupTopicPartitions("readers", [TopicPartition(TOPIC, 0, 2)])
    results(admin.alter_consumer_group_offsets([moved]))
    (found,) = results(admin.list_consumer_group_offsets([asked]))
    assert [one.offset for one in found.topic_partitions] == [2]
    results(admin.delete_consumer_groups(["readers"]))
    assert admin.list_consumer_groups().result(DEADLINE_S).valid == []


def test_kafka_python_administers_topics_and_groups(broker: EmbeddedBroker) -> None:
    checked("kafka-python")
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    try:
        admin.create_topics([NewTopic(SECOND, 2, 1)])
        assert {TOPIC, SECOND} <= set(admin.list_topics())
        admin.delete_topics([SECOND])
        assert SECOND not in admin.list_topics()
        assert admin.describe_cluster()["cluster_id"]
    finally:
        admin.close()


def test_aiokafka_administers_topics_and_groups(broker: EmbeddedBroker) -> None:
    checked("aiokafka")
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

    async def administer() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.address)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(SECOND, 2, 1)])
            await admin.create_partitions({SECOND: NewPartitions(3)})
            (described,) = await admin.describe_topics([SECOND])
            assert len(described["partitions"]) == 3
            await admin.delete_topics([SECOND])
            assert SECOND not in await admin.list_topics()
            assert await admin.list_consumer_groups() == []
        finally:
            await admin.close()

    asyncio.run(administer())


@pytest.mark.parametrize("release", ["2.8", "3.9"])
def test_clients_work_with_the_versions_of_older_releases(release: str) -> None:
    checked("confluent-kafka")
    options = {"group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(options, {TOPIC: 2}, release=release) as broker:
        from confluent_kafka import Consumer

        produce_with_confluent(broker.address, [(0, str(number)) for number in range(3)])
        settings = {"group.id": "g", "auto.offset.reset": "earliest", "bootstrap.servers": broker.address}
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        messages = consumer.consume(3, timeout=DEADLINE_S)
        consumer.close()
        assert [message.value() for message in messages] == [b"0", b"1", b"2"]

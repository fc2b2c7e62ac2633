"""Readers of topics with confluent-kafka."""

from __future__ import annotations

from collections.abc import Mapping


def newest_values(address: str, topic: str) -> Mapping[str, str]:
    """The newest value of each key in the only partition of a topic, of what transactions have committed."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[str, str] = {}
        while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
            messages = consumer.consume(1000, timeout=0.2)
            if not messages:
                break  # an open transaction holds up what is behind it
            for message in messages:
                if message.error() is None:
                    found[message.key().decode()] = message.value().decode()
        return found
    finally:
        consumer.close()


def own_configs(address: str, topic: str) -> tuple[int, Mapping[str, str]]:
    """Return the number of partitions of a topic, and the configurations that it has of its own."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType

    client = AdminClient({"bootstrap.servers": address})
    described = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
    (entries,) = (future.result(30) for future in described.values())
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    configs = {name: entry.value for name, entry in entries.items() if entry.source == own}
    return len(client.list_topics(topic, 30).topics[topic].partitions), configs

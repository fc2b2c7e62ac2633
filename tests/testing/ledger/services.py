"""Services with aiokafka that keep their records, or lose and spoil them in one way each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from groupstorm.testing import Ledger

#: A service: the address of the brokers, the group.id, the topic, the name of the instance, the ledger.
Service = Callable[[str, str, str, str, Ledger], Any]

WORK_S = 0.3


def consumer_of(servers: str, group: str, topic: str, name: str, **options: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        client_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
        **options,
    )


async def careful(servers: str, group: str, topic: str, name: str, ledger: Ledger) -> None:
    """Processes a record, then commits it."""
    ledger.started(name)
    async with consumer_of(servers, group, topic, name) as consumer:
        async for record in consumer:
            with ledger.processing(record, by=name):
                await asyncio.sleep(WORK_S)
            await consumer.commit()


async def commits_late(servers: str, group: str, topic: str, name: str, ledger: Ledger) -> None:
    """Processes a record, takes its time, then commits it."""
    ledger.started(name)
    async with consumer_of(servers, group, topic, name) as consumer:
        async for record in consumer:
            with ledger.processing(record, by=name):
                await asyncio.sleep(WORK_S)
            await asyncio.sleep(WORK_S)
            await consumer.commit()


async def commits_first(servers: str, group: str, topic: str, name: str, ledger: Ledger) -> None:
    """Commits a record, then processes it: whoever dies in between has lost it."""
    ledger.started(name)
    async with consumer_of(servers, group, topic, name) as consumer:
        async for record in consumer:
            await consumer.commit()
            with ledger.processing(record, by=name):
                await asyncio.sleep(WORK_S)


async def goes_on(servers: str, group: str, topic: str, name: str, ledger: Ledger) -> None:
    """Works through a poll without asking whether the partitions are still its own, one record a second."""
    ledger.started(name)
    async with consumer_of(servers, group, topic, name) as consumer:
        while True:
            polled = await consumer.getmany(timeout_ms=1000, max_records=20)
            for partition, records in polled.items():
                for record in records:
                    with ledger.processing(record, by=name):
                        await asyncio.sleep(1)
                    await commit_if_possible(consumer, partition, record.offset + 1)


async def commit_if_possible(consumer: AIOKafkaConsumer, partition: TopicPartition, offset: int) -> None:
    """A member that was expelled cannot commit."""
    from aiokafka.errors import CommitFailedError, IllegalStateError

    try:
        await consumer.commit({partition: offset})
    except (CommitFailedError, IllegalStateError):
        return

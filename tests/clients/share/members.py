"""Share consumers for tests, their group's configuration, and waiting for records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.clients.share import ShareConsumer
from groupstorm.testing import Broker

PATIENCE_S = 30.0
#: Members join at once; locks may be as short as a second.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.record.lock.duration.ms": "1000",
}


class Members:
    """The members of one share group, which begins at the earliest record."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.group = broker.group("billing").id
        self._members: list[ShareConsumer] = []

    def configure(self, **options: str) -> None:
        """Options of the group, with underscores."""
        given = {name.replace("_", "."): value for name, value in options.items()}
        self.broker.group(self.group).configure({"share.auto.offset.reset": "earliest"} | given)

    def make(self, *topics: str, **options: Any) -> ShareConsumer:
        made = ShareConsumer(
            *(self.broker.topic(topic) for topic in topics or ("single",)),
            bootstrap_servers=self.broker.bootstrap_servers,
            group_id=self.group,
            **{"retry_backoff_ms": 10, "fetch_max_wait_ms": 100, **options},
        )
        self._members.append(made)
        return made

    async def start(self, *topics: str, **options: Any) -> ShareConsumer:
        made = self.make(*topics, **options)
        await made.start()
        return made

    async def explicit(self, *topics: str, **options: Any) -> ShareConsumer:
        return await self.start(*topics, share_acknowledgement_mode="explicit", **options)

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._members))


async def polled(consumer: ShareConsumer, **options: Any) -> list[ConsumerRecord]:
    """The records of the first poll that has some."""
    records = await consumer.poll(timeout_ms=round(PATIENCE_S * 1000), **options)
    assert records, f"no record within {PATIENCE_S} s"
    return records


async def read(
    consumer: ShareConsumer, enough: Callable[[list[ConsumerRecord]], bool], timeout_ms: int = 200
) -> list[ConsumerRecord]:
    """Poll until it is enough."""
    found: list[ConsumerRecord] = []
    ends_s = time.monotonic() + PATIENCE_S
    while not enough(found):
        assert time.monotonic() < ends_s, found
        found += await consumer.poll(timeout_ms)
    return found


def counts(records: Iterable[ConsumerRecord]) -> list[tuple[int, int | None]]:
    """Offset and delivery count of each record."""
    return [(record.offset, record.delivery_count) for record in records]

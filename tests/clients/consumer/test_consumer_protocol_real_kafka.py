"""The consumer on Kafka itself (a JVM process): alone in either protocol; with `group_protocol="consumer"`
beside Kafka's own consumer, and in a live migration."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from groupstorm.clients.consumer import CooperativeConsumer
from groupstorm.problems import InputError
from groupstorm.trace.events import member as events
from tests.clients.consumer.applications import (
    GROUP,
    TOPIC,
    ConsumerApplication,
    either_protocol,
    quick,
    until,
)
from tests.clients.consumer.test_real_kafka import PARTITIONS, Production, has_settled, kafka
from tests.needs import needed
from tests.oracle.build import build
from tests.oracle.member.members import JavaMember
from tests.oracle.member.situation import Act

pytestmark = pytest.mark.slow

NEW: dict[str, Any] = {"group_protocol": "consumer"}
OPTIONS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
}


def read_everything(applications: Sequence[ConsumerApplication], sent: int) -> bool:
    return sum(len(one.records) for one in applications) >= PARTITIONS * sent


def check_every_record_once(applications: Sequence[ConsumerApplication], sent: int) -> None:
    for number in range(PARTITIONS):
        read = sorted(offset for one in applications for offset in one.offsets.get(number, ()))
        assert read == list(range(sent)), number


@either_protocol
async def test_joins_handovers_static_restarts_and_removals(protocol: str) -> None:
    async with kafka(OPTIONS) as broker:
        everybody: list[ConsumerApplication] = []

        def start(name: str, **options: Any) -> ConsumerApplication:
            one = ConsumerApplication(broker.address, name, group_protocol=protocol, **options)
            everybody.append(one.start())
            return one

        first, second = start("a", group_instance_id="a"), start("b")
        await until(lambda: has_settled([first, second], 0))
        async with Production(broker.address).running() as production:
            await until(lambda: production.sent > 5)
            mine, generation, rounds = first.owned, second.generation, len(second.listener.calls)
            await first.stop()
            again = start("a", group_instance_id="a")
            await until(lambda: has_settled([again, second], 0))
            assert (again.owned, second.generation) == (mine, generation)
            assert len(second.listener.calls) == rounds
            third = start("c")
            await until(lambda: has_settled([again, second, third], 0))
            await third.stop()
            await until(lambda: has_settled([again, second], 0))
        await until(lambda: read_everything(everybody, production.sent))
        await second.stop()
        await again.stop(leave_group=True)
        assert not [event for one in everybody for event in one.of(events.PartitionsLost)]
        check_every_record_once(everybody, production.sent)


async def test_a_pattern_is_resolved_by_kafka() -> None:
    async with kafka(OPTIONS) as broker:
        consumer = CooperativeConsumer(
            bootstrap_servers=broker.address,
            group_id=GROUP,
            **quick(subscription_pattern=f"{TOPIC[:2]}.*", **NEW),
        )
        async with consumer:
            reading = asyncio.create_task(consumer.getmany(timeout_ms=20_000))
            await until(lambda: len(consumer.assignment) == PARTITIONS)
            reading.cancel()
            assert consumer.subscription == {TOPIC}


async def test_a_live_classic_group_is_upgraded_member_by_member_and_downgraded() -> None:
    async with kafka(OPTIONS) as broker:
        everybody: list[ConsumerApplication] = []

        def start(name: str, **options: Any) -> ConsumerApplication:
            everybody.append(ConsumerApplication(broker.address, name, **options).start())
            return everybody[-1]

        running = [start("a"), start("b")]
        await until(lambda: has_settled(running, 0))
        async with Production(broker.address).running() as production:
            for protocol in ("consumer", "classic"):
                for _ in range(2):
                    await running.pop(0).stop()
                    running.append(start(f"{protocol}-{len(everybody)}", group_protocol=protocol))
                    await until(lambda: has_settled(running, 0))
        await until(lambda: read_everything(everybody, production.sent))
        for one in running:
            await one.stop()
        check_every_record_once(everybody, production.sent)


async def test_kafkas_own_consumer_shares_the_group() -> None:
    with needed():
        built = await asyncio.to_thread(build)
    async with kafka(OPTIONS) as broker, JavaMember(built) as java:
        await java.start(
            broker.bootstrap[0],
            {
                "group.id": GROUP,
                "client.id": "java",
                "group.protocol": "consumer",
                "enable.auto.commit": "true",
                "auto.offset.reset": "earliest",
            },
            (TOPIC,),
        )
        ours = [ConsumerApplication(broker.address, name, **NEW).start() for name in ("a", "b", "c")]
        await until(lambda: has_settled(ours, 1))
        gone = ours.pop()
        await gone.stop()
        await until(lambda: has_settled(ours, 1))
        await java.act(Act.CLOSE)
        await java.ended()
        await until(lambda: has_settled(ours, 0))
        for one in ours:
            await one.stop()


async def test_a_broker_without_the_protocol_names_the_remedy() -> None:
    async with kafka({"group.coordinator.rebalance.protocols": "classic"}) as broker:
        consumer = CooperativeConsumer(
            TOPIC, bootstrap_servers=broker.address, group_id=GROUP, **quick(**NEW)
        )
        with pytest.raises(InputError, match=r"Kafka 4.0 or later.*set group.protocol=classic"):
            async with consumer:
                await consumer.getone()

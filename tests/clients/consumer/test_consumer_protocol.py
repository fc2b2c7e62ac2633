"""Consumers with `group_protocol="consumer"` (KIP-848) in groups of the emulator."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from itertools import product
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.clients.consumer import (
    ConsumerFailed,
    CooperativeConsumer,
    ListenerFailed,
    RebalanceListener,
    TopicPartition,
)
from groupstorm.trace.events import member as events
from tests.clients.consumer.applications import (
    GROUP,
    PARTITIONS,
    TOPIC,
    ConsumerApplication,
    is_shared_out,
    partitions,
    quick,
    shared_out,
    until,
)
from tests.clients.consumer.conftest import Produce, Start

ALL = partitions(*range(PARTITIONS))
NEW: dict[str, Any] = {"group_protocol": "consumer"}


@pytest.mark.slow
async def test_records_go_on_while_partitions_move(produce: Produce, start: Start) -> None:
    (first,) = await shared_out(start("a", **NEW))
    lasts = asyncio.Event()

    async def slow(method: str, _: set[TopicPartition]) -> None:
        if method == "revoked":
            await lasts.wait()

    first.listener.before_return = slow
    second = start("b", **NEW)
    await until(lambda: len(first.listener.calls) == 2)
    [_, (method, moved)] = first.listener.calls
    assert method == "revoked"
    kept = [partition.partition for partition in ALL - moved]
    await produce(5, *kept)
    await until(lambda: len(first.records) == 5 * len(kept))
    assert second.owned == set()
    lasts.set()
    await until(lambda: is_shared_out([first, second]))


async def test_offsets_are_committed_and_read_with_the_member_epoch(produce: Produce, start: Start) -> None:
    await produce(3)
    first = start("a", enable_auto_commit=False, **NEW)
    await until(lambda: len(first.records) == 3 * PARTITIONS)
    one = TopicPartition(TOPIC, 0)
    await first.consumer.commit()
    committed = (await first.consumer.committed(one))[one]
    assert committed is not None
    assert committed.offset == 3
    second = start("b", enable_auto_commit=False, **NEW)
    await until(lambda: is_shared_out([first, second]))
    assert second.records == []


async def test_a_pattern_subscribes_to_what_the_broker_finds(
    produce: Produce, broker: EmbeddedBroker
) -> None:
    await produce(2)
    await produce(2, 0, 1, topic="refunds")
    consumer = CooperativeConsumer(
        bootstrap_servers=broker.address,
        group_id=GROUP,
        **quick(subscription_pattern="(orders|refunds|none)", **NEW),
    )
    async with consumer:
        records = [await consumer.getone() for _ in range(2 * (PARTITIONS + 2))]
        assert len({(one.topic, one.partition, one.offset) for one in records}) == len(records)
        assert consumer.subscription == {"orders", "refunds"}


async def test_other_topics_and_another_listener(produce: Produce, start: Start) -> None:
    (only,) = await shared_out(start("a", **NEW))
    only.consumer.subscribe(["refunds"])
    await until(lambda: only.owned == partitions(0, 1, topic="refunds"))
    await produce(1, 0, 1, topic="refunds")
    await until(lambda: len(only.records) == 2)


async def test_a_live_classic_group_is_upgraded_member_by_member_and_downgraded(
    produce: Produce, start: Start
) -> None:
    """Each application closes its consumer and opens one of the other protocol: no record is read twice."""
    old, new = [start("a"), start("b")], []
    everybody: list[ConsumerApplication] = [*old]
    await until(lambda: is_shared_out(old))
    sent = 0

    def read() -> list[tuple[int, int]]:
        """Partition and offset of each record that an application got."""
        offsets = [each for one in everybody for each in one.offsets.items()]
        return sorted((number, offset) for number, of_one in offsets for offset in of_one)

    async def more() -> None:
        nonlocal sent
        await produce(3)
        sent += 3 * PARTITIONS
        await until(lambda: len(read()) >= sent)
        assert read() == sorted(product(range(PARTITIONS), range(sent // PARTITIONS)))

    await more()
    for name in ("c", "d"):
        await old.pop().stop()
        new.append(start(name, **NEW))
        everybody.append(new[-1])
        await until(lambda: is_shared_out([*old, *new]))
        await more()
    for name in ("e", "f"):
        old.append(start(name))
        everybody.append(old[-1])
        await until(lambda: is_shared_out([*old, *new]))
        await new.pop().stop()
        await until(lambda: is_shared_out([*old, *new]))
        await more()


class FailingListener(RebalanceListener):
    """Its first two calls raise."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", set(partitions)))
        if len(self.calls) <= 2:
            raise ValueError("not yet")

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", set(partitions)))


async def test_a_listener_that_raises_is_called_again_at_the_next_poll(
    produce: Produce, broker: EmbeddedBroker
) -> None:
    """As in Kafka's client: an assignment is not acknowledged until its listener has returned."""
    await produce(1, 0)
    listener = FailingListener()
    consumer = CooperativeConsumer(
        TOPIC, bootstrap_servers=broker.address, group_id=GROUP, listener=listener, **quick(**NEW)
    )
    async with consumer:
        for _ in range(2):
            with pytest.raises(ListenerFailed, match="not yet"):
                await consumer.getone()
        assert (await consumer.getone()).offset == 0
    assert listener.calls == [("assigned", ALL), ("assigned", set()), ("assigned", set()), ("revoked", ALL)]


async def test_a_fatal_error_is_raised_by_its_name(start: Start) -> None:
    only = start("a", group_remote_assignor="best", **NEW)
    await until(lambda: only.ended)
    with pytest.raises(ConsumerFailed, match="UNSUPPORTED_ASSIGNOR"):
        await only.stop()
    [failed] = only.of(events.MemberFailed)
    assert failed.error == "UNSUPPORTED_ASSIGNOR"

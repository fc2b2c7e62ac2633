"""The share consumer on a broker: what a group gets, again, never again, and when."""

from __future__ import annotations

import asyncio
import time

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer import ConsumerClosed, ConsumerRecord, PollInProgress
from groupstorm.clients.share import (
    AcknowledgementRefused,
    AcknowledgeType,
    ImplicitMode,
    NotAcknowledged,
    NotHeld,
    Woken,
)
from groupstorm.problems import InputError
from tests.clients.share.members import PATIENCE_S, Members, counts, polled, read


async def test_every_record_comes_once_and_counts_as_accepted(members: Members) -> None:
    members.broker.produce("orders", *map(str, range(40)))
    first, second = await members.start("orders"), await members.start("orders")
    found: list[ConsumerRecord] = []

    async def take(consumer: object) -> None:
        while len(found) < 40:
            found.extend(await consumer.poll(timeout_ms=100, max_records=5))  # type: ignore[attr-defined]

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(take(first), take(second))
    assert {record.delivery_count for record in found} == {1}
    assert sorted(int(record.value or b"") for record in found) == list(range(40))
    assert await first.commit_sync() is not None
    await first.close()
    await second.close()
    third = await members.start("orders")
    members.broker.produce("orders", "last")
    assert [record.value for record in await polled(third)] == [b"last"]


async def test_more_members_than_partitions_share_one_partition(members: Members) -> None:
    three = [await members.explicit(share_acquire_mode="record_limit", max_poll_records=1) for _ in range(3)]
    members.broker.produce("single", "a", "b", "c")
    found = [record for records in await asyncio.gather(*map(polled, three)) for record in records]
    assert sorted(counts(found)) == [(0, 1), (1, 1), (2, 1)]
    partition = TopicPartition(members.broker.topic("single"), 0)
    assert all(one.assignment == {partition} for one in three)


async def test_what_is_released_comes_again_and_what_is_rejected_does_not(members: Members) -> None:
    members.broker.produce("single", "a", "b", "c")
    consumer = await members.explicit()
    a, b, c = await polled(consumer)
    consumer.acknowledge(a)
    consumer.acknowledge(b, AcknowledgeType.RELEASE)
    consumer.acknowledge(c, AcknowledgeType.REJECT)
    (again,) = await polled(consumer)
    assert (again.offset, again.delivery_count) == (b.offset, 2)
    consumer.acknowledge(again)
    assert await consumer.commit_sync() == {again.topic_partition: None}
    members.broker.produce("single", "d")
    assert counts(await polled(consumer)) == [(3, 1)]


async def test_a_record_is_delivered_as_often_as_the_group_allows(members: Members) -> None:
    members.configure(share_delivery_count_limit="2")
    members.broker.produce("single", "poison", "fine")
    consumer = await members.explicit()
    deliveries = []
    for record in await polled(consumer):
        deliveries.append(record)
        kind = AcknowledgeType.RELEASE if record.value == b"poison" else AcknowledgeType.ACCEPT
        consumer.acknowledge(record, kind)
    for record in await polled(consumer):
        deliveries.append(record)
        consumer.acknowledge(record, AcknowledgeType.RELEASE)
    members.broker.produce("single", "next")
    deliveries += await polled(consumer)
    assert counts(deliveries) == [(0, 1), (1, 1), (0, 2), (2, 1)]


async def test_a_renewed_lock_holds_and_the_record_comes_back_to_its_member(members: Members) -> None:
    members.configure(share_record_lock_duration_ms="1000")
    members.broker.produce("single", "long work")
    worker = await members.explicit()
    (record,) = await polled(worker)
    assert worker.acquisition_lock_timeout_ms == 1_000
    other = await members.start()
    until_s = time.monotonic() + 3
    while time.monotonic() < until_s:
        worker.acknowledge(record, AcknowledgeType.RENEW)
        (record,) = await polled(worker)
        assert record.delivery_count == 1
        assert await other.poll(timeout_ms=200) == []
    worker.acknowledge(record)
    assert await worker.commit_sync() == {record.topic_partition: None}
    members.broker.produce("single", "next")
    assert counts(await polled(other)) == [(1, 1)]


async def test_the_records_of_a_member_that_closes_are_at_once_anothers(members: Members) -> None:
    members.configure(share_record_lock_duration_ms="60000")
    members.broker.produce("single", "a", "b")
    holder, other = await members.explicit(), await members.start()
    held = await polled(holder)
    holder.acknowledge(held[0])
    since_s = time.monotonic()
    await holder.close()
    assert counts(await polled(other)) == [(1, 2)]
    assert time.monotonic() - since_s < 30


async def test_the_records_of_a_member_that_hangs_are_anothers_after_the_lock(members: Members) -> None:
    members.configure(share_record_lock_duration_ms="2000")
    members.broker.produce("single", "a")
    hanging, other = await members.explicit(), await members.start()
    asked_s = time.monotonic()
    (record,) = await polled(hanging)
    assert counts(await polled(other)) == [(0, 2)]
    assert time.monotonic() - asked_s >= 2
    refused: list[tuple[frozenset[int], str | None]] = []
    hanging.set_acknowledgement_commit_callback(
        lambda _, offsets, error: refused.append((offsets, None if error is None else error.error))
    )
    hanging.acknowledge(record)
    (answer,) = (await hanging.commit_sync()).values()
    assert isinstance(answer, AcknowledgementRefused)
    assert answer.error == "INVALID_RECORD_STATE"
    assert refused == [(frozenset({0}), "INVALID_RECORD_STATE")]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("read_committed", [b"plain", b"committed", b"last"]),
        ("read_uncommitted", [b"plain", b"aborted", b"committed", b"last"]),
    ],
)
async def test_transactions(members: Members, level: str, expected: list[bytes]) -> None:
    """Markers come to nobody, and the group's isolation level says whether aborted records do."""
    from aiokafka import AIOKafkaProducer

    members.configure(share_isolation_level=level)
    members.broker.produce("single", "plain")
    topic = members.broker.topic("single")
    async with AIOKafkaProducer(
        bootstrap_servers=members.broker.bootstrap_servers, transactional_id=topic
    ) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"aborted")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"committed")
    members.broker.produce("single", "last")
    consumer = await members.start()
    found = await read(consumer, lambda records: any(record.value == b"last" for record in records))
    assert [record.value for record in found] == expected
    assert (await consumer.commit_sync()).keys() <= {found[0].topic_partition}
    members.broker.produce("single", "next")
    assert [record.value for record in await polled(consumer)] == [b"next"]


async def test_async_for_accepts_what_was_worked_on_and_releases_the_rest(members: Members) -> None:
    members.broker.produce("single", "a", "b", "c", "d")
    seen = []

    async def work() -> None:
        async with members.make() as consumer:
            async for record in consumer:
                seen.append(record)
                if record.value == b"c":
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    async with members.make() as consumer:
        seen += await read(consumer, lambda records: len(records) == 2)
    assert counts(seen) == [(0, 1), (1, 1), (2, 1), (2, 2), (3, 2)]
    async with members.make() as consumer:
        members.broker.produce("single", "e")
        assert counts(await polled(consumer)) == [(4, 1)]


async def test_errors_of_calls(members: Members) -> None:
    members.broker.produce("single", "a")
    consumer = members.make(share_acknowledgement_mode="explicit")
    with pytest.raises(ConsumerClosed):
        await consumer.poll()
    await consumer.start()
    waiting = asyncio.create_task(consumer.poll(timeout_ms=60_000, max_records=1))
    await asyncio.sleep(0)
    with pytest.raises(PollInProgress):
        await consumer.poll()
    (record,) = await waiting
    with pytest.raises(NotAcknowledged, match="single-0: offset 0"):
        await consumer.poll()
    consumer.acknowledge(record)
    assert await consumer.commit_sync() == {record.topic_partition: None}
    with pytest.raises(NotHeld):
        consumer.acknowledge(record)
    assert await consumer.commit_sync() == {}
    waiting = asyncio.create_task(consumer.poll(timeout_ms=60_000))
    await asyncio.sleep(0)
    consumer.wakeup()
    with pytest.raises(Woken):
        await waiting
    consumer.wakeup()
    with pytest.raises(Woken):
        await consumer.poll()
    assert await consumer.poll() == []
    with pytest.raises(InputError, match="max_records: 0"):
        await consumer.poll(max_records=0)
    implicit = await members.start()
    with pytest.raises(ImplicitMode):
        implicit.acknowledge(record)
    await implicit.close()
    with pytest.raises(ConsumerClosed):
        await implicit.commit_sync()


async def test_the_subscription_changes_and_ends(members: Members) -> None:
    consumer = await members.start("single")
    members.broker.produce("single", "a")
    await polled(consumer)
    members.broker.produce("orders", "b")
    consumer.subscribe([members.broker.topic("orders")])
    (record,) = await polled(consumer)
    assert record.topic == members.broker.topic("orders")
    assert consumer.subscription == {record.topic}
    await consumer.unsubscribe()
    assert await consumer.commit_sync() == {record.topic_partition: None}
    assert consumer.assignment == frozenset()
    with pytest.raises(InputError, match="not subscribed"):
        await consumer.poll()
    consumer.subscribe(members.broker.topic("single"))
    members.broker.produce("single", "c")
    assert counts(await polled(consumer)) == [(1, 1)]


async def test_a_member_that_does_not_poll_leaves_and_comes_back(members: Members) -> None:
    consumer = await members.start(max_poll_interval_ms=500)
    members.broker.produce("single", "a")
    await polled(consumer)
    group = members.broker.group("billing")
    await group.reaches("Empty", timeout_s=PATIENCE_S)
    members.broker.produce("single", "b")
    assert [record.value for record in await polled(consumer)][-1] == b"b"
    await group.stable(1, timeout_s=PATIENCE_S)


async def test_a_topic_may_come_later(members: Members) -> None:
    late = members.broker.topic("late")
    consumer = await members.start("late", metadata_max_age_ms=200)
    assert await consumer.poll() == []
    members.broker.create_topic("late")
    members.broker.produce("late", "a")
    assert [record.topic for record in await polled(consumer)] == [late]

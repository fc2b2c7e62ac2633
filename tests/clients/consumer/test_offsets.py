"""A consumer's positions: commits, restarts, seeks, pauses, the ends of a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.clients.consumer import (
    CommitFailed,
    CommittedOffset,
    ConsumerFailed,
    ConsumerRecord,
    CooperativeConsumer,
    NoOffsetForPartition,
    NotAssigned,
    OffsetOutOfRange,
    RebalanceListener,
    TopicPartition,
)
from groupstorm.clients.consumer.errors import ConsumerClosed
from groupstorm.trace.events.coordinator import MemberRemoved
from tests.clients.consumer.applications import (
    GROUP,
    PARTITIONS,
    PATIENCE_S,
    QUICK,
    TOPIC,
    is_shared_out,
    shared_out,
    until,
)
from tests.clients.consumer.conftest import Produce, Start

FIRST = TopicPartition(TOPIC, 0)

Open = Callable[..., CooperativeConsumer]


@pytest.fixture
def opened(broker: EmbeddedBroker) -> Open:
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")

    def make(**options: Any) -> CooperativeConsumer:
        return CooperativeConsumer(
            TOPIC, bootstrap_servers=[broker.address], group_id=GROUP, **{**QUICK, **options}
        )

    return make


async def committed(consumer: CooperativeConsumer, partition: TopicPartition = FIRST) -> int | None:
    found = (await consumer.committed(partition))[partition]
    return None if found is None else found.offset


async def test_the_next_consumer_begins_at_the_committed_offset(produce: Produce, opened: Open) -> None:
    await produce(10, 0)
    async with opened(enable_auto_commit=False) as consumer:
        for _ in range(4):
            record = await consumer.getone()
        assert await committed(consumer) is None
        await consumer.commit()
        assert await committed(consumer) == record.offset + 1 == 4
        await consumer.getone()
    async with opened(enable_auto_commit=False) as consumer:
        assert (await consumer.getone()).offset == 4
        await consumer.commit({FIRST: CommittedOffset(7, metadata="by hand"), TopicPartition(TOPIC, 1): 0})
        elsewhere = TopicPartition("refunds", 0)
        found = await consumer.committed(FIRST, elsewhere)
        assert found == {FIRST: CommittedOffset(7, -1, "by hand"), elsewhere: None}
    async with opened() as consumer:
        assert (await consumer.getone()).offset == 7


async def test_auto_commit_commits_processed_records_and_close_all_records_given_out(
    produce: Produce, opened: Open
) -> None:
    await produce(10, 0)
    async with opened(auto_commit_interval_ms=20) as consumer:
        for _ in range(3):
            await consumer.getone()
        await asyncio.sleep(0.1)  # several intervals, while it works on the third, which is not done
        assert (await committed(consumer) or 0) < 3
        await consumer.getone()
        async with asyncio.timeout(PATIENCE_S):
            while await committed(consumer) != 4:
                await consumer.getmany(TopicPartition(TOPIC, 1), timeout_ms=20)
        await consumer.getone()
    async with opened() as consumer:
        assert (await consumer.getone()).offset == 5


async def test_after_an_exception_the_last_record_is_read_again(produce: Produce, opened: Open) -> None:
    await produce(3, 0)

    async def read() -> None:
        async with opened() as consumer:
            async for record in consumer:
                _ = 1 // (1 - record.offset)

    with pytest.raises(ZeroDivisionError):
        await read()
    async with opened() as consumer:
        assert (await consumer.getone()).offset == 1


async def test_a_commit_in_a_round_waits_for_its_end(produce: Produce, start: Start) -> None:
    """During the round the coordinator would refuse it, but the member still owns the partitions."""
    (first,) = await shared_out(start("a", enable_auto_commit=False))

    async def commit(_: object) -> None:
        await first.consumer.commit()

    first.on_record = commit
    others, last = [], -1
    for name in ("b", "c", "d"):
        others.append(start(name, enable_auto_commit=False))
        async with asyncio.timeout(PATIENCE_S):
            while not is_shared_out([first, *others]):
                await produce(1)
                last += 1
    await until(lambda: all(last in first.offsets.get(one.partition, ()) for one in first.owned))
    for partition in first.owned:
        async with asyncio.timeout(PATIENCE_S):
            while await committed(first.consumer, partition) != last + 1:
                await asyncio.sleep(0.01)


async def test_a_listener_commits_revoked_partitions(produce: Produce, start: Start) -> None:
    first = start("a", enable_auto_commit=False)

    async def commit(method: str, going: set[TopicPartition]) -> None:
        if method == "revoked":
            await first.consumer.commit({one: await first.consumer.position(one) for one in going})

    first.listener.before_return = commit
    await produce(3)
    await until(lambda: len(first.records) == 3 * PARTITIONS)
    second = start("b", enable_auto_commit=False)
    await until(lambda: is_shared_out([first, second]))
    await produce(1)
    await until(lambda: len(second.records) == 3)
    assert all(record.offset == 3 for record in second.records)
    await until(lambda: len(first.records) == 3 * PARTITIONS + 3)
    await first.stop()  # raises what the listener raises: at the end it may commit as well
    await until(lambda: is_shared_out([second]))
    await produce(1)
    await until(lambda: len(second.records) == 3 + PARTITIONS)
    assert {record.offset for record in second.records} == {3, 4}


async def test_seek_and_the_ends_of_the_log(produce: Produce, opened: Open) -> None:
    await produce(10, 0)
    async with opened() as consumer:
        assert (await consumer.getone()).offset == 0
        consumer.seek(FIRST, 8)
        assert await consumer.position(FIRST) == 8
        assert [(await consumer.getone()).offset for _ in range(2)] == [8, 9]
        await consumer.seek_to_beginning(FIRST)
        record = await consumer.getone()
        assert record.offset == 0
        await consumer.seek_to_end()
        assert await consumer.position(FIRST) == 10
        found = await consumer.offsets_for_times({FIRST: record.timestamp, TopicPartition(TOPIC, 1): 0})
        assert found[FIRST].offset == 0
        assert found[TopicPartition(TOPIC, 1)].offset == -1
        with pytest.raises(NotAssigned):
            consumer.seek(TopicPartition("elsewhere", 0), 0)


async def test_a_seek_in_the_listener_sets_the_first_offset(produce: Produce, broker: EmbeddedBroker) -> None:
    class FromTheFifth(RebalanceListener):
        def on_partitions_assigned(self, partitions: Any) -> None:
            for partition in partitions:
                consumer.seek(partition, 5)

    await produce(10)
    consumer = CooperativeConsumer(
        TOPIC, bootstrap_servers=broker.address, group_id=GROUP, listener=FromTheFifth(), **QUICK
    )
    async with consumer:
        records = [await consumer.getone() for _ in range(5 * PARTITIONS)]
    assert {record.offset for record in records} == set(range(5, 10))


async def test_a_paused_partition_keeps_its_records_and_its_owner(produce: Produce, opened: Open) -> None:
    await produce(3)
    async with opened() as consumer:
        await until(lambda: FIRST in consumer.assignment)
        consumer.pause(FIRST)
        assert consumer.paused == {FIRST}
        records = [await consumer.getone() for _ in range(3 * (PARTITIONS - 1))]
        assert FIRST not in {record.topic_partition for record in records}
        assert await consumer.getmany(timeout_ms=100) == {}
        assert FIRST in consumer.assignment
        consumer.resume(FIRST)
        batch = await consumer.getmany(timeout_ms=60_000)
        assert [record.offset for record in batch[FIRST]] == [0, 1, 2]


async def test_getmany_returns_at_most_max_records(produce: Produce, opened: Open) -> None:
    await produce(10)
    async with opened(max_poll_records=7) as consumer:
        seen: list[ConsumerRecord] = []
        while len(seen) < 10 * PARTITIONS:
            batch = await consumer.getmany(timeout_ms=60_000)
            taken = [record for records in batch.values() for record in records]
            assert 0 < len(taken) <= 7
            seen += taken
        assert len({(record.partition, record.offset) for record in seen}) == 10 * PARTITIONS
        await consumer.seek_to_beginning()
        assert sum(map(len, (await consumer.getmany(timeout_ms=60_000, max_records=2)).values())) == 2


async def test_without_auto_offset_reset_the_application_seeks(produce: Produce, opened: Open) -> None:
    await produce(3)
    async with opened(auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffsetForPartition) as missing:
            await consumer.getone()
        assert len(missing.value.partitions) == PARTITIONS
        for partition in missing.value.partitions:
            consumer.seek(partition, 1)
        assert (await consumer.getone()).offset == 1
        consumer.seek(FIRST, 100)
        consumer.pause(*consumer.assignment - {FIRST})
        with pytest.raises(OffsetOutOfRange) as outside:
            await consumer.getone()
        assert (outside.value.partition, outside.value.offset) == (FIRST, 100)


async def test_a_position_outside_the_log_is_reset(produce: Produce, opened: Open) -> None:
    await produce(3, 0)
    async with opened(auto_offset_reset="earliest") as consumer:
        await until(lambda: FIRST in consumer.assignment)
        consumer.seek(FIRST, 100)
        assert (await consumer.getone()).offset == 0


async def test_latest_begins_at_the_end_of_the_log(produce: Produce, opened: Open) -> None:
    await produce(3, 0)
    async with opened(auto_offset_reset="latest") as consumer:
        await until(lambda: FIRST in consumer.assignment)
        assert await consumer.position(FIRST) == 3
        await produce(1, 0)
        assert (await consumer.getone()).offset == 3


async def test_a_commit_of_a_removed_member_fails(
    produce: Produce, opened: Open, broker: EmbeddedBroker
) -> None:
    await produce(1, 0)
    async with opened(max_poll_interval_ms=100) as consumer:
        await consumer.getone()
        await until(lambda: any(isinstance(event, MemberRemoved) for _, event in broker.events))
        with pytest.raises(CommitFailed):
            await consumer.commit()
    with pytest.raises(ConsumerClosed):
        await consumer.commit()


async def test_a_commit_of_a_fenced_member_is_a_fatal_error(produce: Produce, start: Start) -> None:
    (first,) = await shared_out(
        start("a", group_instance_id="i", heartbeat_interval_ms=1_500, enable_auto_commit=False)
    )
    await shared_out(start("b", group_instance_id="i"))
    with pytest.raises(ConsumerFailed, match="FENCED_INSTANCE_ID"):
        await first.consumer.commit({FIRST: 0})

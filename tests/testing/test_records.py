"""Records that tests produce and read, and how far a group is behind, on both kinds of brokers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.testing import Broker, GroupTimeout
from groupstorm.testing.groups import LogEnds, Progress
from groupstorm.testing.real import RealBroker
from tests.testing.kinds import EMULATED, opened
from tests.testing.members import AT_ONCE
from tests.waiting import PATIENCE_S, wait_until

aiokafka = pytest.importorskip("aiokafka", reason="pip install 'groupstorm[kafka]'")


@pytest.fixture(params=EMULATED)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with opened(request.param, {"orders": 2}, AT_ONCE) as running:
        yield running


def shown(broker: Broker, partition: int | None = None) -> list[tuple[int, int, bytes | None, bytes | None]]:
    found = broker.records("orders", partition)
    return [(one.partition, one.offset, one.key, one.value) for one in found]


def test_records_without_key_go_to_the_partitions_in_turn(broker: Broker) -> None:
    orders = broker.topic("orders")
    places = broker.produce("orders", "a", b"b", None)
    assert places == ((orders, 0, 0), (orders, 1, 0), (orders, 0, 1))
    assert broker.produce("orders", "d")[0] == (orders, 1, 1)
    assert shown(broker) == [
        (0, 0, None, b"a"),
        (0, 1, None, None),
        (1, 0, None, b"b"),
        (1, 1, None, b"d"),
    ]
    assert shown(broker, 1) == [(1, 0, None, b"b"), (1, 1, None, b"d")]
    assert broker.produce("orders") == ()


def test_a_key_a_partition_and_headers(broker: Broker) -> None:
    broker.produce("orders", "x", partition=1, headers={"trace": "7", "empty": None})
    (record,) = broker.records("orders")
    assert (record.partition, record.headers) == (1, (("trace", b"7"), ("empty", None)))
    places = {broker.produce("orders", "y", key=key)[0].partition for key in ["one"] * 3}
    assert len(places) == 1, "the same key, the same partition"


async def test_a_key_chooses_the_partition_that_a_client_chooses(broker: Broker) -> None:
    keys = [f"customer-{number}" for number in range(20)]
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    await producer.start()
    try:
        theirs = [
            (await producer.send_and_wait(broker.topic("orders"), b"", key=key.encode())).partition
            for key in keys
        ]
    finally:
        await producer.stop()
    assert [broker.produce("orders", "", key=key)[0].partition for key in keys] == theirs
    assert set(theirs) == {0, 1}


def test_a_leader_that_does_not_know_itself_yet_is_asked_again() -> None:
    with (
        groupstorm.broker(settings=AT_ONCE) as cluster,
        RealBroker(read_kind(cluster.bootstrap_servers), {"orders": 1}, allow_writes=True) as broker,
    ):
        fault = cluster.fail("Produce", "NOT_LEADER_OR_FOLLOWER", count=2)
        assert [place.offset for place in broker.produce("orders", "a")] == [0]
        assert fault.hits == 2


def test_many_records_take_several_batches(broker: Broker) -> None:
    values = [f"{number:04d}" * 25_000 for number in range(30)]
    places = broker.produce("orders", *values, partition=0)
    assert [place.offset for place in places] == [*range(30)]
    assert [one.value for one in broker.records("orders")] == [value.encode() for value in values]


async def test_records_of_transactions_that_are_open_or_aborted(broker: Broker) -> None:
    orders = broker.topic("orders")
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t")
    await producer.start()
    try:
        for value, is_kept in ((b"aborted", False), (b"kept", True)):
            await producer.begin_transaction()
            await producer.send_and_wait(orders, value, partition=0)
            await (producer.commit_transaction() if is_kept else producer.abort_transaction())
        await producer.begin_transaction()
        await producer.send_and_wait(orders, b"open", partition=0)
        written = [one.value for one in broker.records("orders")]
        committed = [one.value for one in broker.records("orders", committed_only=True)]
        await producer.abort_transaction()
    finally:
        await producer.stop()
    assert written == [b"aborted", b"kept", b"open"]
    assert committed == [b"kept"]


async def test_a_group_is_waited_for_until_it_has_committed_everything(broker: Broker) -> None:
    group, orders = broker.group("billing"), broker.topic("orders")
    broker.produce("orders", "a", "b", "c")
    assert (group.lag(), group.committed()) == ({}, {})
    consumer = aiokafka.AIOKafkaConsumer(
        orders,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group.id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        assert group.lag() == {f"{orders}-0": None, f"{orders}-1": None}
        with pytest.raises(GroupTimeout) as late:
            await group.caught_up(timeout_s=0)
        assert str(late.value).splitlines()[:3] == [
            f"group {group.id} had not committed the end of {orders} within 0 s",
            f"  {orders}-0: 2 records left",
            f"  {orders}-1: 1 record left",
        ]
        read = 0
        while read < 3:
            read += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        await consumer.commit()
        await group.caught_up("orders")
        group.wait_caught_up()
        assert group.lag() == {f"{orders}-0": 0, f"{orders}-1": 0}
        assert group.committed() == {f"{orders}-0": 2, f"{orders}-1": 1}
        broker.produce("orders", "d", partition=1)
        assert (group.committed("orders", 1), group.lag()[f"{orders}-1"]) == (1, 1)
    finally:
        await consumer.stop()


async def test_offsets_that_a_transaction_commits_end_the_wait(broker: Broker) -> None:
    group, orders = broker.group("billing"), broker.topic("orders")
    broker.produce("orders", "a", partition=0)
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t")
    await producer.start()
    try:
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({aiokafka.TopicPartition(orders, 0): 1}, group.id)
        waiting = asyncio.create_task(group.caught_up("orders"))
        await asyncio.sleep(0)
        await producer.commit_transaction()
        await waiting
    finally:
        await producer.stop()


def test_a_condition_of_ones_own_asks_the_group_and_the_broker(broker: Broker) -> None:
    """The thread that looks at it answers the questions of everybody else."""
    group = broker.group("billing")
    with pytest.raises(GroupTimeout, match="was not done within"):
        group.wait_until(lambda _: group.committed("orders", 0) == 1, "done", timeout_s=0.1)
    later = threading.Timer(0.1, broker.produce, ("orders", "a"))
    later.start()
    group.wait_until(lambda _: len(broker.records("orders")) == 1, timeout_s=PATIENCE_S)
    later.join()


def test_a_test_ends_the_broker_itself(broker: Broker) -> None:
    """The fixture, or `with`, then finds it ended."""
    broker.stop()


def test_what_tests_produce_ages_before_a_client_comes() -> None:
    options = {"log.retention.ms": 1, "log.retention.check.interval.ms": 1}
    with groupstorm.broker({"orders": 1}, options) as broker:
        broker.produce("orders", "a")
        wait_until(lambda: not broker.records("orders"))


async def test_a_consumer_that_waits_gets_what_a_test_produces() -> None:
    """A fetch that is parked is answered, and no fault meets the records of the test."""
    async with groupstorm.broker({"orders": 1}) as broker:
        broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, fetch_max_wait_ms=60_000, request_timeout_ms=90_000
        )
        await consumer.start()
        try:
            fetched = broker.delay("Fetch", 0)
            consumer.assign([aiokafka.TopicPartition("orders", 0)])
            await consumer.seek_to_beginning()
            waiting = asyncio.create_task(consumer.getone())
            await fetched.used_up()
            broker.produce("orders", "now")
            async with asyncio.timeout(30):
                assert (await waiting).value == b"now"
        finally:
            await consumer.stop()


def test_a_group_that_has_nothing_is_not_caught_up() -> None:
    with groupstorm.broker({"orders": 1}) as broker:
        with pytest.raises(GroupTimeout, match="had not committed the end of any topic within 0 s"):
            broker.group("nobody").wait_caught_up(timeout_s=0)
        broker.group("nobody").wait_caught_up("orders", timeout_s=0)  # there is nothing to commit
        with pytest.raises(GroupTimeout, match="\n  order: there is no such topic\n"):
            broker.group("nobody").wait_caught_up("orders", "order", timeout_s=0)


def test_lag_counts_from_the_committed_offset_or_from_the_beginning() -> None:
    ends = {"a-1": LogEnds(5, 9), "a-0": LogEnds(0, 4), "a-10": LogEnds(0, 0), "b-0": LogEnds(0, 7)}
    progress = Progress(ends, {"a-0": 3, "gone-0": 1}, ["a-1", "a-10"])
    assert list(progress.lag().items()) == [("a-0", 1), ("a-1", None), ("a-10", None)]
    assert list(progress.behind(["a"]).items()) == [("a-0", 1), ("a-1", 4)]
    assert progress.topics == ("a", "gone")


def test_deleted_records_are_not_left() -> None:
    """Kafka's lag counts them, because the offset was committed before the log's beginning."""
    progress = Progress({"a-0": LogEnds(8, 8), "a-1": LogEnds(5, 9)}, {"a-0": 2, "a-1": 3}, [])
    assert progress.lag() == {"a-0": 6, "a-1": 6}
    assert progress.behind(["a"]) == {"a-1": 4}

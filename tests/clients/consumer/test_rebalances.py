"""Consumers of one group on the emulator: the partitions that a rebalance revokes, adds and keeps."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.requests import Peer
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer import CommitFailed, TopicPartition
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import peek
from groupstorm.trace.events import member as events
from tests.clients.consumer.applications import (
    GROUP,
    PARTITIONS,
    QUICK,
    TOPIC,
    either_protocol,
    is_shared_out,
    partitions,
    shared_out,
    until,
)
from tests.clients.consumer.conftest import Produce, Start

HEARTBEAT_KEY = 12


@pytest.fixture
async def slow_member(broker: EmbeddedBroker) -> AsyncIterator[WireConsumer]:
    """A member that can be paused, so that a round lasts until it resumes."""
    config = ConsumerConfig(
        GROUP,
        "slow",
        (TOPIC,),
        partition_assignment_strategy=("cooperative-sticky",),
        heartbeat_interval_ms=30,
        session_timeout_ms=20_000,
    )
    member = WireConsumer(config, [Endpoint(broker.host, broker.port)], lambda *_: None)
    life = asyncio.create_task(member.run())
    yield member
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)


async def test_one_member_reads_everything_in_order(produce: Produce, start: Start) -> None:
    await produce(50)
    only = start("a")
    await until(lambda: len(only.records) == 50 * PARTITIONS)
    assert only.offsets == {number: list(range(50)) for number in range(PARTITIONS)}
    assert {record.value for record in only.records} == {str(value).encode() for value in range(50)}
    assert only.listener.calls == [("assigned", partitions(*range(PARTITIONS)))]


@either_protocol
async def test_a_second_member_gets_half_and_the_other_half_is_not_interrupted(
    produce: Produce, start: Start, protocol: str
) -> None:
    (first,) = await shared_out(start("a", group_protocol=protocol))
    await produce(5)
    await until(lambda: len(first.records) == 5 * PARTITIONS)
    second = start("b", group_protocol=protocol)
    await until(lambda: is_shared_out([first, second]))
    kept, moved = first.owned, second.owned
    assert first.listener.changes == [("assigned", kept | moved), ("revoked", moved)]
    assert second.listener.changes == [("assigned", moved)]
    await produce(5)
    await until(lambda: len(first.records) + len(second.records) == 10 * PARTITIONS)
    for partition in kept:
        assert first.offsets[partition.partition] == list(range(10))
    for partition in moved:  # auto-commit: the new owner continues at the old owner's position
        assert first.offsets[partition.partition] == list(range(5))
        assert second.offsets[partition.partition] == list(range(5, 10))


async def test_records_go_on_during_a_round(
    produce: Produce, start: Start, slow_member: WireConsumer
) -> None:
    first = start("a")
    await until(lambda: is_shared_out([first], PARTITIONS // 2) and len(slow_member.membership.owned) == 3)
    mine = [partition.partition for partition in first.owned]
    slow_member.pause()
    second = start("b")
    await until(lambda: first.generation is None)
    calls = len(first.listener.calls)
    for batch in range(1, 6):
        await produce(10, *mine)
        await until(lambda many=batch: len(first.records) == many * 10 * len(mine))  # type: ignore[misc]
        assert first.generation is None
    assert len(first.listener.calls) == calls
    slow_member.resume()
    await until(lambda: first.generation == second.generation and len(first.owned) == len(second.owned) == 2)
    stayed = {partition.partition for partition in first.owned}
    (moved,) = set(mine) - stayed
    await produce(10, *mine)
    await until(lambda: all(len(first.offsets[number]) == 60 for number in stayed))
    await until(lambda: len(second.offsets.get(moved, ())) == 10)
    assert all(first.offsets[number] == list(range(60)) for number in stayed)
    assert second.offsets[moved] == list(range(50, 60))  # also what was read in the round is committed


async def test_records_go_on_while_the_listener_works(
    broker: EmbeddedBroker, produce: Produce, start: Start
) -> None:
    """Heartbeats go on too: the listener works for longer than the session timeout."""
    heartbeats: Counter[int] = Counter()  # of each connection

    def note(connection: int, _peer: Peer, frame: bytes) -> bool:
        if peek(frame)[0] == HEARTBEAT_KEY:
            heartbeats[connection] += 1
        return False

    (first,) = await shared_out(start("a", session_timeout_ms=1_000))
    works, goes_on = asyncio.Event(), asyncio.Event()

    async def work(method: str, _: set[TopicPartition]) -> None:
        if method == "revoked":
            works.set()
            await goes_on.wait()

    first.listener.before_return = work
    second = start("b")
    await until(works.is_set)
    _, leaving = first.listener.changes[-1]
    staying = partitions(*range(PARTITIONS)) - leaving
    await produce(20)
    await until(lambda: len(first.records) == 20 * len(staying))
    broker.server.intercept = note
    enough = 1.2 * 1_000 / QUICK["heartbeat_interval_ms"]
    await until(lambda: len(heartbeats) == 2 and min(heartbeats.values()) > enough)
    assert {record.topic_partition for record in first.records} == staying
    assert first.consumer.assignment == staying | leaving
    assert second.owned == set()
    goes_on.set()
    await until(lambda: is_shared_out([first, second]))
    revoked = first.of(events.PartitionsRevoked)[-1]
    assert revoked.duration_us >= 1_000_000
    assert first.of(events.PartitionsLost) == []
    times = [time_us for time_us, _ in first.emitted]
    assert times == sorted(times)


async def test_partitions_are_taken_only_between_two_records(produce: Produce, start: Start) -> None:
    """The application still owns the record that it processes; the consumer commits it, then revokes."""
    first = start("a")
    busy, done = asyncio.Event(), asyncio.Event()

    async def work(_: object) -> None:
        busy.set()
        await done.wait()

    first.on_record = work
    await produce(1, 3)
    await until(busy.is_set)
    first.on_record = None
    second = start("b")
    await until(lambda: any(one.cause == "group-rebalancing" for one in first.of(events.RejoinRequested)))
    assert [method for method, _ in first.listener.changes] == ["assigned"]
    assert first.owned == partitions(*range(PARTITIONS))
    done.set()
    await until(lambda: is_shared_out([first, second]))
    assert len(first.records) == 1
    assert second.records == []  # the new owner of partition 3, if it moved, begins behind it
    committed = await first.consumer.committed(TopicPartition(TOPIC, 3))
    assert [offset and offset.offset for offset in committed.values()] == [1]


@either_protocol
async def test_a_closing_member_hands_its_partitions_over(
    produce: Produce, start: Start, protocol: str
) -> None:
    first, second = (start(name, group_protocol=protocol) for name in ("a", "b"))
    await until(lambda: is_shared_out([first, second]))
    kept, moved = first.owned, second.owned
    await produce(5)
    await until(lambda: len(first.records) + len(second.records) == 5 * PARTITIONS)
    await second.stop()
    await until(lambda: is_shared_out([first]))
    await produce(5)
    await until(lambda: len(first.records) == 5 * len(kept) + 5 * PARTITIONS)
    assert ("revoked", moved) in second.listener.calls
    assert first.listener.changes[-1] == ("assigned", moved)
    assert isinstance(second.emitted[-1][1], events.MemberClosed)
    for partition in moved:
        assert first.offsets[partition.partition][-5:] == list(range(5, 10))


@either_protocol
async def test_a_member_that_does_not_poll_loses_its_partitions(
    produce: Produce, start: Start, protocol: str
) -> None:
    """max.poll.interval.ms; the member rejoins when it polls again."""
    stuck = start("a", max_poll_interval_ms=300, group_protocol=protocol)
    well = start("b", group_protocol=protocol)
    await until(lambda: is_shared_out([stuck, well]))
    mine = stuck.owned
    goes_on = asyncio.Event()

    async def work(_: object) -> None:
        await goes_on.wait()

    stuck.on_record = work
    await produce(1, min(mine).partition)
    await until(lambda: is_shared_out([well]))
    assert stuck.of(events.RejoinRequested)[-1].cause == "poll-timeout"
    assert ("lost", mine) not in stuck.listener.calls
    with pytest.raises(CommitFailed):
        await stuck.consumer.commit()
    goes_on.set()
    await until(lambda: is_shared_out([stuck, well]))
    assert ("lost", mine) in stuck.listener.calls


async def test_another_subscription_touches_only_the_topics_that_differ(
    produce: Produce, start: Start
) -> None:
    (only,) = await shared_out(start("a", topics=(TOPIC,)))
    only.consumer.subscribe([TOPIC, "refunds"])
    await until(lambda: is_shared_out([only], PARTITIONS + 2))
    assert only.listener.changes[1:] == [("assigned", partitions(0, 1, topic="refunds"))]
    only.consumer.subscribe(["refunds"])
    await until(lambda: is_shared_out([only], 2))
    assert only.listener.changes[2:] == [("revoked", partitions(*range(PARTITIONS)))]
    await produce(3, 0, 1, topic="refunds")
    await until(lambda: len(only.records) == 6)
    causes = [event.cause for event in only.of(events.RejoinRequested)]
    assert causes.count("subscription-changed") == 2


async def test_from_eager_to_cooperative_in_two_rolling_restarts(produce: Produce, start: Start) -> None:
    """KIP-429: first every member gets cooperative-sticky beside range, then range is removed."""
    both = {"partition_assignment_strategy": ("range", "cooperative-sticky")}
    group = [start(name, **both) for name in ("a", "b")]
    await until(lambda: is_shared_out(group))
    assert {event.protocol for one in group for event in one.of(events.AssignmentComputed)} == {"range"}
    for index, name in enumerate(("a", "b")):
        await group[index].stop()
        group[index] = start(name, partition_assignment_strategy=("cooperative-sticky",))
        await until(lambda: is_shared_out(group))
    protocols = {event.protocol for one in group for event in one.of(events.AssignmentComputed)}
    assert "cooperative-sticky" in protocols
    third = start("c")
    await until(lambda: is_shared_out([*group, third]))
    await produce(4)
    await until(lambda: sum(len(one.records) for one in (*group, third)) == 4 * PARTITIONS)
    for one in group:  # only what has moved was revoked
        method, gone = one.listener.changes[-1]
        assert (method, len(gone)) == ("revoked", 1)


async def test_an_eager_member_gives_all_partitions_up(start: Start) -> None:
    eager = {"partition_assignment_strategy": ("range",)}
    (first,) = await shared_out(start("a", **eager))
    second = start("b", **eager)
    await until(lambda: is_shared_out([first, second]))
    everything = partitions(*range(PARTITIONS))
    assert first.listener.changes == [
        ("assigned", everything),
        ("revoked", everything),
        ("assigned", partitions(0, 1, 2)),
    ]

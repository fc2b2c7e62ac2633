"""The end of consumers: their errors, and their group afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.clients.consumer import (
    ConsumerClosed,
    ConsumerFailed,
    CooperativeConsumer,
    ListenerFailed,
    PollInProgress,
    RebalanceListener,
    TopicPartition,
)
from groupstorm.problems import InputError
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import JsonLinesWriter
from tests.clients.consumer.applications import (
    GROUP,
    PARTITIONS,
    PATIENCE_S,
    QUICK,
    TOPIC,
    ConsumerApplication,
    either_protocol,
    is_shared_out,
    partitions,
    shared_out,
    until,
)
from tests.clients.consumer.conftest import Produce, Start
from tests.command import groupstorm


def removals(broker: EmbeddedBroker) -> list[str]:
    return [event.cause for _, event in broker.events if isinstance(event, coordinator_events.MemberRemoved)]


@either_protocol
async def test_a_static_member_returns_to_its_partitions_without_a_rebalance(
    start: Start, broker: EmbeddedBroker, protocol: str
) -> None:
    group = [start(name, group_instance_id=name, group_protocol=protocol) for name in ("a", "b")]
    await until(lambda: is_shared_out(group) and group[0].generation is not None)
    generation, mine = group[0].generation, group[1].owned
    rounds = len(group[0].listener.calls)
    await group[1].stop()
    assert group[1].emitted[-1][1].cause == "silent"  # type: ignore[union-attr]
    group[1] = start("b", group_instance_id="b", group_protocol=protocol)
    await until(lambda: is_shared_out(group))
    assert group[1].owned == mine
    assert group[0].generation == generation
    assert len(group[0].listener.calls) == rounds
    assert "left" not in removals(broker)


@either_protocol
@pytest.mark.parametrize(
    ("instance", "asked", "leaves"),
    [(None, None, True), ("i", None, False), (None, False, False), ("i", True, True)],
)
async def test_dynamic_members_leave_on_close_and_static_members_stay(
    start: Start,
    broker: EmbeddedBroker,
    instance: str | None,
    asked: bool | None,
    leaves: bool,
    protocol: str,
) -> None:
    """KIP-1092: leave_group_on_close and close(leave_group=...)."""
    (only,) = await shared_out(start("a", group_instance_id=instance, group_protocol=protocol))
    await only.stop(leave_group=asked)
    assert only.listener.changes == [
        ("assigned", partitions(*range(PARTITIONS))),
        ("revoked", partitions(*range(PARTITIONS))),
    ]
    assert removals(broker) == (["left"] if leaves else [])
    assert only.emitted[-1][1].cause == ("left" if leaves else "silent")  # type: ignore[union-attr]


async def test_closing_ends_the_loop_of_another_task(start: Start) -> None:
    (only,) = await shared_out(start("a"))
    await only.consumer.close()
    await only.stop()  # the reading task has ended, and not with an exception
    with pytest.raises(ConsumerClosed):
        await only.consumer.getone()
    await only.consumer.close()
    with pytest.raises(ConsumerClosed):
        await only.consumer.start()


async def test_close_waits_for_a_call_of_the_listener_that_has_just_begun(start: Start) -> None:
    only, works = start("a"), asyncio.Event()
    closing: list[asyncio.Task[None]] = []
    steps: list[str] = []

    async def close_meanwhile(method: str, _: set[TopicPartition]) -> None:
        steps.append(f"{method} begins")
        if method == "assigned":
            closing.append(asyncio.create_task(only.consumer.close()))
            asyncio.get_running_loop().call_later(0.05, works.set)
            await works.wait()
        steps.append(f"{method} ends")

    only.listener.before_return = close_meanwhile
    await until(lambda: only.ended)
    assert steps == ["assigned begins", "assigned ends", "revoked begins", "revoked ends"]


async def test_a_cancelled_close_still_closes_the_consumer(start: Start, broker: EmbeddedBroker) -> None:
    (only,) = await shared_out(start("a", session_timeout_ms=10_000))
    closing = asyncio.create_task(only.consumer.close())
    await asyncio.sleep(0)
    closing.cancel()
    await until(lambda: only.ended)  # its `async with` has waited for the end
    assert isinstance(only.emitted[-1][1], events.MemberClosed)
    assert removals(broker) == ["left"]


async def test_a_fenced_member_fails_and_has_lost_everything(start: Start) -> None:
    (first,) = await shared_out(start("a", group_instance_id="i"))
    second = start("b", group_instance_id="i")
    await until(lambda: first.ended)
    assert first.listener.calls[-1] == ("lost", partitions(*range(PARTITIONS)))
    with pytest.raises(ConsumerFailed, match="FENCED_INSTANCE_ID") as failed:
        await first.stop()
    assert failed.value.error == "FENCED_INSTANCE_ID"
    assert len(first.of(events.MemberFailed)) == 1
    await until(lambda: is_shared_out([second]))


async def test_an_exception_of_the_listener_is_raised_by_the_next_poll(
    produce: Produce, broker: EmbeddedBroker
) -> None:
    application = ConsumerApplication(broker.address, "a")

    async def fail(method: str, _: set[TopicPartition]) -> None:
        raise LookupError(method)

    application.listener.before_return = fail
    await produce(1)
    async with application.consumer as consumer:
        with pytest.raises(ListenerFailed, match="assigned") as failed:
            await consumer.getone()
        assert isinstance(failed.value.__cause__, LookupError)
        assert (await consumer.getone()).offset == 0  # the membership goes on
        with pytest.raises(ListenerFailed, match="revoked"):
            await consumer.close()


async def test_two_tasks_cannot_ask_for_records_at_once(start: Start) -> None:
    (only,) = await shared_out(start("a"))
    with pytest.raises(PollInProgress):
        await only.consumer.getone()


async def test_an_interrupted_wait_loses_no_record(produce: Produce, broker: EmbeddedBroker) -> None:
    consumer = CooperativeConsumer(TOPIC, bootstrap_servers=broker.address, group_id=GROUP, **QUICK)
    offsets: dict[int, list[int]] = {}
    async with consumer:
        await produce(200, 0)
        async with asyncio.timeout(PATIENCE_S):
            while len(offsets.get(0, ())) < 200:
                try:
                    async with asyncio.timeout(0.001):
                        record = await consumer.getone()
                except TimeoutError:
                    continue
                offsets.setdefault(record.partition, []).append(record.offset)
    assert offsets == {0: list(range(200))}


async def test_an_unopened_consumer_raises(broker: EmbeddedBroker) -> None:
    consumer = CooperativeConsumer(bootstrap_servers=broker.address, group_id=GROUP)
    with pytest.raises(ConsumerClosed):
        await consumer.getone()
    with pytest.raises(ConsumerClosed):
        async for _ in consumer:
            pass
    with pytest.raises(InputError, match="topics"):
        await consumer.start()
    consumer.subscribe(TOPIC)
    assert consumer.subscription == {TOPIC}
    await consumer.close()


async def test_a_listener_that_knows_no_lost_partitions_hears_of_them_as_revoked_ones() -> None:
    revoked: list[object] = []

    class Listener(RebalanceListener):
        async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            revoked.append(partitions)

    lost = partitions(0, 3)
    answer = Listener().on_partitions_lost(lost)
    assert answer is not None
    await answer
    assert revoked == [lost]


async def test_a_trace_of_two_consumers(produce: Produce, start: Start, tmp_path: Path) -> None:
    (first,) = await shared_out(start("a"))
    second = start("b")
    await until(lambda: is_shared_out([first, second]))
    await second.stop()
    await first.stop()
    path = tmp_path / "trace.jsonl"
    writer = JsonLinesWriter(path)
    emitted = sorted((*first.emitted, *second.emitted), key=lambda emitted: emitted[0])
    for time_us, event in emitted:
        writer.add(time_us - emitted[0][0], Source.MEMBER, event)
    writer.close()
    answer = groupstorm("trace", str(path), "--all", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "gives up orders-3 orders-4 orders-5 (assignment)" in answer.stdout

"""Consumers over TCP in a group of the emulator: rounds, ends, lost brokers. Waits for conditions only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.brokers.ports import held_ports
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import CallbackKind
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.log_requests import OffsetReset
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.clients.wire.positions import Position
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events

PATIENCE_S = 60.0
LOOPBACK = "127.0.0.1"
PARTITIONS = 6
OPTIONS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}


class Member:
    """A consumer and its events."""

    def __init__(
        self, name: str, bootstrap: Endpoint, application: ApplicationBehaviour | None = None, **settings: Any
    ) -> None:
        short: dict[str, Any] = {
            "partition_assignment_strategy": ("cooperative-sticky",),
            "heartbeat_interval_ms": 30,
            "session_timeout_ms": 30_000,
            "retry_backoff_ms": 10,
        }
        config = ConsumerConfig("g", name, ("t",), **(short | settings))
        self.emitted: list[events.Event] = []
        self.consumer = WireConsumer(config, [bootstrap], self._on_event, application=application)
        self.life = asyncio.create_task(self.consumer.run())

    def _on_event(self, _time_us: int, event: events.Event) -> None:
        self.emitted.append(event)

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return self.consumer.membership.owned

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.emitted if isinstance(event, kind)]

    @property
    def settled(self) -> bool:
        """Whether the member has joined and knows its positions."""
        return bool(self.of(events.PartitionsAssigned)) and not self.consumer.positions.missing()


class EmulatedCluster:
    """The emulator, and members that end with the test."""

    def __init__(self) -> None:
        self.server = Server(make_broker(OPTIONS, {"t": PARTITIONS}), self.on_events, lambda *_: None)
        self.endpoint = Endpoint("", 0)
        self.seen: list[Any] = []
        self.members: list[Member] = []

    def on_events(self, _time_us: int, seen: Iterable[Any]) -> None:
        self.seen.extend(seen)

    def member(self, name: str, application: ApplicationBehaviour | None = None, **settings: Any) -> Member:
        member = Member(name, self.endpoint, application, **settings)
        self.members.append(member)
        return member

    async def until_balanced(self, *members: Member) -> None:
        """Wait until these members own every partition once, in even shares."""
        share = PARTITIONS // len(members)

        def balanced() -> bool:
            owned = [partition for member in members for partition in member.owned]
            return (
                len(owned) == len(set(owned)) == PARTITIONS
                and all(len(member.owned) == share and member.settled for member in members)
            )  # fmt: skip

        await until(balanced)

    def left(self) -> list[str]:
        return [event.cause for event in self.seen if isinstance(event, coordinator_events.MemberRemoved)]


@pytest.fixture
async def cluster() -> AsyncIterator[EmulatedCluster]:
    running = EmulatedCluster()
    with held_ports(1) as (port,):
        running.endpoint = await running.server.start(LOOPBACK, port)
        try:
            yield running
        finally:
            for member in running.members:
                member.life.cancel()
            await asyncio.gather(*(member.life for member in running.members), return_exceptions=True)
            await running.server.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.002)


async def ended(member: Member) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await member.life


async def test_three_members_share_and_take_over(cluster: EmulatedCluster) -> None:
    first, second, third = (cluster.member(name, session_timeout_ms=1_000) for name in ("a", "b", "c"))
    await cluster.until_balanced(first, second, third)
    second.consumer.close()
    await ended(second)
    await cluster.until_balanced(first, third)
    third.consumer.crash()
    await ended(third)
    await cluster.until_balanced(first)
    assert isinstance(second.emitted[-1], events.MemberClosed)
    assert isinstance(third.emitted[-1], events.MemberCrashed)
    assert len(third.emitted[-1].partitions) == PARTITIONS // 2
    for member in (first, second, third):
        assert isinstance(member.emitted[0], events.MemberStarted)


async def test_cooperative_member_revokes_what_another_then_gets(cluster: EmulatedCluster) -> None:
    first = cluster.member("a")
    await cluster.until_balanced(first)
    second = cluster.member("b")
    await cluster.until_balanced(first, second)
    (revoked,) = first.of(events.PartitionsRevoked)
    assert revoked.cause == "assignment"
    assert "revoked-partitions" in [event.cause for event in first.of(events.RejoinRequested)]
    taken = [event for event in second.of(events.PartitionsAssigned) if event.partitions]
    assert [event.partitions for event in taken] == [revoked.partitions]
    assert taken[0].generation > revoked.generation
    leading = first.of(events.AssignmentComputed) + second.of(events.AssignmentComputed)
    assert {event.protocol for event in leading} == {"cooperative-sticky"}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky"])
async def test_eager_members_share_too(cluster: EmulatedCluster, strategy: str) -> None:
    members = [cluster.member(name, partition_assignment_strategy=(strategy,)) for name in "ab"]
    await cluster.until_balanced(*members)


async def test_next_owner_continues_at_the_committed_offset(cluster: EmulatedCluster) -> None:
    first = cluster.member("a")
    await cluster.until_balanced(first)
    for partition in first.owned:
        assert first.consumer.positions.processed(partition, Position(10 + partition.partition, 3))
    first.consumer.close()
    await ended(first)
    (revoked,) = first.of(events.PartitionsRevoked)
    assert revoked.positions == revoked.committed == tuple(range(10, 10 + PARTITIONS))
    second = cluster.member("b")
    await cluster.until_balanced(second)
    assert second.of(events.PartitionsAssigned)[-1].positions == tuple(range(10, 10 + PARTITIONS))


async def test_positions_are_committed_while_the_group_is_quiet(cluster: EmulatedCluster) -> None:
    member = cluster.member("a", auto_commit_interval_ms=20)
    await cluster.until_balanced(member)
    partition = member.owned[0]
    member.consumer.positions.processed(partition, Position(5))
    await until(lambda: member.consumer.positions.offsets_of([partition]).committed == (5,))


@pytest.mark.parametrize(("reset", "position"), [(OffsetReset.EARLIEST, 0), (OffsetReset.LATEST, 3)])
async def test_without_a_committed_offset_it_begins_at_the_reset_offset(
    cluster: EmulatedCluster, reset: OffsetReset, position: int
) -> None:
    log = cluster.server.broker.state.topics.partition("t", 0)
    assert log is not None
    log.end_offset = 3
    member = cluster.member("a", ApplicationBehaviour(auto_offset_reset=reset))
    await cluster.until_balanced(member)
    assert member.consumer.positions.offsets_of([TopicPartition("t", 0)]).positions == (position,)


async def test_slow_listener_does_not_cost_the_session(cluster: EmulatedCluster) -> None:
    """The listener works longer than the session lasts: heartbeats go on meanwhile."""
    slow = ApplicationBehaviour(callback_us=lambda kind, _: 1_500_000 if kind is CallbackKind.ASSIGNED else 0)
    member = cluster.member("a", slow, session_timeout_ms=1_000)
    await cluster.until_balanced(member)
    assert member.of(events.PartitionsAssigned)[0].duration_us == 1_500_000
    assert cluster.left() == []


async def test_listener_that_outlasts_the_poll_interval_makes_the_member_leave(
    cluster: EmulatedCluster,
) -> None:
    calls: list[CallbackKind] = []
    slow = ApplicationBehaviour(
        callback_us=lambda kind, _: 500_000 if len(calls) == 0 else 0,
        on_callback=lambda kind, _: calls.append(kind),
    )
    member = cluster.member("a", slow, max_poll_interval_ms=150)
    await until(lambda: "poll-timeout" in [event.cause for event in member.of(events.RejoinRequested)])
    await until(lambda: CallbackKind.LOST in calls)
    await cluster.until_balanced(member)
    assert {event.cause for event in member.of(events.PartitionsLost)} == {"poll-timeout"}


async def test_application_that_does_not_poll_leaves_and_rejoins(cluster: EmulatedCluster) -> None:
    lazy = cluster.member("a", max_poll_interval_ms=150)
    await cluster.until_balanced(lazy)
    lazy.consumer.polling.leave()
    other = cluster.member("b", max_poll_interval_ms=5_000)
    await cluster.until_balanced(other)
    lazy.consumer.polling.enter()
    await cluster.until_balanced(lazy, other)


async def test_static_member_returns_without_a_rebalance(cluster: EmulatedCluster) -> None:
    first = cluster.member("a", group_instance_id="i")
    await cluster.until_balanced(first)
    first.consumer.close()
    await ended(first)
    assert first.emitted[-1] == events.MemberClosed(
        "g", "a", first.of(events.PartitionsAssigned)[0].member_id, "silent"
    )
    second = cluster.member("a", group_instance_id="i")
    await cluster.until_balanced(second)
    assert second.of(events.PartitionsAssigned)[0].generation == 1


async def test_fenced_member_ends(cluster: EmulatedCluster) -> None:
    first = cluster.member("a", group_instance_id="i")
    await cluster.until_balanced(first)
    second = cluster.member("b", group_instance_id="i")
    await ended(first)
    assert isinstance(first.emitted[-1], events.MemberFailed)
    assert first.emitted[-1].error == "FENCED_INSTANCE_ID"
    await cluster.until_balanced(second)


async def test_members_reconnect_to_a_restarted_broker(cluster: EmulatedCluster) -> None:
    """The restarted broker does not know the members: they lose their partitions and join anew."""
    members = [cluster.member(name) for name in "ab"]
    await cluster.until_balanced(*members)
    await cluster.server.stop()
    cluster.server = Server(make_broker(OPTIONS, {"t": PARTITIONS}), cluster.on_events, lambda *_: None)
    await cluster.server.start(LOOPBACK, cluster.endpoint.port)
    await until(lambda: all(member.of(events.PartitionsLost) for member in members))
    await cluster.until_balanced(*members)


async def test_broker_may_start_after_its_member(cluster: EmulatedCluster) -> None:
    await cluster.server.stop()
    member = cluster.member("a")
    cluster.server = Server(make_broker(OPTIONS, {"t": PARTITIONS}), cluster.on_events, lambda *_: None)
    await until(lambda: bool(member.emitted))
    await cluster.server.start(LOOPBACK, cluster.endpoint.port)
    await cluster.until_balanced(member)


async def test_close_without_a_broker_ends(cluster: EmulatedCluster) -> None:
    await cluster.server.stop()
    member = cluster.member("a")
    await until(lambda: bool(member.emitted))
    member.consumer.close()
    await ended(member)


async def test_close_ends_after_its_timeout(cluster: EmulatedCluster) -> None:
    """A listener that does not return, and a broker that has stopped."""
    stuck = ApplicationBehaviour(
        callback_us=lambda kind, _: 0 if kind is CallbackKind.ASSIGNED else 3_600_000_000,
        close_timeout_ms=100,
    )
    member = cluster.member("a", stuck)
    await cluster.until_balanced(member)
    await cluster.server.stop()
    membership = member.consumer.membership
    assert isinstance(membership, Membership)
    await until(lambda: not membership.coordinator_known)
    member.consumer.close()
    await ended(member)
    assert isinstance(member.emitted[-1], events.MemberClosed)
    assert member.emitted[-1].cause == "silent"


@pytest.mark.parametrize("how", ["close", "crash", "cancel"])
async def test_a_member_leaves_no_tasks_or_sockets(cluster: EmulatedCluster, how: str) -> None:
    before = asyncio.all_tasks()
    member = cluster.member("a", session_timeout_ms=1_000)
    await cluster.until_balanced(member)
    if how == "cancel":
        member.life.cancel()
        await asyncio.wait({member.life})
        assert member.life.cancelled()
    else:
        getattr(member.consumer, how)()
        await ended(member)
    assert asyncio.all_tasks() <= before | {member.life}
    await until(lambda: not cluster.server.connections)
    emitted = len(member.emitted)
    await until(lambda: cluster.left() != [])
    assert len(member.emitted) == emitted, "its end is its last event"


async def test_leader_sees_that_a_topic_has_grown(cluster: EmulatedCluster) -> None:
    member = cluster.member("a", metadata_max_age_ms=30)
    await cluster.until_balanced(member)
    topics = cluster.server.broker.state.topics
    topic = topics.get("t")
    assert topic is not None
    topics.grow(topic, PARTITIONS + 1)
    await until(lambda: len(member.owned) == PARTITIONS + 1)
    assert member.of(events.RejoinRequested)[-1].cause == "metadata-changed"

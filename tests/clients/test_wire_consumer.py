"""Members over TCP in a group of the emulator, in either protocol: rounds, ends, lost brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import CallbackKind
from groupstorm.clients.wire.admin import grow_topic
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.clients.wire.positions import Position
from groupstorm.coordinator.messages import LeaveGroup, LeavingMember
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from tests.clients.wire_group import PARTITIONS, PATIENCE_S, EmulatedGroup, Member
from tests.waiting import until

SESSION_TIMEOUT = "group.consumer.session.timeout.ms"
#: For tests in which a session ends.
SHORT_SESSIONS = pytest.mark.parametrize("group", [{SESSION_TIMEOUT: "1000"}], indirect=True, ids=["short"])


@pytest.fixture
async def group(request: pytest.FixtureRequest) -> AsyncIterator[EmulatedGroup]:
    """A parameter holds options of the brokers."""
    with held_ports(1) as (port,):
        running = EmulatedGroup(getattr(request, "param", {}), port=port)
        await running.start()
        yield running
        await running.stop()


class Members:
    """Starts members of one protocol in a group."""

    def __init__(self, group: EmulatedGroup, is_classic: bool) -> None:
        self.group = group
        self.is_classic = is_classic

    def start(self, name: str, application: ApplicationBehaviour | None = None, **settings: Any) -> Member:
        if self.is_classic:
            session_ms = int(self.group.options.get(SESSION_TIMEOUT, 30_000))
            return self.group.classic(name, application, session_timeout_ms=session_ms, **settings)
        return self.group.member(name, application, **settings)


@pytest.fixture(params=[True, False], ids=["classic", "consumer"])
def members(group: EmulatedGroup, request: pytest.FixtureRequest) -> Members:
    return Members(group, request.param)


async def ended(member: Member) -> None:
    await asyncio.wait_for(member.life, PATIENCE_S)


def removals(group: EmulatedGroup) -> list[str]:
    return [event.cause for event in group.seen if isinstance(event, coordinator_events.MemberRemoved)]


# both protocols


@SHORT_SESSIONS
async def test_three_members_share_and_take_over(group: EmulatedGroup, members: Members) -> None:
    first, second, third = (members.start(name) for name in ("a", "b", "c"))
    await group.until_shared(first, second, third)
    await second.close()
    await group.until_shared(first, third)
    third.consumer.crash()
    await ended(third)
    await group.until_shared(first)
    assert isinstance(second.emitted[-1], events.MemberClosed)
    assert isinstance(third.emitted[-1], events.MemberCrashed)
    assert len(third.emitted[-1].partitions) == PARTITIONS // 2
    for member in (first, second, third):
        assert isinstance(member.emitted[0], events.MemberStarted)


async def test_the_next_owner_continues_at_the_committed_offset(
    group: EmulatedGroup, members: Members
) -> None:
    (first,) = await group.until_shared(members.start("a"))
    for partition in first.owned:
        assert first.consumer.positions.processed(partition, Position(10 + partition.partition, 3))
    await first.close()
    (revoked,) = first.of(events.PartitionsRevoked)
    assert (revoked.cause, revoked.positions) == ("close", revoked.committed)
    assert sorted(revoked.committed) == list(range(10, 10 + PARTITIONS))
    (second,) = await group.until_shared(members.start("b"))
    assert sorted(second.of(events.PartitionsAssigned)[-1].positions) == list(range(10, 10 + PARTITIONS))


async def test_positions_are_committed_while_the_group_is_quiet(
    group: EmulatedGroup, members: Members
) -> None:
    (member,) = await group.until_shared(members.start("a", auto_commit_interval_ms=20))
    partition = TopicPartition("t", 0)
    member.consumer.positions.processed(partition, Position(5))
    await until(lambda: member.consumer.positions.offsets_of([partition]).committed == (5,))


async def test_a_listener_that_outlasts_the_poll_interval_makes_the_member_leave(
    group: EmulatedGroup, members: Members
) -> None:
    """The first onPartitionsAssigned is slow."""
    durations_us = iter([700_000])
    slow = ApplicationBehaviour(
        callback_us=lambda kind, _: next(durations_us, 0) if kind is CallbackKind.ASSIGNED else 0,
    )
    member = members.start("a", slow, max_poll_interval_ms=300)
    await until(lambda: "left" in removals(group))
    await until(lambda: member.of(events.PartitionsLost))
    await group.until_shared(member)
    assert {event.cause for event in member.of(events.PartitionsLost)} == {"poll-timeout"}


async def test_a_broker_may_start_after_its_member(group: EmulatedGroup, members: Members) -> None:
    await group.server.stop()
    member = members.start("a")
    await until(lambda: member.emitted)
    group.server = group.new_server()
    await group.server.start(group.endpoint.host, group.endpoint.port)
    await group.until_shared(member)


async def test_close_without_a_broker_ends(group: EmulatedGroup, members: Members) -> None:
    (member,) = await group.until_shared(members.start("a", ApplicationBehaviour(close_timeout_ms=200)))
    await group.server.stop()
    await member.close()
    assert isinstance(member.emitted[-1], events.MemberClosed)
    assert member.emitted[-1].cause == "silent"


@SHORT_SESSIONS
@pytest.mark.parametrize("how", ["close", "crash", "cancel"])
async def test_a_member_leaves_no_tasks_or_sockets(group: EmulatedGroup, members: Members, how: str) -> None:
    before = asyncio.all_tasks()
    (member,) = await group.until_shared(members.start("a"))
    if how == "cancel":
        member.life.cancel()
        await asyncio.wait({member.life})
        assert member.life.cancelled()
    else:
        getattr(member.consumer, how)()
        await ended(member)
    assert asyncio.all_tasks() <= before | {member.life}
    await until(lambda: not group.server.connections)
    emitted = len(member.emitted)
    await until(lambda: removals(group))
    assert len(member.emitted) == emitted, "its end is its last event"


async def test_a_topic_that_grows_is_assigned(group: EmulatedGroup, members: Members) -> None:
    first, second = (members.start(name, metadata_max_age_ms=30) for name in "ab")
    await group.until_shared(first, second)
    cluster = ClusterClient([group.endpoint], "admin", 5_000)
    await grow_topic(cluster, "t", PARTITIONS + 2)
    cluster.close()
    await until(lambda: len(first.owned) == len(second.owned) == PARTITIONS // 2 + 1)
    await until(lambda: not first.consumer.positions.missing() and not second.consumer.positions.missing())


# the classic protocol


async def test_members_reconnect_to_a_restarted_broker(group: EmulatedGroup) -> None:
    """The restarted broker does not know the members: they lose their partitions and join anew."""
    members = [group.classic(name) for name in "ab"]
    await group.until_shared(*members)
    await group.restart()
    await until(lambda: all(member.of(events.PartitionsLost) for member in members))
    await group.until_shared(*members)


async def test_close_ends_after_its_timeout(group: EmulatedGroup) -> None:
    """A listener that does not return, and a broker that has stopped."""
    stuck = ApplicationBehaviour(
        callback_us=lambda kind, _: 0 if kind is CallbackKind.ASSIGNED else 3_600_000_000,
        close_timeout_ms=100,
    )
    (member,) = await group.until_shared(group.classic("a", stuck))
    await group.server.stop()
    membership = member.consumer.membership
    assert isinstance(membership, Membership)
    await until(lambda: not membership.coordinator_known)
    await member.close()
    assert isinstance(member.emitted[-1], events.MemberClosed)
    assert member.emitted[-1].cause == "silent"


# the consumer protocol


async def test_heartbeats_join_acknowledge_and_keep_the_interval(group: EmulatedGroup) -> None:
    (member,) = await group.until_shared(group.member("a", group_remote_assignor="range", client_rack="r1"))
    await until(lambda: len(member.heartbeats) >= 4)
    join, acknowledgement, later = member.heartbeats[:3]
    assert (join.member_epoch, join.topics, join.owned, join.rack) == (0, ("t",), (), "r1")
    assert (join.assignor, join.rebalance_timeout_ms) == ("range", 300_000)
    assert acknowledgement.member_epoch > 0
    assert acknowledgement.owned is not None
    assert acknowledgement.topics is None
    assert (later.owned, later.topics, later.rebalance_timeout_ms) == (None, None, -1)


async def test_a_fenced_member_loses_its_partitions_and_joins_again(group: EmulatedGroup) -> None:
    first, second = await group.until_shared(group.member("a"), group.member("b"))
    member_id = first.consumer.membership.generation.member_id
    removal = LeaveGroup("g", (LeavingMember(member_id, None, "by an admin"),), 5, "admin")
    _ = await second.consumer.ask_coordinator(removal)
    await until(lambda: first.of(events.PartitionsLost))
    await group.until_shared(first, second)
    [lost] = first.of(events.PartitionsLost)
    assert lost.cause == "UNKNOWN_MEMBER_ID"


async def test_a_broker_that_has_lost_the_group_ends_the_member(group: EmulatedGroup) -> None:
    """As in Kafka's client: GROUP_ID_NOT_FOUND is fatal."""
    (member,) = await group.until_shared(group.member("a"))
    await group.restart()
    await asyncio.wait_for(member.life, PATIENCE_S)
    assert member.consumer.failure == "GROUP_ID_NOT_FOUND"
    assert [one.cause for one in member.of(events.PartitionsLost)] == ["GROUP_ID_NOT_FOUND"]
    assert [one.error for one in member.of(events.MemberFailed)] == ["GROUP_ID_NOT_FOUND"]


@SHORT_SESSIONS
async def test_a_member_that_is_cut_off_is_fenced_and_comes_back(group: EmulatedGroup) -> None:
    first, second = await group.until_shared(group.member("a"), group.member("b"))
    first.consumer.cut_off()
    await group.until_shared(second)
    first.consumer.reconnect()
    await group.until_shared(first, second)
    [lost, *_] = first.of(events.PartitionsLost)
    assert lost.cause == "UNKNOWN_MEMBER_ID"


async def test_a_short_loss_of_the_connection_costs_nothing(group: EmulatedGroup) -> None:
    first, second = await group.until_shared(group.member("a"), group.member("b"))
    had, sent = first.owned, len(first.heartbeats)
    first.consumer.cut_off()
    first.consumer.reconnect()
    await until(lambda: len(first.heartbeats) > sent + 3)
    await group.until_shared(first, second)
    assert first.owned == had
    assert not first.of(events.PartitionsLost)
    full = [one for one in first.heartbeats[sent:] if one.topics is not None]
    assert all(one.member_epoch > 0 for one in full), "it tells everything once more, and does not join"


async def test_members_follow_their_coordinator_to_another_broker() -> None:
    group = EmulatedGroup({}, brokers=3)
    await group.start()
    try:
        members = [group.member("a"), group.member("b")]
        await group.until_shared(*members)
        for _ in range(3):
            group.server.apply(lambda broker, now_ms: broker.move_coordinator("g", None, now_ms))
            sent = [len(member.heartbeats) for member in members]
            await until(
                lambda before=sent: all(  # type: ignore[misc]
                    len(one.heartbeats) > count + 3 for one, count in zip(members, before, strict=True)
                )
            )
            await group.until_shared(*members)
        third = group.member("c")
        await group.until_shared(*members, third)
        assert not [event for member in members for event in member.of(events.PartitionsLost)]
    finally:
        await group.stop()


async def test_a_member_without_auto_commit_commits_nothing(group: EmulatedGroup, members: Members) -> None:
    (member,) = await group.until_shared(members.start("a", enable_auto_commit=False))
    member.consumer.positions.processed(TopicPartition("t", 0), Position(5))
    await member.close()
    [closed] = member.of(events.PartitionsRevoked)
    assert set(closed.committed) == {-1}


async def test_heartbeats_go_on_while_a_listener_works(group: EmulatedGroup) -> None:
    slow = ApplicationBehaviour(
        callback_us=lambda kind, _: 1_000_000 if kind is CallbackKind.REVOKED else 0,
    )
    (first,) = await group.until_shared(group.member("a", slow))
    second = group.member("b")
    await until(lambda: first.of(events.PartitionsRevoked))
    sent = len(first.heartbeats)
    await until(lambda: len(first.heartbeats) > sent + 5)
    assert not second.owned
    await group.until_shared(first, second)


@SHORT_SESSIONS
async def test_a_paused_process_says_nothing_and_is_fenced(group: EmulatedGroup) -> None:
    first, second = await group.until_shared(group.member("a"), group.member("b"))
    first.consumer.pause()
    await asyncio.sleep(0)
    sent = len(first.heartbeats)
    await group.until_shared(second)
    assert len(first.heartbeats) == sent
    first.consumer.resume()
    await group.until_shared(first, second)

"""Members of the consumer protocol over TCP, in a group of the emulator. Waits for conditions only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.clients.operations import CallbackKind
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.clients.wire.positions import Position
from groupstorm.coordinator.messages import LeaveGroup, LeavingMember
from groupstorm.trace.events import member as events
from tests.clients.wire_group import PATIENCE_S, EmulatedGroup
from tests.waiting import until

pytest.importorskip("kio", reason="pip install groupstorm[serve]")


@pytest.fixture
async def group() -> AsyncIterator[EmulatedGroup]:
    with held_ports(1) as (port,):
        running = EmulatedGroup({}, port=port)
        await running.start()
        yield running
        await running.stop()


@pytest.fixture
async def expiring() -> AsyncIterator[EmulatedGroup]:
    """A group whose sessions end soon."""
    running = EmulatedGroup({"group.consumer.session.timeout.ms": "1000"})
    await running.start()
    yield running
    await running.stop()


async def test_members_share_and_hand_over(group: EmulatedGroup) -> None:
    first = group.member("a")
    await group.until_shared(first)
    second = group.member("b")
    await group.until_shared(first, second)
    [revoked] = first.of(events.PartitionsRevoked)
    assert (revoked.cause, set(revoked.partitions)) == ("assignment", set(map(str, second.owned)))
    stayed = first.owned
    await first.close()
    await group.until_shared(second)
    assert [one.cause for one in first.of(events.MemberClosed)] == ["left"]
    [*_, last] = first.of(events.PartitionsRevoked)
    assert (last.cause, set(last.partitions)) == ("close", set(map(str, stayed)))
    assert first.heartbeats[-1].member_epoch == -1


async def test_heartbeats_join_acknowledge_and_keep_the_interval(group: EmulatedGroup) -> None:
    member = group.member("a", group_remote_assignor="range", client_rack="r1")
    await group.until_shared(member)
    await until(lambda: len(member.heartbeats) >= 4)
    join, acknowledgement, later = member.heartbeats[:3]
    assert (join.member_epoch, join.topics, join.owned, join.rack) == (0, ("t",), (), "r1")
    assert (join.assignor, join.rebalance_timeout_ms) == ("range", 300_000)
    assert acknowledgement.member_epoch > 0
    assert acknowledgement.owned is not None
    assert acknowledgement.topics is None
    assert (later.owned, later.topics, later.rebalance_timeout_ms) == (None, None, -1)


async def test_a_fenced_member_loses_its_partitions_and_joins_again(group: EmulatedGroup) -> None:
    first, second = group.member("a"), group.member("b")
    await group.until_shared(first, second)
    member_id = first.consumer.membership.generation.member_id
    removal = LeaveGroup("g", (LeavingMember(member_id, None, "by an admin"),), 5, "admin")
    _ = await second.consumer.ask_coordinator(removal)
    await until(lambda: first.of(events.PartitionsLost))
    await group.until_shared(first, second)
    [lost] = first.of(events.PartitionsLost)
    assert lost.cause == "UNKNOWN_MEMBER_ID"


async def test_a_broker_that_has_lost_the_group_ends_the_member(group: EmulatedGroup) -> None:
    """As in Kafka's client: GROUP_ID_NOT_FOUND is fatal."""
    member = group.member("a")
    await group.until_shared(member)
    await group.restart()
    await asyncio.wait_for(member.life, PATIENCE_S)
    assert member.consumer.failure == "GROUP_ID_NOT_FOUND"
    assert [one.cause for one in member.of(events.PartitionsLost)] == ["GROUP_ID_NOT_FOUND"]
    assert [one.error for one in member.of(events.MemberFailed)] == ["GROUP_ID_NOT_FOUND"]


async def test_a_member_that_is_cut_off_is_fenced_and_comes_back(expiring: EmulatedGroup) -> None:
    first, second = expiring.member("a"), expiring.member("b")
    await expiring.until_shared(first, second)
    first.consumer.cut_off()
    await expiring.until_shared(second)
    first.consumer.reconnect()
    await expiring.until_shared(first, second)
    [lost, *_] = first.of(events.PartitionsLost)
    assert lost.cause == "UNKNOWN_MEMBER_ID"


async def test_a_short_loss_of_the_connection_costs_nothing(group: EmulatedGroup) -> None:
    first, second = group.member("a"), group.member("b")
    await group.until_shared(first, second)
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


async def test_a_member_without_auto_commit_commits_nothing(group: EmulatedGroup) -> None:
    member = group.member("a", enable_auto_commit=False)
    await group.until_shared(member)
    member.consumer.positions.processed(TopicPartition("t", 0), Position(5))
    await member.close()
    [closed] = member.of(events.PartitionsRevoked)
    assert set(closed.committed) == {-1}


async def test_heartbeats_go_on_while_a_listener_works(group: EmulatedGroup) -> None:
    slow = ApplicationBehaviour(
        callback_us=lambda kind, _: 1_000_000 if kind is CallbackKind.REVOKED else 0,
    )
    first = group.member("a", slow)
    await group.until_shared(first)
    second = group.member("b")
    await until(lambda: first.of(events.PartitionsRevoked))
    sent = len(first.heartbeats)
    await until(lambda: len(first.heartbeats) > sent + 5)
    assert not second.owned
    await group.until_shared(first, second)


async def test_a_paused_process_says_nothing_and_is_fenced(expiring: EmulatedGroup) -> None:
    first, second = expiring.member("a"), expiring.member("b")
    await expiring.until_shared(first, second)
    first.consumer.pause()
    await asyncio.sleep(0)
    sent = len(first.heartbeats)
    await expiring.until_shared(second)
    assert len(first.heartbeats) == sent
    first.consumer.resume()
    await expiring.until_shared(first, second)

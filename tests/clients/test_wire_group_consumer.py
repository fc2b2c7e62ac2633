"""Members of the consumer protocol over TCP, in a group of the emulator. Waits for conditions only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.ports import held_ports
from groupstorm.clients.operations import CallbackKind
from groupstorm.clients.wire.admin import grow_topic
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.group_driver import _new_member_id
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.clients.wire.positions import Position
from groupstorm.coordinator.messages import LeaveGroup, LeavingMember
from groupstorm.trace.events import member as events
from tests.clients.wire_group import ALL, PARTITIONS, PATIENCE_S, EmulatedGroup, until

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


async def test_a_static_member_keeps_its_partitions_over_a_restart(group: EmulatedGroup) -> None:
    first, second = group.member("a", group_instance_id="i"), group.member("b")
    await group.until_shared(first, second)
    had = first.owned
    await first.close()
    assert [one.cause for one in first.of(events.MemberClosed)] == ["silent"]
    assert first.heartbeats[-1].member_epoch == -2
    again = group.member("a", group_instance_id="i")
    await group.until_shared(again, second)
    assert again.owned == had
    assert not second.of(events.PartitionsRevoked)


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


async def test_a_broker_may_start_after_its_member(group: EmulatedGroup) -> None:
    await group.server.stop()
    member = group.member("a")
    await until(lambda: member.emitted)
    group.server = group.new_server()
    await group.server.start(group.endpoint.host, group.endpoint.port)
    await group.until_shared(member)


async def test_a_listener_that_outlasts_the_poll_interval_makes_the_member_leave(
    group: EmulatedGroup,
) -> None:
    """A slow onPartitionsAssigned; during a revocation the broker's rebalance timeout ends as soon."""
    durations_us = iter([700_000])
    slow = ApplicationBehaviour(
        callback_us=lambda kind, _: next(durations_us, 0) if kind is CallbackKind.ASSIGNED else 0,
    )
    first = group.member("a", slow, max_poll_interval_ms=300)
    await until(lambda: -1 in [one.member_epoch for one in first.heartbeats])
    await group.until_shared(first)
    assert "poll-timeout" in [one.cause for one in first.of(events.PartitionsLost)]


@pytest.mark.parametrize("how", ["close", "crash", "cancel"])
async def test_a_member_leaves_no_tasks_or_sockets(group: EmulatedGroup, how: str) -> None:
    before = asyncio.all_tasks()
    member = group.member("a")
    await group.until_shared(member)
    if how == "cancel":
        member.life.cancel()
        await asyncio.wait({member.life})
        assert member.life.cancelled()
    else:
        getattr(member.consumer, how)()
        await asyncio.wait_for(member.life, PATIENCE_S)
    assert asyncio.all_tasks() <= before | {member.life}
    await until(lambda: not group.server.connections)


async def test_a_topic_that_grows_is_assigned(group: EmulatedGroup) -> None:
    first, second = group.member("a"), group.member("b")
    await group.until_shared(first, second)
    cluster = ClusterClient([group.endpoint], "admin", 5_000)
    await grow_topic(cluster, "t", PARTITIONS + 2)
    cluster.close()
    await until(lambda: len(first.owned) == len(second.owned) == PARTITIONS // 2 + 1)
    await until(lambda: not first.consumer.positions.missing() and not second.consumer.positions.missing())


async def test_a_pattern_is_resolved_by_the_broker(group: EmulatedGroup) -> None:
    member = group.member("a", topics=(), subscription_pattern="t.*")
    names = {*ALL, TopicPartition("tail", 0), TopicPartition("tail", 1)}
    await until(lambda: member.owned == names and not member.consumer.positions.missing())
    assert member.heartbeats[0].regex == "t.*"


async def test_other_topics_are_told_by_the_next_heartbeat(group: EmulatedGroup) -> None:
    member = group.member("a")
    await group.until_shared(member)
    member.consumer.polling.resubscribe(("other",))
    await until(lambda: member.owned == {TopicPartition("other", 0)})


async def test_a_live_classic_group_is_upgraded_and_downgraded(group: EmulatedGroup) -> None:
    old = [group.classic("a"), group.classic("b")]
    await group.until_shared(*old)
    new = [group.member("c")]
    await group.until_shared(*old, *new)
    await old.pop().close()
    await group.until_shared(*old, *new)
    new.append(group.member("d"))
    await group.until_shared(*old, *new)
    for member in new:
        await member.close()
    await group.until_shared(*old)


async def test_a_member_whose_application_does_not_poll_leaves_and_joins_again(
    group: EmulatedGroup,
) -> None:
    first, second = group.member("a", max_poll_interval_ms=1_500), group.member("b")
    await group.until_shared(first, second)
    first.consumer.polling.leave()
    await group.until_shared(second)
    assert not first.of(events.PartitionsLost), "the listener runs in poll()"
    first.consumer.polling.enter()
    await group.until_shared(first, second)
    assert [one.cause for one in first.of(events.PartitionsLost)] == ["poll-timeout"]
    assert [one.cause for one in first.of(events.RejoinRequested)] == ["poll-timeout"]


async def test_positions_are_committed_before_partitions_are_given_up(group: EmulatedGroup) -> None:
    first = group.member("a")
    await group.until_shared(first)
    for partition in first.owned:
        first.consumer.positions.processed(partition, Position(7))
    second = group.member("b")
    await group.until_shared(first, second)
    [revoked] = first.of(events.PartitionsRevoked)
    assert revoked.committed == revoked.positions == (7,) * 3
    begun = [at for one in second.of(events.PartitionsAssigned) for at in one.positions]
    assert begun == [7] * 3


async def test_positions_are_committed_at_the_interval_and_at_close(group: EmulatedGroup) -> None:
    member = group.member("a", auto_commit_interval_ms=20)
    await group.until_shared(member)
    one, *_ = sorted(member.owned)
    member.consumer.positions.processed(one, Position(3))
    await until(lambda: member.consumer.positions.offsets_of([one]).committed == (3,))
    member.consumer.positions.processed(one, Position(5))
    await member.close()
    [closed] = member.of(events.PartitionsRevoked)
    assert closed.committed[0] == 5


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


async def test_a_crash_ends_without_a_word(expiring: EmulatedGroup) -> None:
    first, second = expiring.member("a"), expiring.member("b")
    await expiring.until_shared(first, second)
    first.consumer.crash()
    await first.life
    await expiring.until_shared(second)
    [crashed] = first.of(events.MemberCrashed)
    assert crashed.generation > 0
    assert first.heartbeats[-1].member_epoch > 0


@pytest.mark.parametrize(("leaves", "told", "cause"), [(True, -1, "left"), (False, 1, "silent")])
async def test_close_options(group: EmulatedGroup, leaves: bool, told: int, cause: str) -> None:
    """KIP-1092: a static member that leaves, and a dynamic one that stays until its session ends."""
    instance = "i" if leaves else None
    member = group.member("a", group_instance_id=instance, leave_group_on_close=leaves)
    await group.until_shared(member)
    await member.close()
    assert min(member.heartbeats[-1].member_epoch, 1) == told
    assert [one.cause for one in member.of(events.MemberClosed)] == [cause]


async def test_close_without_a_broker_ends(group: EmulatedGroup) -> None:
    member = group.member("a", ApplicationBehaviour(close_timeout_ms=200))
    await group.until_shared(member)
    await group.server.stop()
    await member.close()
    assert isinstance(member.emitted[-1], events.MemberClosed)
    assert member.emitted[-1].cause == "silent"


async def test_an_unlike_subscription_ends_the_member(group: EmulatedGroup) -> None:
    """A fatal error: here an assignor that the broker does not have."""
    member = group.member("a", group_remote_assignor="best")
    await asyncio.wait_for(member.life, PATIENCE_S)
    assert member.consumer.failure == "UNSUPPORTED_ASSIGNOR"
    assert [one.error for one in member.of(events.MemberFailed)] == ["UNSUPPORTED_ASSIGNOR"]


def test_ids_do_not_begin_with_a_dash() -> None:
    ids = {_new_member_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(one) == 22 and not one.startswith("-") for one in ids)

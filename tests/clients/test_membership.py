"""What a membership asks for, answer by answer (Kafka's AbstractCoordinator)."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import (
    Subscription,
    decode_sticky,
    decode_subscription,
    encode_subscription,
)
from groupstorm.clients import events
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import (
    Assign,
    AwaitPoll,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.clients.standing import MemberState
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    JoinGroup,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroup,
    SyncGroup,
)
from groupstorm.problems import InputError
from tests.clients.by_hand import JOINED, T0, T1, Consumer, synced


def test_first_join_finds_the_coordinator_and_comes_back_with_its_id() -> None:
    consumer = Consumer()
    assert consumer.asked == FindCoordinator()
    consumer.answer()
    assert consumer.request.member_id == ""
    assert consumer.request.version == 9
    assert consumer.request.rebalance_timeout_ms == 300_000
    consumer.answer(JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id="c-1"))
    assert consumer.request.member_id == "c-1", "at once, without a pause"
    consumer.answer(JOINED)
    assert isinstance(consumer.request, SyncGroup)
    assert consumer.request.assignments == ()
    assert consumer.answer(synced(T0, T1)) == RunCallback(CallbackKind.ASSIGNED, (T0, T1), "assignment")
    assert consumer.answer() == AwaitPoll()
    assert consumer.membership.state is MemberState.STABLE
    assert consumer.causes() == ["first-join"]


def test_join_request_waits_for_the_rebalance_timeout_and_five_seconds() -> None:
    consumer = Consumer(max_poll_interval_ms=60_000)
    consumer.answer()
    assert isinstance(consumer.asked, Send)
    assert consumer.asked.timeout_ms == 65_000


def test_leader_runs_the_assignor_and_sends_its_plan() -> None:
    consumer = Consumer()
    consumer.answer()
    members = (JoinGroupMember("c-1", None, b"..."),)
    response = JOINED._replace(leader="c-1", members=members)
    assert consumer.answer(response) == Assign(response)
    consumer.answer((("c-1", b"plan"),))
    assert consumer.request.assignments == (("c-1", b"plan"),)


def test_returning_static_leader_is_told_to_skip_the_assignment() -> None:
    consumer = Consumer(group_instance_id="i")
    consumer.answer()
    consumer.answer(JOINED._replace(leader="c-1", skip_assignment=True))
    assert isinstance(consumer.request, SyncGroup)
    assert consumer.request.assignments == ()
    assert consumer.membership.is_leader, "it watches the metadata all the same (KIP-814)"


def test_eager_member_gives_up_everything_before_it_joins() -> None:
    consumer = Consumer(["range"])
    consumer.join(T0, T1)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert consumer.answer() == StopProcessing((T0, T1))
    assert consumer.answer() == CommitPositions()
    assert consumer.answer(Error.NONE) == RunCallback(CallbackKind.REVOKED, (T0, T1), "rebalance")
    consumer.answer()
    assert isinstance(consumer.request, JoinGroup)
    assert consumer.membership.owned == ()
    assert consumer.causes()[-1] == "group-rebalancing"


def test_eager_sticky_member_tells_what_it_had_in_its_user_data() -> None:
    consumer = Consumer(["sticky"])
    consumer.answer()
    assert decode_subscription(consumer.request.protocols[0][1]).user_data is None
    consumer.join(T0, T1)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    while not isinstance(consumer.asked, Send):
        consumer.answer(Error.NONE)
    subscription = decode_subscription(consumer.request.protocols[0][1])
    assert tuple(subscription.owned) == ()
    assert subscription.user_data is not None
    told = decode_sticky(subscription.user_data)
    assert (tuple(told.partitions), told.generation) == ((T0, T1), 1)


def test_cooperative_member_keeps_what_it_owns_and_comes_back_after_revoking() -> None:
    consumer = Consumer()
    consumer.join(T0, T1)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert consumer.answer() == CommitPositions()
    consumer.answer(Error.NONE)
    subscription = decode_subscription(consumer.request.protocols[0][1])
    assert tuple(subscription.owned) == (T0, T1)
    assert subscription.generation == 1
    consumer.answer(JOINED._replace(generation=2))
    assert consumer.answer(synced(T0)) == RunCallback(CallbackKind.REVOKED, (T1,), "assignment")
    assert consumer.answer() == RunCallback(CallbackKind.ASSIGNED, (), "assignment")
    assert consumer.causes()[-1] == "revoked-partitions"
    assert consumer.answer() == CommitPositions(), "the second round begins within the same poll()"
    consumer.answer(Error.NONE)
    assert tuple(decode_subscription(consumer.request.protocols[0][1]).owned) == (T0,)


def test_each_join_tells_why() -> None:
    consumer = Consumer()
    consumer.answer()
    assert consumer.request.reason == ""
    consumer.answer(JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id="c" * 300))
    assert consumer.request.reason.startswith("need to re-join with the given member-id: ccc")
    assert len(consumer.request.reason) == 255
    consumer.answer(Disconnected())
    consumer.answer()
    consumer.answer()
    assert consumer.request.reason == "rebalance failed due to DisconnectException"


def test_only_the_chosen_assignor_is_told_of_its_assignment() -> None:
    consumer = Consumer(["range", "cooperative-sticky"])
    consumer.join(T0)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    while not isinstance(consumer.asked, Send):
        consumer.answer(Error.NONE)
    assert decode_subscription(consumer.request.protocols[1][1]).user_data == b"\xff\xff\xff\xff"


def test_poll_timeout_leaves_and_loses() -> None:
    consumer = Consumer()
    consumer.join(T0)
    leave = consumer.membership.poll_timed_out()
    assert leave is not None
    assert leave.members[0].member_id == "c-1"
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), "poll-timeout")


def test_poll_timeout_of_a_static_member_sends_nothing() -> None:
    consumer = Consumer(group_instance_id="i")
    consumer.join(T0)
    assert consumer.membership.poll_timed_out() is None
    assert consumer.membership.rejoin_needed


def test_rejected_commit_tells_the_member() -> None:
    consumer = Consumer()
    consumer.join(T0)
    consumer.membership.commit_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert consumer.causes()[-1] == "group-rebalancing"
    consumer.membership.commit_answered(Error.UNKNOWN_MEMBER_ID, consumer.membership.generation)
    assert consumer.membership.state is MemberState.UNJOINED


def test_only_the_leader_watches_the_metadata() -> None:
    follower, leader = Consumer(), Consumer()
    follower.join(T0)
    leader.answer()
    metadata = encode_subscription(Subscription(("t",), None, (), -1), 3)
    leader.answer(JOINED._replace(leader="c-1", members=(JoinGroupMember("c-1", None, metadata),)))
    leader.answer(())
    leader.answer(synced(T0))
    leader.answer()
    for consumer in (follower, leader):
        consumer.membership.metadata_refreshed()
        assert not consumer.membership.rejoin_needed
        consumer.topics = {"t": 4}
        consumer.membership.metadata_refreshed()
    assert not follower.membership.rejoin_needed
    assert leader.causes()[-1] == "metadata-changed"


def test_close_commits_revokes_and_leaves() -> None:
    consumer = Consumer()
    consumer.join(T0)
    assert consumer.close() == StopProcessing((T0,))
    assert consumer.answer() == CommitPositions()
    assert consumer.answer(Error.NONE) == RunCallback(CallbackKind.REVOKED, (T0,), "close")
    consumer.answer()
    assert isinstance(consumer.request, LeaveGroup)
    assert consumer.answer() is None
    assert consumer.told[-1] == events.MemberClosed("g", "c", "c-1", "left")


@pytest.mark.parametrize(
    ("settings", "leaves"),
    [({}, True), ({"group_instance_id": "i"}, False),
     ({"group_instance_id": "i", "leave_group_on_close": True}, True),
     ({"leave_group_on_close": False}, False)],
)  # fmt: skip
def test_who_leaves_on_close(settings: dict[str, Any], leaves: bool) -> None:
    consumer = Consumer(enable_auto_commit=False, **settings)
    consumer.join()
    assert isinstance(consumer.close(), Send) is leaves


def test_member_that_closes_during_a_rebalance_loses_its_partitions() -> None:
    consumer = Consumer()
    consumer.join(T0)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    consumer.answer()
    consumer.answer(Error.NONE)
    assert isinstance(consumer.request, JoinGroup)
    assert consumer.close() == StopProcessing((T0,))
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), "close")


def test_cooperative_only_if_every_assignor_is() -> None:
    assert Consumer(["cooperative-sticky"]).membership.rebalance_protocol.value == "cooperative"
    assert Consumer(["range", "cooperative-sticky"]).membership.rebalance_protocol.value == "eager"


def test_settings_that_kafka_refuses_are_refused() -> None:
    with pytest.raises(InputError, match=r"heartbeat\.interval\.ms"):
        ConsumerConfig("g", "c", ("t",), heartbeat_interval_ms=45_000)

"""The operations of a membership, result by result (Kafka's AbstractCoordinator)."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import (
    Subscription,
    decode_sticky,
    decode_subscription,
    encode_subscription,
)
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import MemberState
from groupstorm.clients.operations import (
    Assign,
    AwaitPoll,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    PauseFetching,
    ResumeFetching,
    ReturnRecords,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.clients.profiles import profile
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    JoinGroup,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroup,
    SyncGroup,
)
from groupstorm.problems import InputError
from groupstorm.trace.events import member as events
from tests.clients.scripted_consumer import JOINED, T0, T1, ScriptedConsumer, synced


def test_first_join_finds_the_coordinator_and_repeats_with_its_id() -> None:
    consumer = ScriptedConsumer()
    assert consumer.operation == FindCoordinator()
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
    consumer = ScriptedConsumer(max_poll_interval_ms=60_000)
    consumer.answer()
    assert isinstance(consumer.operation, Send)
    assert consumer.operation.timeout_ms == 65_000


def test_leader_runs_the_assignor_and_sends_its_plan() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    members = (JoinGroupMember("c-1", None, b"..."),)
    response = JOINED._replace(leader="c-1", members=members)
    asked = consumer.answer(response)
    assert isinstance(asked, Assign)
    assert (asked.response, asked.assignor.name) == (response, "cooperative-sticky")
    consumer.answer((("c-1", b"plan"),))
    assert consumer.request.assignments == (("c-1", b"plan"),)


def test_leader_of_a_protocol_that_it_does_not_offer_fails() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED._replace(leader="c-1", protocol="range"))
    assert consumer.membership.failure == "IllegalStateException"


def test_returning_static_leader_is_told_to_skip_the_assignment() -> None:
    consumer = ScriptedConsumer(group_instance_id="i")
    consumer.answer()
    consumer.answer(JOINED._replace(leader="c-1", skip_assignment=True))
    assert isinstance(consumer.request, SyncGroup)
    assert consumer.request.assignments == ()
    assert consumer.membership.is_leader, "it watches the metadata all the same (KIP-814)"


def test_eager_member_gives_up_everything_before_it_joins() -> None:
    consumer = ScriptedConsumer(["range"])
    consumer.join(T0, T1)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert consumer.answer() == StopProcessing((T0, T1))
    assert consumer.answer() == CommitPositions()
    assert consumer.answer(Error.NONE) == RunCallback(CallbackKind.REVOKED, (T0, T1), "rebalance")
    consumer.answer()
    assert isinstance(consumer.request, JoinGroup)
    assert consumer.membership.owned == ()
    assert consumer.causes()[-1] == "group-rebalancing"


def test_eager_sticky_member_sends_its_last_assignment_as_user_data() -> None:
    consumer = ScriptedConsumer(["sticky"])
    consumer.answer()
    assert decode_subscription(consumer.request.protocols[0][1]).user_data is None
    consumer.join(T0, T1)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    while not isinstance(consumer.operation, Send):
        consumer.answer(Error.NONE)
    subscription = decode_subscription(consumer.request.protocols[0][1])
    assert tuple(subscription.owned) == ()
    assert subscription.user_data is not None
    sent = decode_sticky(subscription.user_data)
    assert (tuple(sent.partitions), sent.generation) == ((T0, T1), 1)


def test_cooperative_member_keeps_its_partitions_and_rejoins_after_revoking() -> None:
    consumer = ScriptedConsumer()
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


def test_each_join_has_its_reason() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    assert consumer.request.reason == ""
    consumer.answer(JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id="c" * 300))
    assert consumer.request.reason.startswith("need to re-join with the given member-id: ccc")
    assert len(consumer.request.reason) == 255
    consumer.answer(Disconnected())
    consumer.answer()
    consumer.answer()
    assert consumer.request.reason == "rebalance failed due to DisconnectException"


def test_only_the_chosen_assignor_receives_its_assignment() -> None:
    consumer = ScriptedConsumer(["range", "cooperative-sticky"])
    consumer.join(T0)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    while not isinstance(consumer.operation, Send):
        consumer.answer(Error.NONE)
    assert decode_subscription(consumer.request.protocols[1][1]).user_data == b"\xff\xff\xff\xff"


def test_poll_timeout_leaves_the_group_and_loses_partitions() -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    leave = consumer.membership.poll_timed_out()
    assert leave is not None
    assert leave.members[0].member_id == "c-1"
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), "poll-timeout")


def test_poll_timeout_of_a_static_member_sends_nothing() -> None:
    consumer = ScriptedConsumer(group_instance_id="i")
    consumer.join(T0)
    assert consumer.membership.poll_timed_out() is None
    assert consumer.membership.rejoin_needed


def test_rejected_commit_makes_the_member_rejoin() -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    consumer.membership.commit_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert consumer.causes()[-1] == "group-rebalancing"
    consumer.membership.commit_answered(Error.UNKNOWN_MEMBER_ID, consumer.membership.generation)
    assert consumer.membership.state is MemberState.UNJOINED


def test_only_the_leader_watches_the_metadata() -> None:
    follower, leader = ScriptedConsumer(), ScriptedConsumer()
    follower.join(T0)
    leader.answer()
    metadata = encode_subscription(Subscription(("t",), None, (), -1), 3)
    leader.answer(JOINED._replace(leader="c-1", members=(JoinGroupMember("c-1", None, metadata),)))
    leader.membership.assignor_begins()
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


@pytest.mark.parametrize("grows_while_assigning", [False, True])
def test_the_leader_fetches_metadata_before_it_assigns_and_notices_what_comes_then(
    grows_while_assigning: bool,
) -> None:
    """Topics of other members come with the fetch: they are no news (updateGroupSubscription)."""
    leader = ScriptedConsumer()
    leader.answer()
    other = encode_subscription(Subscription(("other",), None, (), -1), 3)
    leader.answer(JOINED._replace(leader="c-1", members=(JoinGroupMember("c-2", None, other),)))
    leader.topics = {**leader.topics, "other": 2}
    leader.membership.metadata_refreshed()
    leader.membership.assignor_begins()
    if grows_while_assigning:
        leader.topics = {**leader.topics, "other": 3}
        leader.membership.metadata_refreshed()
    leader.answer(())
    leader.answer(synced(T0))
    leader.answer()
    leader.membership.metadata_refreshed()
    assert leader.membership.rejoin_needed is grows_while_assigning


def test_close_commits_revokes_and_leaves() -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    assert consumer.close() == StopProcessing((T0,))
    assert consumer.answer() == CommitPositions()
    assert consumer.answer(Error.NONE) == RunCallback(CallbackKind.REVOKED, (T0,), "close")
    consumer.answer()
    assert isinstance(consumer.request, LeaveGroup)
    assert consumer.answer() is None
    assert consumer.emitted[-1] == events.MemberClosed("g", "c", "c-1", "left")


@pytest.mark.parametrize(
    ("settings", "leaves"),
    [({}, True), ({"group_instance_id": "i"}, False),
     ({"group_instance_id": "i", "leave_group_on_close": True}, True),
     ({"leave_group_on_close": False}, False)],
)  # fmt: skip
def test_who_leaves_on_close(settings: dict[str, Any], leaves: bool) -> None:
    consumer = ScriptedConsumer(enable_auto_commit=False, **settings)
    consumer.join()
    assert isinstance(consumer.close(), Send) is leaves


def test_member_that_closes_during_a_rebalance_loses_its_partitions() -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    consumer.answer()
    consumer.answer(Error.NONE)
    assert isinstance(consumer.request, JoinGroup)
    assert consumer.close() == StopProcessing((T0,))
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), "close")


def test_cooperative_only_if_every_assignor_is() -> None:
    assert ScriptedConsumer(["cooperative-sticky"]).membership.rebalance_protocol.value == "cooperative"
    assert ScriptedConsumer(["range", "cooperative-sticky"]).membership.rebalance_protocol.value == "eager"


def test_settings_that_kafka_refuses_are_refused() -> None:
    with pytest.raises(InputError, match=r"heartbeat\.interval\.ms"):
        ConsumerConfig("g", "c", ("t",), heartbeat_interval_ms=45_000)


def test_a_library_whose_poll_returns_nothing_during_a_round() -> None:
    """poll() returns when a round is over; the next one begins the second round."""
    consumer = ScriptedConsumer(profile=profile("kafka-python"))
    consumer.join(T0, T1)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert consumer.answer() == PauseFetching((T0, T1))
    assert consumer.answer() == CommitPositions()
    consumer.answer(Error.NONE)
    consumer.answer(JOINED._replace(generation=2))
    assert consumer.answer(synced(T0)) == RunCallback(CallbackKind.REVOKED, (T1,), "assignment")
    assert consumer.answer() == RunCallback(CallbackKind.ASSIGNED, (), "assignment")
    assert consumer.answer() == ResumeFetching((T0,))
    assert consumer.answer() == ReturnRecords()
    assert consumer.answer() == PauseFetching((T0,))
    assert consumer.answer() == CommitPositions()
    consumer.answer(Error.NONE)
    consumer.answer(JOINED._replace(generation=3))
    assert consumer.answer(synced(T0)) == RunCallback(CallbackKind.ASSIGNED, (), "assignment")
    assert consumer.answer() == ResumeFetching((T0,))
    assert consumer.answer() == AwaitPoll()


def test_a_member_without_partitions_has_nothing_to_pause() -> None:
    consumer = ScriptedConsumer(profile=profile("kafka-python"))
    consumer.join()
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    assert isinstance(consumer.answer(), Send)

"""A membership's answers to its drivers, and ends and pauses that no recording of Kafka's client has.

`tests/oracle/member` compares the member with Kafka's client, situation by situation.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupstorm.clients.operations import (
    AwaitPoll,
    Backoff,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    PauseFetching,
    ResumeFetching,
    RunCallback,
    StopProcessing,
)
from groupstorm.clients.profiles import PROFILES
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupMember
from tests.clients.scripted_consumer import JOINED, T0, ScriptedConsumer, synced, to_join


def joined(**settings: Any) -> ScriptedConsumer:
    """It owns partition 0 of the topic t."""
    consumer = ScriptedConsumer(**settings)
    consumer.join(T0)
    return consumer


def of_topic(member_id: str, topic: str) -> JoinGroupMember:
    return JoinGroupMember(member_id, None, encode_subscription(Subscription((topic,), None, (), -1), 3))


def leading(member: JoinGroupMember, skips: bool = False, **settings: Any) -> ScriptedConsumer:
    """It is the only member of a group that it leads, and has the JoinGroup response."""
    leader = ScriptedConsumer(**settings)
    leader.answer()
    leader.answer(JOINED._replace(leader="c-1", skip_assignment=skips, members=(member,)))
    return leader


def test_a_member_commits_and_is_settled_only_between_rounds() -> None:
    consumer = ScriptedConsumer()
    member = consumer.membership

    def looks() -> tuple[bool, bool, bool]:
        return member.may_commit, member.is_joining, member.is_settled

    assert looks() == (False, False, False), "it looks for the coordinator"
    to_join(consumer)
    assert looks() == (False, True, False), "JoinGroup"
    consumer.answer(JOINED)
    assert looks() == (False, True, False), "SyncGroup"
    consumer.join(T0)
    assert looks() == (True, False, True)
    member.request_rejoin("metadata-changed")
    assert looks() == (True, False, False)
    assert member.assigned_topic_ids == ()


def test_the_cause_of_a_loss_is_known_until_the_member_is_in_a_generation_again() -> None:
    consumer = joined()
    assert consumer.membership.lost_cause == ""
    consumer.membership.heartbeat_answered(Error.UNKNOWN_MEMBER_ID, consumer.membership.generation)
    assert (consumer.membership.lost_cause, consumer.membership.awaits_poll) == ("UNKNOWN_MEMBER_ID", False)
    consumer.join(T0)
    assert consumer.membership.lost_cause == ""


def test_after_a_poll_timeout_the_member_joins_at_the_next_poll_as_a_new_one() -> None:
    consumer = joined()
    leave = consumer.membership.poll_timed_out()
    assert leave is not None
    assert leave.members[0].reason == "consumer poll timeout has expired."
    waits = [consumer.membership.awaits_poll]
    request = to_join(consumer)
    assert (request.member_id, request.reason) == ("", "consumer pro-actively leaving the group")
    consumer.answer(JOINED._replace(member_id="c-2"))
    assert [*waits, consumer.membership.awaits_poll] == [True, False]


def test_the_user_data_is_that_of_the_last_assignment() -> None:
    consumer = ScriptedConsumer()
    to_join(consumer)
    consumer.answer(JOINED)
    assert consumer.membership.user_data is None
    consumer.answer(synced(T0)._replace(assignment=encode_assignment((T0,), b"mine")))
    assert consumer.membership.user_data == b"mine"


@pytest.mark.parametrize("grows_while_assigning", [False, True])
def test_the_leader_fetches_metadata_before_it_assigns_and_notices_changes_from_then_on(
    grows_while_assigning: bool,
) -> None:
    """Topics of other members come with the fetch: they are no news (updateGroupSubscription)."""
    leader = leading(of_topic("c-2", "other"))
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


def test_a_commit_looks_the_coordinator_up_if_it_has_moved_and_gives_up_if_it_is_refused() -> None:
    consumer = joined()
    assert consumer.close() == StopProcessing((T0,))
    assert consumer.answer() == CommitPositions()
    consumer.membership.commit_answered(Error.NOT_COORDINATOR, consumer.membership.generation)
    assert consumer.answer(Error.NOT_COORDINATOR) == Backoff(100)
    assert consumer.answer() == FindCoordinator()
    assert consumer.answer() == CommitPositions()
    assert consumer.membership.coordinator_known
    revoked = consumer.answer(Error.TOPIC_AUTHORIZATION_FAILED)
    assert revoked == RunCallback(CallbackKind.REVOKED, (T0,), "close")


def test_close_commits_for_thirty_seconds_at_most() -> None:
    consumer = joined(retry_backoff_ms=10_000)
    consumer.close()
    asked = [consumer.answer(), consumer.answer(Disconnected())]
    asked += [consumer.answer(), consumer.answer(Error.UNKNOWN_TOPIC_OR_PARTITION), consumer.answer()]
    assert asked == [CommitPositions(), Backoff(10_000)] * 2 + [CommitPositions()]
    assert consumer.answer(Disconnected()) == RunCallback(CallbackKind.REVOKED, (T0,), "close")


def test_a_member_of_kafka_python_pauses_in_each_round_and_goes_on_once_after_it() -> None:
    consumer = joined(profile=PROFILES["kafka-python"])
    for generation in (2, 3):
        consumer.membership.request_rejoin("metadata-changed")
        assert consumer.answer() == PauseFetching((T0,))
        to_join(consumer)
        consumer.answer(JOINED._replace(generation=generation))
        consumer.answer(synced(T0))
        assert consumer.answer() == ResumeFetching((T0,))
        assert consumer.answer() == AwaitPoll()
        assert consumer.answer() == AwaitPoll(), "it fetches already"


# -- which topics it watches: those of the whole group, its own, or those that match its pattern


def test_a_leader_that_is_told_to_skip_its_plan_watches_the_topics_of_that_time() -> None:
    consumer = leading(of_topic("c-1", "t"), skips=True, group_instance_id="i")
    consumer.answer(synced(T0))
    consumer.answer()
    consumer.membership.metadata_refreshed()
    assert consumer.causes() == ["first-join"]
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    assert consumer.causes()[-1] == "metadata-changed"


def test_a_leader_whose_topics_grow_while_it_syncs_joins_again_when_the_round_is_over() -> None:
    consumer = leading(of_topic("c-1", "t"))
    consumer.membership.assignor_begins()
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    consumer.answer(())
    consumer.answer(synced(T0))
    consumer.answer()
    assert consumer.causes() == ["first-join", "metadata-changed"]


def test_a_member_that_leads_no_more_watches_no_topics() -> None:
    consumer = leading(of_topic("c-1", "t"))
    consumer.membership.assignor_begins()
    consumer.answer(())
    consumer.answer(synced(T0))
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    consumer.join(T0)
    assert not consumer.membership.is_leader
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    assert consumer.causes() == ["first-join", "group-rebalancing"]


def test_every_librdkafka_member_watches_its_topics_from_the_joingroup_on() -> None:
    consumer = ScriptedConsumer(profile=PROFILES["librdkafka"])
    consumer.join(T0)
    consumer.topics = {"t": 3, "other": 1}
    consumer.membership.metadata_refreshed()
    assert consumer.causes() == ["first-join"]
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    assert consumer.causes()[-1] == "metadata-changed"


# -- patterns ----------------------------------------------------------------------------------------


def test_a_member_with_a_pattern_joins_again_when_other_topics_match() -> None:
    consumer = ScriptedConsumer(topic_pattern="t.?")
    consumer.topics = {"t": 3, "t1": 1, "other": 1}
    assert decode_subscription(to_join(consumer).protocols[0][1]).topics == ("t", "t1")
    consumer.join(T0)
    before = consumer.membership.subscribed
    consumer.topics = {"t": 3, "t1": 1, "other": 2, "t2": 1}
    consumer.membership.metadata_refreshed()
    assert (before, consumer.membership.subscribed) == (("t", "t1"), ("t", "t1", "t2"))
    assert consumer.causes()[-1] == "subscription-changed"
    assert decode_subscription(to_join(consumer).protocols[0][1]).topics == ("t", "t1", "t2")


def test_a_cooperative_member_gives_up_topics_that_match_no_more_before_it_joins() -> None:
    consumer = ScriptedConsumer(topic_pattern="t.?", enable_auto_commit=False)
    consumer.topics = {"t": 3, "t2": 1}
    other = TopicPartition("t2", 0)
    consumer.join(T0, other)
    consumer.topics = {"t": 3}
    consumer.membership.metadata_refreshed()
    assert consumer.answer() == RunCallback(CallbackKind.REVOKED, (other,), "subscription")
    assert decode_subscription(to_join(consumer).protocols[0][1]).owned == (T0,)

"""What a membership does with answers that come late, and with the limits of its settings.

Kafka 4.3.1: AbstractCoordinator and ConsumerCoordinator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    UserDataError,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupstorm.clients.member_session import Generation, MemberState
from groupstorm.clients.operations import (
    Assign,
    AwaitJoinInterval,
    AwaitPoll,
    Backoff,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    PauseFetching,
    ResumeFetching,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.clients.profiles import PROFILES
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    JoinGroup,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroup,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.trace.events import member as events
from tests.clients.scripted_consumer import JOINED, T0, T1, ScriptedConsumer, synced, to_join

OLD = Generation(0, "c-0", "cooperative-sticky")


def joined(*partitions: TopicPartition, **settings: Any) -> ScriptedConsumer:
    consumer = ScriptedConsumer(**settings)
    consumer.join(*partitions)
    return consumer


# -- answers of heartbeats and commits ---------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION]
)
def test_a_commit_of_an_older_generation_changes_nothing_whatever_its_answer(error: Error) -> None:
    member = joined(T0).membership
    member.commit_answered(error, OLD)
    assert (member.state, member.failure, member.rejoin_needed) == (MemberState.STABLE, None, False)


@pytest.mark.parametrize(
    ("error", "keeps_its_id"), [("UNKNOWN_MEMBER_ID", False), ("ILLEGAL_GENERATION", True)]
)
def test_a_refused_commit_resets_the_generation(error: str, keeps_its_id: bool) -> None:
    consumer = joined(T0)
    consumer.membership.commit_answered(Error[error], consumer.membership.generation)
    assert consumer.membership.generation == Generation(-1, "c-1" if keeps_its_id else "")
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), error)
    request = to_join(consumer)
    assert request.reason == f"encountered {error} from OFFSET_COMMIT response"
    assert decode_subscription(request.protocols[0][1]).owned == ()


def test_an_accepted_commit_changes_nothing() -> None:
    member = joined(T0).membership
    member.commit_answered(Error.NONE, member.generation)
    assert (member.coordinator_known, member.rejoin_needed, member.failure) == (True, False, None)


def test_a_commit_that_meets_a_rebalance_is_a_reason_only_while_the_member_is_stable() -> None:
    consumer = joined(T0)
    consumer.membership.heartbeat_answered(Error.UNKNOWN_MEMBER_ID, consumer.membership.generation)
    consumer.membership.commit_answered(Error.REBALANCE_IN_PROGRESS, OLD)
    assert to_join(consumer).reason == "encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
    stable = joined(T0)
    stable.membership.commit_answered(Error.REBALANCE_IN_PROGRESS, stable.membership.generation)
    assert to_join(stable).reason == "offset commit failed since group is already rebalancing"


def test_a_heartbeat_that_meets_a_rebalance_is_a_reason_only_while_the_member_is_stable() -> None:
    consumer = joined(T0)
    consumer.membership.heartbeat_answered(Error.ILLEGAL_GENERATION, consumer.membership.generation)
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, OLD)
    assert to_join(consumer).reason == "encountered ILLEGAL_GENERATION from HEARTBEAT response"


@pytest.mark.parametrize(
    ("error", "after_heartbeat", "after_commit"),
    [
        (Error.NOT_COORDINATOR, False, False),
        (Error.COORDINATOR_NOT_AVAILABLE, False, False),
        (Error.REQUEST_TIMED_OUT, True, False),
        (Error.COORDINATOR_LOAD_IN_PROGRESS, True, True),
    ],
)
def test_after_which_errors_the_coordinator_is_looked_up(
    error: Error, after_heartbeat: bool, after_commit: bool
) -> None:
    beating, committing = joined(T0).membership, joined(T0).membership
    beating.heartbeat_answered(error, beating.generation)
    committing.commit_answered(error, committing.generation)
    assert (beating.coordinator_known, committing.coordinator_known) == (after_heartbeat, after_commit)


# -- how far apart JoinGroups are (librdkafka) ----------------------------------------------------------


@pytest.mark.parametrize(("leads", "waits"), [(False, True), (True, False)])
def test_a_librdkafka_follower_keeps_a_second_between_its_joingroups(leads: bool, waits: bool) -> None:
    consumer = ScriptedConsumer(profile=PROFILES["librdkafka"])
    to_join(consumer)
    members = (JoinGroupMember("c-1", None, consumer.request.protocols[0][1]),)
    consumer.answer(JOINED._replace(leader="c-1", members=members) if leads else JOINED)
    if leads:
        consumer.answer((("c-1", b""),))
    after_refusal = consumer.answer(SyncGroupResponse(Error.REBALANCE_IN_PROGRESS))
    assert (after_refusal == AwaitJoinInterval(1000)) is waits
    to_join(consumer)


def test_a_librdkafka_member_that_has_got_its_id_joins_at_once() -> None:
    consumer = ScriptedConsumer(profile=PROFILES["librdkafka"])
    to_join(consumer)
    consumer.answer(JOINED._replace(error=Error.MEMBER_ID_REQUIRED))
    assert isinstance(consumer.operation, Send)


# -- max.poll.interval.ms ----------------------------------------------------------------------------


def test_after_a_poll_timeout_the_member_joins_at_the_next_poll_as_a_new_one() -> None:
    consumer = joined(T0)
    member = consumer.membership
    leave = member.poll_timed_out()
    assert leave is not None
    assert leave.members[0].reason == "consumer poll timeout has expired."
    waits = [member.awaits_poll]
    request = to_join(consumer)
    assert (request.member_id, request.reason) == ("", "consumer pro-actively leaving the group")
    consumer.answer(JOINED._replace(member_id="c-2"))
    assert [*waits, member.awaits_poll] == [True, False]


def test_only_a_poll_timeout_waits_for_the_next_poll() -> None:
    member = joined(T0).membership
    member.heartbeat_answered(Error.UNKNOWN_MEMBER_ID, member.generation)
    assert not member.awaits_poll


def test_a_poll_timeout_is_told_also_while_the_member_has_to_join_already() -> None:
    consumer = joined(T0)
    member = consumer.membership
    member.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, member.generation)
    member.poll_timed_out()
    assert consumer.causes()[1:] == ["group-rebalancing", "poll-timeout"]


def test_a_member_that_cannot_leave_sends_no_leavegroup() -> None:
    """The coordinator is not known, or the member is out of the group already."""
    lost = joined(T0).membership
    lost.coordinator_known = False
    assert lost.poll_timed_out() is None
    unjoined = joined(T0).membership
    unjoined.heartbeat_answered(Error.ILLEGAL_GENERATION, unjoined.generation)
    assert unjoined.generation.member_id == "c-1"
    assert unjoined.poll_timed_out() is None
    joining = ScriptedConsumer()
    joining.answer()
    assert joining.membership.state is MemberState.PREPARING_REBALANCE
    assert joining.membership.poll_timed_out() is None, "it has no id yet"


# -- limits ------------------------------------------------------------------------------------------


def test_no_joingroup_times_out_before_other_requests() -> None:
    consumer = ScriptedConsumer(max_poll_interval_ms=10_000, request_timeout_ms=30_000)
    consumer.answer()
    assert isinstance(consumer.operation, Send)
    assert consumer.operation.timeout_ms == 30_000
    consumer.answer(JOINED)
    assert isinstance(consumer.operation, Send)
    assert consumer.operation.timeout_ms == 30_000


def test_close_commits_for_thirty_seconds_at_most() -> None:
    consumer = joined(T0, retry_backoff_ms=10_000)
    assert consumer.close() == StopProcessing((T0,))
    asked = [consumer.answer(), consumer.answer(Disconnected())]
    asked += [consumer.answer(), consumer.answer(Error.UNKNOWN_TOPIC_OR_PARTITION), consumer.answer()]
    assert asked == [CommitPositions(), Backoff(10_000)] * 2 + [CommitPositions()]
    assert consumer.answer(Disconnected()) == RunCallback(CallbackKind.REVOKED, (T0,), "close")


def test_a_commit_looks_the_coordinator_up_if_it_has_moved_and_gives_up_if_it_is_refused() -> None:
    consumer = joined(T0)
    consumer.close()
    assert consumer.answer() == CommitPositions()
    consumer.membership.commit_answered(Error.NOT_COORDINATOR, consumer.membership.generation)
    assert consumer.answer(Error.NOT_COORDINATOR) == Backoff(100)
    assert consumer.answer() == FindCoordinator()
    assert consumer.answer() == CommitPositions()
    assert consumer.membership.coordinator_known
    assert consumer.answer(Error.TOPIC_AUTHORIZATION_FAILED) == RunCallback(
        CallbackKind.REVOKED, (T0,), "close"
    )


@pytest.mark.parametrize("limit_ms", [101, 200])
def test_before_it_joins_a_member_commits_for_max_poll_interval_at_most(limit_ms: int) -> None:
    """The pauses add up: after the first one time is left, after the second one none is."""
    consumer = joined(T0, max_poll_interval_ms=limit_ms, retry_backoff_ms=100)
    consumer.membership.request_rejoin("metadata-changed")
    assert [consumer.answer(), consumer.answer(Disconnected()), consumer.answer()] == [
        CommitPositions(),
        Backoff(100),
        CommitPositions(),
    ]
    consumer.answer(Disconnected())
    assert isinstance(consumer.request, JoinGroup)


def test_without_automatic_commits_nothing_is_committed() -> None:
    consumer = ScriptedConsumer(["range"], enable_auto_commit=False)
    consumer.join(T0)
    consumer.membership.request_rejoin("metadata-changed")
    assert consumer.answer() == RunCallback(CallbackKind.REVOKED, (T0,), "rebalance")


# -- responses of a round ----------------------------------------------------------------------------


def test_older_brokers_name_no_protocol() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED._replace(protocol_type=None))
    assert isinstance(consumer.request, SyncGroup)
    answer = synced(T0)._replace(protocol_type=None, protocol=None)
    assert consumer.answer(answer) == RunCallback(CallbackKind.ASSIGNED, (T0,), "assignment")


@pytest.mark.parametrize("change", [{"protocol_type": "connect"}, {"protocol": "range"}])
def test_a_syncgroup_that_is_answered_with_another_protocol_is_fatal(change: dict[str, Any]) -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED)
    consumer.answer(synced(T0)._replace(**change))
    assert consumer.membership.failure == "INCONSISTENT_GROUP_PROTOCOL"
    assert isinstance(consumer.request, LeaveGroup)


def test_a_joingroup_of_an_unknown_member_is_followed_by_one_without_an_id() -> None:
    consumer = joined(T0)
    consumer.membership.request_rejoin("metadata-changed")
    to_join(consumer)
    lost = consumer.answer(JoinGroupResponse(Error.UNKNOWN_MEMBER_ID))
    assert lost == RunCallback(CallbackKind.LOST, (T0,), "UNKNOWN_MEMBER_ID")
    request = to_join(consumer)
    assert (request.member_id, request.reason) == ("", "rebalance failed due to UnknownMemberIdException")


def test_a_syncgroup_without_an_answer_is_followed_by_another_round_after_a_pause() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED)
    assert consumer.answer(Disconnected()) == Backoff(100)
    assert consumer.answer() == FindCoordinator()
    consumer.answer()
    assert isinstance(consumer.request, JoinGroup)


def test_a_heartbeat_names_the_generation_and_a_fenced_one_ends_it() -> None:
    member = joined(T0, group_instance_id="i").membership
    asked = member.heartbeat(member.generation)
    assert (asked.member_id, asked.generation, asked.group_instance_id) == ("c-1", 1, "i")
    member.heartbeat_answered(Error.FENCED_INSTANCE_ID, member.generation)
    assert member.generation == Generation(-1, "")


def test_an_assignment_of_a_topic_that_is_not_subscribed_is_not_taken() -> None:
    consumer = joined(T0)
    consumer.membership.request_rejoin("metadata-changed")
    to_join(consumer)
    consumer.answer(JOINED._replace(generation=2))
    consumer.answer(synced(T0, TopicPartition("other", 0)))
    assert consumer.membership.owned == (T0,)
    assert consumer.causes()[-1] == "assignment-does-not-match-subscription"


def test_a_leader_leads_until_it_joins_again() -> None:
    consumer = ScriptedConsumer()
    leads = [consumer.membership.is_leader]
    consumer.answer()
    consumer.answer(JOINED._replace(leader="c-1"))
    consumer.answer(())
    consumer.answer(synced(T0))
    assert consumer.answer() == AwaitPoll()
    leads.append(consumer.membership.is_leader)
    consumer.membership.request_rejoin("metadata-changed")
    to_join(consumer)
    assert [*leads, consumer.membership.is_leader] == [False, True, False]


@pytest.mark.parametrize(("assigned", "joins_again"), [((T0,), False), ((T0, T1), True)])
def test_franz_go_checks_the_assignment_that_it_was_told_to_keep(
    assigned: tuple[TopicPartition, ...], joins_again: bool
) -> None:
    consumer = ScriptedConsumer(group_instance_id="i", profile=PROFILES["franz-go"])
    consumer.answer()
    metadata = encode_subscription(Subscription(("t",), None, (), -1), 3)
    me = (JoinGroupMember("c-1", "i", metadata),)
    consumer.answer(JOINED._replace(leader="c-1", skip_assignment=True, members=me))
    assert isinstance(consumer.operation, Assign)
    consumer.answer((("c-1", synced(*assigned).assignment),))
    assert consumer.request.assignments == (), "it was told to skip its plan"
    consumer.answer(synced(T0))
    consumer.answer()
    assert consumer.membership.rejoin_needed is joins_again


# -- the end -----------------------------------------------------------------------------------------


def test_a_static_member_that_closes_silently_says_so() -> None:
    consumer = joined(group_instance_id="i")
    assert consumer.close() is None
    assert consumer.emitted[-1] == events.MemberClosed("g", "c", "c-1", "silent")


@pytest.mark.parametrize("settings", [{}, {"group_instance_id": "i"}])
def test_a_member_that_has_closed_is_in_no_generation(settings: dict[str, Any]) -> None:
    consumer = joined(**settings)
    assert consumer.membership.heartbeating
    consumer.close()
    assert consumer.membership.generation == Generation(-1, "")
    assert consumer.membership.state is MemberState.UNJOINED


# -- what a driver asks a member ----------------------------------------------------------------------


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
    consumer = joined(T0)
    assert consumer.membership.lost_cause == ""
    consumer.membership.heartbeat_answered(Error.UNKNOWN_MEMBER_ID, consumer.membership.generation)
    assert consumer.membership.lost_cause == "UNKNOWN_MEMBER_ID"
    consumer.join(T0)
    assert consumer.membership.lost_cause == ""


def test_the_user_data_is_that_of_the_last_assignment() -> None:
    consumer = ScriptedConsumer()
    to_join(consumer)
    consumer.answer(JOINED)
    assert consumer.membership.user_data is None
    consumer.answer(synced(T0)._replace(assignment=encode_assignment((T0,), b"mine")))
    assert consumer.membership.user_data == b"mine"


@pytest.mark.parametrize("assignment", [b"", b"\0"])
def test_an_assignment_too_short_for_a_version_is_fatal(assignment: bytes) -> None:
    consumer = ScriptedConsumer()
    to_join(consumer)
    consumer.answer(JOINED)
    consumer.answer(synced()._replace(assignment=assignment))
    assert consumer.membership.failure == "IllegalStateException"


def test_an_assignment_of_nothing_but_a_version_cannot_be_read() -> None:
    """Kafka's client throws its SchemaException."""
    consumer = ScriptedConsumer()
    to_join(consumer)
    consumer.answer(JOINED)
    with pytest.raises(UserDataError, match="the bytes end at 2"):
        consumer.answer(synced()._replace(assignment=b"\0\1"))


@pytest.mark.parametrize(("interval_ms", "waits"), [(0, False), (1, True)])
def test_any_interval_between_joingroups_is_kept(interval_ms: int, waits: bool) -> None:
    profile = replace(PROFILES["librdkafka"], join_interval_ms=interval_ms)
    consumer = ScriptedConsumer(profile=profile)
    to_join(consumer)
    consumer.answer(JOINED)
    after_refusal = consumer.answer(SyncGroupResponse(Error.REBALANCE_IN_PROGRESS))
    assert (after_refusal == AwaitJoinInterval(interval_ms)) is waits


def test_a_member_pauses_in_each_round_and_goes_on_once_after_it() -> None:
    consumer = joined(T0, profile=PROFILES["kafka-python"])
    for generation in (2, 3):
        consumer.membership.request_rejoin("metadata-changed")
        assert consumer.answer() == PauseFetching((T0,))
        to_join(consumer)
        consumer.answer(JOINED._replace(generation=generation))
        consumer.answer(synced(T0))
        assert consumer.answer() == ResumeFetching((T0,))
        assert consumer.answer() == AwaitPoll()
        assert consumer.answer() == AwaitPoll(), "it fetches already"

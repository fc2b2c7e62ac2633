"""The commit before a reconciliation, attempt by attempt; what librdkafka's member tells."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.commits import CommitAttempts
from groupstorm.clients.consumer_group.operations import Left, ReportError
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS, Backoff
from groupstorm.clients.operations import CallbackKind, Disconnected, RunCallback, StopProcessing
from groupstorm.clients.profiles import PROFILES
from groupstorm.coordinator.errors import Error
from tests.clients.group_member import INTERVAL_MS, Driven, T

T0 = TopicPartition("t", 0)


def attempts() -> CommitAttempts:
    """It begins at 1,000 ms, may go on until 2,000 ms, and pauses for 100 ms, then for 200 ms."""
    return CommitAttempts(1_000, 2_000, Backoff(100, 1_000, lambda: 1.0))


def test_the_first_attempt_is_made_however_late_it_is() -> None:
    commit = attempts()
    assert (commit.wait_ms(900), commit.wait_ms(1_000), commit.wait_ms(5_000)) == (100, 0, 0)
    assert not commit.expired(5_000)
    commit.in_flight = True
    assert commit.wait_ms(5_000) == FOREVER_MS
    assert not commit.expired(5_000)


def test_a_failed_attempt_is_repeated_after_a_pause_that_doubles_until_the_deadline() -> None:
    commit = attempts()
    assert commit.goes_on(Error.COORDINATOR_LOAD_IN_PROGRESS, 1, 1_500)
    assert commit.wait_ms(1_500) == 100
    assert commit.goes_on(Disconnected(), 1, 1_999)
    assert commit.wait_ms(1_999) == 200
    assert (commit.expired(1_999), commit.expired(2_000)) == (False, True)
    assert not commit.goes_on(Error.COORDINATOR_LOAD_IN_PROGRESS, 1, 2_000)


@pytest.mark.parametrize(
    ("result", "epoch", "goes_on"),
    [
        (Error.NONE, 1, False),
        (Error.STALE_MEMBER_EPOCH, 1, True),
        (Error.STALE_MEMBER_EPOCH, 0, False),  # out of the group, there is no epoch to repeat it with
        (Error.UNKNOWN_TOPIC_OR_PARTITION, 1, False),
        (Error.UNKNOWN_MEMBER_ID, 1, False),
        (Error.REQUEST_TIMED_OUT, 1, True),
    ],
)
def test_which_results_are_followed_by_another_attempt(result: Error, epoch: int, goes_on: bool) -> None:
    assert attempts().goes_on(result, epoch, 1_000) is goes_on


LIBRDKAFKA = PROFILES["librdkafka"]


def test_librdkafkas_join_says_that_there_is_no_expression_and_its_leave_repeats_the_subscription() -> None:
    driven = Driven.stable(profile=LIBRDKAFKA)
    assert driven.heartbeat().regex is None
    driven.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    full = driven.heartbeat()
    assert (full.regex, full.topics, full.owned) == ("", ("t",), ((T, (0, 1)),))
    driven.answer(1)
    driven.member.unsubscribe()
    driven.callback()
    driven.step()
    [leave] = driven.sent()
    assert (leave.member_epoch, leave.topics, leave.owned) == (-1, None, None), "nothing new"


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_of_librdkafka_that_nobody_polls_leaves_at_the_next_poll(
    instance: str | None, epoch: int
) -> None:
    """The application has to run onPartitionsLost first (recorded of librdkafka 2.16)."""
    driven = Driven.stable(profile=LIBRDKAFKA, max_poll_interval_ms=12_000, group_instance_id=instance)
    driven.advance(12_000)
    driven.step()
    lost = RunCallback(CallbackKind.LOST, driven.member.owned, "poll-timeout")
    assert driven.look() == [StopProcessing(driven.member.owned), lost]
    driven.advance(5_000)
    driven.step()
    assert driven.sent() == [], "no heartbeat until somebody polls"
    driven.poll()
    driven.callback()
    driven.step()
    assert [request.member_epoch for request in driven.sent()] == [epoch, 0]


def test_a_member_of_librdkafka_that_is_closed_late_leaves_at_once() -> None:
    driven = Driven.stable(profile=LIBRDKAFKA, max_poll_interval_ms=12_000)
    driven.advance(12_000)
    driven.step()
    driven.look()
    driven.member.close()
    assert [request.member_epoch for request in driven.sent()] == [-1]


@pytest.mark.parametrize("profile", ["java", "librdkafka"])
def test_the_first_heartbeat_tells_everything_in_either_library(profile: str) -> None:
    driven = Driven.joining(profile=PROFILES[profile])
    [join] = driven.sent()
    assert (join.member_epoch, join.topics, join.owned) == (0, ("t",), ())
    assert join.regex == ("" if profile == "librdkafka" else None)
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    driven.step()
    [again] = driven.sent()
    assert (again.topics, again.owned, again.regex) == (join.topics, join.owned, join.regex)


@pytest.mark.parametrize(("profile", "acknowledges"), [("java", True), ("librdkafka", False)])
def test_librdkafka_does_not_acknowledge_that_it_got_nothing_and_tells_everything_at_the_interval(
    profile: str, acknowledges: bool
) -> None:
    driven = Driven.joining(profile=PROFILES[profile])
    driven.answer(1, {})
    driven.look()
    if acknowledges:
        assert driven.member.state is MemberState.RECONCILING
        driven.reconcile()
        driven.step()
        assert [request.topics for request in driven.sent()] == [None]
        return
    assert driven.member.state is MemberState.STABLE
    driven.step()
    assert driven.sent() == []
    assert (driven.heartbeat().topics, driven.member.epoch) == (("t",), 1)
    driven.answer(1)
    assert driven.heartbeat().topics is None, "once"


def test_a_poll_before_any_subscription_joins_nothing() -> None:
    driven = Driven()
    driven.poll()
    assert driven.step() == FOREVER_MS
    assert (driven.sent(), driven.member.state) == ([], MemberState.UNSUBSCRIBED)


def test_a_member_that_has_not_left_does_not_say_that_it_has() -> None:
    """An answer to an old request may have epoch -1."""
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(-1)
    assert (driven.look(), driven.member.state) == ([], MemberState.STABLE)
    assert driven.member.epoch == 1


def test_a_member_that_unsubscribes_before_it_has_joined_has_left_at_once() -> None:
    driven = Driven()
    driven.member.subscribe(frozenset({"t"}))
    driven.member.unsubscribe()
    assert driven.look() == [Left()]
    assert driven.member.state is MemberState.UNSUBSCRIBED


def test_a_member_that_was_not_polled_tells_everything_when_it_joins_again() -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000)
    driven.advance(12_000)
    assert driven.step() == INTERVAL_MS
    driven.callback()
    driven.look()
    driven.poll()
    driven.step()
    [join] = driven.sent()
    assert (join.member_epoch, join.topics, join.owned, join.rebalance_timeout_ms) == (0, ("t",), (), 12_000)


def test_onpartitionsassigned_is_not_called_once_nothing_is_subscribed() -> None:
    """poll() throws in its place, and the reconciliation begins anew."""
    driven = Driven.joining()
    driven.answer(1, {T: (0,)})
    driven.poll()
    driven.look()
    driven.member.subscribe(frozenset())
    assert not driven.member.callback_begins()
    assert driven.look() == [ReportError("IllegalArgumentException")]
    assert (driven.member.owned, driven.member.state) == ((), MemberState.RECONCILING)
    driven.member.subscribe(frozenset({"t"}))
    driven.poll()
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (T0,), "assignment")]
    driven.callback()
    assert driven.member.state is MemberState.ACKNOWLEDGING


def test_a_member_that_was_stale_once_leaves_like_any_other() -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000)
    driven.advance(12_000)
    driven.step()
    driven.answer(-1)
    driven.callback()
    driven.poll()
    driven.step()
    driven.answer(2, {T: (0,)})
    driven.reconcile()
    driven.step()
    driven.answer(2)
    driven.member.unsubscribe()
    driven.callback()
    driven.step()
    assert driven.member.state is MemberState.UNSUBSCRIBED
    driven.look()
    driven.answer(-1)
    assert driven.look() == [Left()]


def test_a_fenced_member_that_unsubscribes_has_left_and_owns_nothing() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    driven.look()
    driven.member.unsubscribe()
    assert driven.look() == [Left()]
    assert (driven.member.state, driven.member.owned) == (MemberState.UNSUBSCRIBED, ())
    assert driven.member.assigned_topic_ids == frozenset()
    driven.callback()
    driven.poll()
    assert driven.step() == FOREVER_MS
    assert (driven.sent(), driven.member.state) == ([], MemberState.UNSUBSCRIBED)


@pytest.mark.parametrize("answer", ["epoch -1", "fenced"])
def test_what_a_member_hears_while_it_unsubscribes_ends_its_leaving(answer: str) -> None:
    """onHeartbeatSuccess, transitionToFenced: unsubscribe() waits no longer."""
    driven = Driven.stable()
    driven.heartbeat()
    driven.member.unsubscribe()
    driven.look()
    driven.answer(-1) if answer == "epoch -1" else driven.refuse(Error.FENCED_MEMBER_EPOCH)
    assert driven.look() == [Left()]
    if answer == "fenced":
        assert driven.member.state is MemberState.UNSUBSCRIBED
        driven.callback()
        driven.member.subscribe(frozenset({"t"}))
        driven.poll()
        driven.step()
        driven.answer(2, {T: (0,)})
        driven.reconcile()
        driven.step()
        driven.member.unsubscribe()
        driven.callback()
        driven.step()
        assert driven.member.state is MemberState.UNSUBSCRIBED


def test_a_member_that_has_unsubscribed_is_assigned_nothing() -> None:
    driven = Driven.stable()
    assert driven.member.assigned_topic_ids == {T}
    driven.member.unsubscribe()
    driven.callback()
    assert driven.member.assigned_topic_ids == frozenset()


def test_an_expression_that_is_gone_when_a_stale_member_joins_again_is_not_taken_back() -> None:
    """The broker has forgotten the member, and what it has told."""
    driven = Driven(max_poll_interval_ms=12_000)
    driven.member.subscribe(regex="t.*")
    driven.poll()
    driven.step()
    driven.answer(1, {})
    driven.reconcile()
    driven.advance(12_000)
    driven.step()
    assert driven.member.state is MemberState.STALE
    driven.look()
    driven.member.subscribe(frozenset({"t"}))
    driven.poll()
    driven.step()
    [join] = driven.sent()
    assert (join.member_epoch, join.topics, join.regex) == (0, ("t",), None)


def test_a_librdkafka_member_that_got_partitions_acknowledges_them_and_tells_nothing_else() -> None:
    driven = Driven.joining(profile=LIBRDKAFKA)
    driven.answer(1, {T: (0,)})
    driven.look()
    driven.reconcile()
    driven.step()
    [acknowledgement] = driven.sent()
    assert (acknowledgement.owned, acknowledgement.topics) == (((T, (0,)),), None)

"""How a member of a consumer group leaves, is fenced, fails, or is not polled for too long."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.operations import Left, ReportError, SendHeartbeat
from groupstorm.clients.consumer_group.reactions import REACTIONS, Reaction, reaction
from groupstorm.clients.consumer_group.states import REACHED_FROM, MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.clients.operations import CallbackKind, FindCoordinator, RunCallback, StopProcessing
from groupstorm.coordinator.errors import Error
from tests.clients.group_member import Driven, T

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FENCES = [Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("error", FENCES)
def test_a_fenced_member_loses_everything_and_joins_again_at_once(error: Error) -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(error)
    assert driven.member.state is MemberState.FENCED
    assert driven.look() == [
        StopProcessing((T0, T1)),
        RunCallback(CallbackKind.LOST, (T0, T1), error.name),
    ]
    driven.step()
    assert driven.sent() == [], "not before the callback has returned"
    driven.callback(failed=True)
    assert driven.member.owned == ()
    driven.step()
    assert [(request.member_epoch, request.topics) for request in driven.sent()] == [(0, ("t",))]


def test_a_fenced_member_without_partitions_joins_at_once() -> None:
    driven = Driven.joining()
    driven.look()
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    driven.step()
    assert [request.member_epoch for request in driven.sent()] == [0]


@pytest.mark.parametrize(
    "error",
    [
        Error.UNRELEASED_INSTANCE_ID,
        Error.FENCED_INSTANCE_ID,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_REQUEST,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.UNSUPPORTED_VERSION,
        Error.INVALID_REGULAR_EXPRESSION,
        Error.GROUP_ID_NOT_FOUND,
    ],
)
def test_a_fatal_error_ends_the_member(error: Error) -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(error)
    assert driven.member.state is MemberState.FATAL
    assert driven.look() == [
        ReportError(error.name),
        StopProcessing((T0, T1)),
        RunCallback(CallbackKind.LOST, (T0, T1), error.name),
    ]
    driven.callback()
    driven.member.subscribe(frozenset({"t"}))
    driven.poll()
    assert driven.step() == FOREVER_MS
    assert (driven.member.state, driven.look()) == (MemberState.FATAL, [])


def test_errors_that_are_not_in_the_table_are_fatal() -> None:
    assert {error for error in Error if reaction(error) is not Reaction.FATAL} == REACTIONS.keys()


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_nobody_polls_leaves_and_joins_at_the_next_poll(
    instance: str | None, epoch: int
) -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000, group_instance_id=instance)
    driven.advance(12_000)
    driven.step()
    left, *lost = driven.look()
    assert isinstance(left, SendHeartbeat)
    assert (left.request.member_epoch, left.request.owned, left.awaited) == (epoch, (), False)
    assert lost == [StopProcessing((T0, T1)), RunCallback(CallbackKind.LOST, (T0, T1), "poll-timeout")]
    assert driven.member.state is MemberState.STALE
    driven.answer(epoch)
    driven.poll()
    assert driven.member.state is MemberState.STALE, "until the callback has returned"
    driven.callback()
    driven.step()
    assert [request.member_epoch for request in driven.sent()] == [0]


def test_a_stale_member_that_has_lost_everything_waits_for_poll() -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000)
    driven.advance(12_000)
    driven.step()
    driven.callback()
    driven.look()
    driven.step()
    assert driven.sent() == []
    driven.advance(60_000)
    driven.poll()
    driven.step()
    assert len(driven.sent()) == 1


def test_a_late_error_does_not_move_a_stale_member() -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000)
    driven.heartbeat()
    driven.advance(12_000)
    driven.step()
    driven.look()
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    assert (driven.member.state, driven.look()) == (MemberState.STALE, [])


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_unsubscribe_revokes_and_leaves(instance: str | None, epoch: int) -> None:
    driven = Driven.stable(group_instance_id=instance)
    driven.member.unsubscribe()
    assert driven.look() == [
        StopProcessing((T0, T1)),
        RunCallback(CallbackKind.REVOKED, (T0, T1), "unsubscribe"),
    ]
    driven.callback()
    driven.step()
    [leave] = driven.sent()
    assert (leave.member_epoch, leave.topics, leave.owned) == (epoch, (), ())
    assert driven.member.state is MemberState.UNSUBSCRIBED
    driven.answer(epoch)
    assert driven.look() == [Left()]


@pytest.mark.parametrize("error", [*FENCES, Error.GROUP_ID_NOT_FOUND, Error.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_leave_is_sent_once_whatever_the_answer_is(error: Error) -> None:
    driven = Driven.stable()
    driven.member.unsubscribe()
    driven.callback()
    driven.step()
    driven.look()
    driven.refuse(error)
    assert Left() in driven.look()
    assert driven.member.state is MemberState.UNSUBSCRIBED
    driven.advance(10_000)
    driven.step()
    assert driven.sent() == []


def test_a_member_without_coordinator_leaves_silently() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.disconnect()
    driven.member.unsubscribe()
    driven.callback()
    driven.look()
    driven.step()
    assert driven.look() == [Left()]


def test_a_member_that_is_fenced_while_it_unsubscribes_does_not_leave_again() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.member.unsubscribe()
    driven.look()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    assert driven.look() == [Left()]
    driven.callback()
    driven.step()
    assert driven.sent() == []


def test_a_member_that_is_in_no_group_has_left_already() -> None:
    driven = Driven()
    driven.member.unsubscribe()
    assert driven.look() == [Left()]


@pytest.mark.parametrize(
    ("instance", "leaves", "epochs"),
    [
        (None, None, [-1]),
        (None, True, [-1]),
        ("i", None, [-2]),
        ("i", True, [-1]),
        ("i", False, [-2]),
    ],
)
def test_close_leaves_as_its_option_says(
    instance: str | None, leaves: bool | None, epochs: list[int]
) -> None:
    driven = Driven.stable(group_instance_id=instance, leave_group_on_close=leaves)
    assert driven.member.closing_callback() == RunCallback(CallbackKind.REVOKED, (T0, T1), "close")
    driven.member.close()
    driven.step()
    assert [request.member_epoch for request in driven.sent()] == epochs
    driven.answer(epochs[0])
    assert driven.look() == [Left()]


def test_the_last_heartbeat_of_a_close_that_takes_too_long() -> None:
    driven = Driven.stable()
    driven.member.close()
    driven.member.end()
    [last] = driven.look()
    assert isinstance(last, SendHeartbeat)
    assert (last.request.member_epoch, last.awaited) == (-1, False)


def test_a_dynamic_member_that_stays_sends_no_last_heartbeat() -> None:
    driven = Driven.stable(leave_group_on_close=False)
    driven.member.close()
    driven.member.end()
    assert driven.look() == []


def test_a_member_outside_the_group_has_lost_its_partitions_when_it_closes() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    assert driven.member.closing_callback() == RunCallback(CallbackKind.LOST, (T0, T1), "close")
    assert Driven().member.closing_callback() is None


def test_close_does_not_wait_for_the_answer_to_a_heartbeat() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.member.close()
    driven.step()
    assert [request.member_epoch for request in driven.sent()] == [-1]
    driven.answer(1)
    assert driven.look() == []
    driven.answer(-1)
    assert driven.look() == [Left()]


def test_a_lost_connection_ends_a_leave() -> None:
    driven = Driven.stable()
    driven.member.close()
    driven.step()
    driven.look()
    driven.disconnect()
    assert driven.look() == [FindCoordinator(), Left()]


def test_every_state_can_be_reached() -> None:
    assert REACHED_FROM.keys() == set(MemberState)
    assert {before for states in REACHED_FROM.values() for before in states} == set(MemberState) - {
        MemberState.FATAL
    }


def test_an_assignment_that_reaches_a_leaving_member_is_dropped() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.member.unsubscribe()
    driven.look()
    driven.answer(3, {T: (2,)})
    assert (driven.member.state, driven.member.epoch, driven.look()) == (MemberState.PREPARE_LEAVING, 3, [])


def test_a_member_outside_the_group_that_unsubscribes_owns_and_subscribes_to_nothing() -> None:
    """At once, although the callback of its loss has not ended."""
    driven = Driven.stable(max_poll_interval_ms=12_000)
    driven.advance(12_000)
    driven.step()
    assert (driven.member.state, driven.member.owned) == (MemberState.STALE, (T0, T1))
    driven.look()
    driven.member.unsubscribe()
    assert driven.look() == [Left()]
    assert driven.member.owned == ()
    driven.callback()
    driven.poll()
    driven.step()
    [join] = driven.sent()
    assert (join.member_epoch, join.topics) == (0, ())


def test_a_member_that_closes_and_stays_does_nothing_once_nobody_polls() -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000)
    driven.member.close(leave_group=False)
    driven.advance(12_000)
    assert driven.step() == FOREVER_MS
    assert driven.look() == []


def test_a_joining_member_that_unsubscribes_has_lost_what_a_late_callback_gave_it() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (0,)})
    driven.poll()
    driven.heartbeat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    driven.callback()
    assert (driven.member.state, driven.member.epoch) == (MemberState.JOINING, 0)
    assert driven.member.owned == (T0,)
    driven.look()
    driven.member.unsubscribe()
    assert driven.look() == [RunCallback(CallbackKind.LOST, (T0,), "unsubscribe")]


def test_a_member_that_joins_again_has_no_assignment_before_the_callback_of_its_leave_ends() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.member.unsubscribe()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    driven.member.subscribe(frozenset({"t"}))
    assert driven.member.assigned_topic_ids == {T}
    driven.poll()
    assert driven.member.state is MemberState.JOINING
    assert driven.member.assigned_topic_ids == frozenset()

"""How a member of a consumer group goes from what it owns to what the broker assigns."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.operations import CommitWithEpoch, RefreshTopics, ReportError
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import (
    CallbackKind,
    FindCoordinator,
    RunCallback,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error
from tests.clients.group_member import Driven, T, U

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
U0 = TopicPartition("u", 0)


def test_onpartitionsassigned_finds_the_new_partitions_owned() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (1, 0)})
    driven.look()
    driven.poll()
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (T0, T1), "assignment")]
    assert list(driven.member.owned) == []
    driven.member.callback_begins()
    assert list(driven.member.owned) == [T0, T1]


def test_onpartitionsassigned_is_called_for_an_empty_assignment_too() -> None:
    driven = Driven.joining()
    driven.answer(1, {})
    assert driven.member.state is MemberState.RECONCILING
    driven.look()
    driven.poll()
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (), "assignment")]


def test_what_is_revoked_stops_first_and_is_owned_until_something_is_assigned() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(1, {T: (1, 2)})
    driven.poll()
    assert driven.look() == [
        StopProcessing((T0,)),
        RunCallback(CallbackKind.REVOKED, (T0,), "assignment"),
    ]
    driven.callback()
    assert list(driven.member.owned) == [T0, T1]
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (T2,), "assignment")]
    driven.callback()
    assert list(driven.member.owned) == [T1, T2]
    assert driven.member.state is MemberState.ACKNOWLEDGING


def test_a_revocation_waits_for_poll() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.step()
    assert driven.look() == []


def test_without_commits_an_assignment_that_only_adds_does_not_wait_for_poll() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (0,)})
    driven.look()
    driven.step()
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (T0,), "assignment")]


def revoking(**config: int) -> Driven:
    """It has asked for the commit before it gives t-0 up."""
    driven = Driven.committing(**config)
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.look()
    driven.poll()
    driven.step()
    return driven


def test_a_member_commits_before_anything_else_and_only_in_poll() -> None:
    driven = Driven.committing()
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.step()
    assert driven.look() == [], "only in poll() are the positions final"
    driven.poll()
    driven.step()
    assert driven.look() == [StopProcessing((T0,)), CommitWithEpoch(1)]
    driven.committed(Error.NONE)
    assert driven.look() == [RunCallback(CallbackKind.REVOKED, (T0,), "assignment")]


def test_without_positions_there_is_no_commit() -> None:
    driven = Driven.committing()
    driven.has_positions = False
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.poll()
    assert not any(isinstance(one, CommitWithEpoch) for one in driven.look())


@pytest.mark.parametrize("error", [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.STALE_MEMBER_EPOCH])
def test_a_commit_is_repeated_after_a_pause(error: Error) -> None:
    driven = revoking()
    driven.committed(error)
    driven.look()
    assert driven.step() == 100
    driven.advance(100)
    driven.step()
    assert driven.look() == [CommitWithEpoch(1)]


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.REQUEST_TIMED_OUT])
def test_a_commit_that_has_no_coordinator_waits_for_it(error: Error) -> None:
    driven = revoking()
    driven.look()
    driven.committed(error)
    assert driven.look() == [FindCoordinator()]
    driven.advance(5_000)
    driven.step()
    assert driven.look() == []
    driven.member.coordinator_found()
    driven.step()
    assert CommitWithEpoch(1) in driven.look()


@pytest.mark.parametrize(
    "error", [Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.GROUP_AUTHORIZATION_FAILED]
)
def test_a_commit_that_fails_for_good_does_not_stop_the_revocation(error: Error) -> None:
    driven = revoking()
    driven.look()
    driven.committed(error)
    assert driven.look() == [RunCallback(CallbackKind.REVOKED, (T0,), "assignment")]


def test_a_commit_is_not_repeated_after_max_poll_interval_ms() -> None:
    driven = revoking(max_poll_interval_ms=60_000)
    driven.look()
    driven.advance(59_999)
    driven.poll()
    driven.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert driven.look() == []
    driven.advance(1)
    driven.step()
    assert RunCallback(CallbackKind.REVOKED, (T0,), "assignment") in driven.look()


def test_a_member_that_is_out_of_the_group_does_not_repeat_its_commit() -> None:
    driven = revoking()
    driven.heartbeat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    driven.committed(Error.STALE_MEMBER_EPOCH)
    driven.look()
    driven.advance(1_000)
    driven.step()
    assert driven.look() == []


def test_another_assignment_waits_until_this_one_is_acknowledged() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.poll()
    driven.heartbeat()
    driven.answer(1, {T: (1, 2)})
    driven.look()
    driven.callback()
    driven.callback()
    assert list(driven.member.owned) == [T1]
    driven.step()
    assert [request.owned for request in driven.sent()] == [((T, (1,)),)]
    assert driven.member.state is MemberState.RECONCILING
    driven.reconcile()
    assert list(driven.member.owned) == [T1, T2]


def test_an_assignment_that_changes_back_is_acknowledged_again() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(2, {T: (1,)})
    driven.advance(5_000)
    driven.step()
    driven.look()
    driven.answer(3, {T: (0, 1)})
    driven.step()
    assert driven.member.state is MemberState.ACKNOWLEDGING
    driven.step()
    assert [request.owned for request in driven.sent()] == [((T, (0, 1)),)]


def test_the_same_assignment_changes_nothing() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(2, {T: (0, 1)})
    assert (driven.member.state, driven.member.epoch) == (MemberState.STABLE, 2)


def test_topics_without_a_name_wait_for_metadata() -> None:
    driven = Driven.joining()
    del driven.names[U]
    driven.answer(1, {T: (0,), U: (0,)})
    driven.look()
    driven.poll()
    assert driven.look() == [RefreshTopics(), RunCallback(CallbackKind.ASSIGNED, (T0,), "assignment")]
    driven.callback()
    driven.step()
    assert [request.owned for request in driven.sent()] == [((T, (0,)),)]
    driven.names[U] = "u"
    driven.answer(1)
    driven.step()
    driven.reconcile()
    assert list(driven.member.owned) == [T0, U0]


def test_a_member_sends_a_heartbeat_after_every_answer_while_a_topic_has_no_name() -> None:
    """Kafka's does, because it acknowledges the same partitions again and again."""
    driven = Driven.stable()
    del driven.names[U]
    driven.heartbeat()
    driven.answer(2, {T: (0, 1), U: (0,)})
    driven.step()
    driven.look()
    for _ in range(3):
        driven.step()
        assert [request.member_epoch for request in driven.sent()] == [2]
        driven.answer(2)


def test_what_can_be_named_is_acknowledged_if_only_the_rest_is_new() -> None:
    driven = Driven.stable()
    del driven.names[U]
    driven.heartbeat()
    driven.answer(2, {T: (0, 1), U: (0,)})
    driven.step()
    assert RefreshTopics() in driven.look()
    assert driven.member.state is MemberState.ACKNOWLEDGING


def test_names_of_owned_topics_stay_known() -> None:
    driven = Driven.stable()
    driven.names.clear()
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.poll()
    assert RefreshTopics() not in driven.look()


def test_a_listener_that_fails_is_called_again_at_the_next_poll() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (0, 1)})
    driven.poll()
    driven.callback(failed=True)
    assert driven.member.state is MemberState.RECONCILING
    driven.look()
    driven.poll()
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (), "assignment")], "it owns them already"


def test_a_revocation_that_fails_assigns_nothing() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.answer(1, {T: (1, 2)})
    driven.poll()
    driven.look()
    driven.callback(failed=True)
    assert driven.look() == []
    driven.poll()
    assert driven.look() == [RunCallback(CallbackKind.REVOKED, (T0,), "assignment")]


def test_a_member_that_joins_again_gives_up_what_it_was_reconciling() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (0,)})
    driven.poll()
    driven.heartbeat()
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    driven.step()
    driven.answer(2, {T: (1,)})
    driven.look()
    driven.callback()
    assert driven.member.state is MemberState.RECONCILING
    driven.poll()
    assert driven.look() == [
        StopProcessing((T0,)),
        RunCallback(CallbackKind.REVOKED, (T0,), "assignment"),
    ]


def test_a_member_that_has_unsubscribed_takes_no_assignment() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (0,)})
    driven.poll()
    driven.member.unsubscribe()
    driven.look()
    assert not driven.member.callback_begins()
    assert driven.look() == [ReportError("IllegalArgumentException")]
    assert list(driven.member.owned) == []


def test_a_member_waits_for_poll_while_it_has_something_to_begin_there() -> None:
    driven = Driven.stable(max_poll_interval_ms=12_000)
    looks: list[tuple[str, bool]] = []

    def look() -> None:
        looks.append((driven.member.state.value, driven.member.waits_for_poll))

    look()
    driven.heartbeat()
    driven.answer(1, {T: (0, 1, 2)})
    look()
    driven.poll()
    look()
    driven.callback()
    look()
    driven.advance(12_000)
    driven.step()
    look()
    assert looks == [
        ("STABLE", False),
        ("RECONCILING", True),
        ("RECONCILING", False),
        ("ACKNOWLEDGING", False),
        ("STALE", True),
    ]


def test_a_partition_that_comes_back_stops_again_when_it_is_given_up_again() -> None:
    driven = Driven.stable()
    for _ in range(2):
        driven.heartbeat()
        driven.answer(1, {T: (1,)})
        driven.poll()
        assert StopProcessing((T0,)) in driven.look()
        driven.callback()
        driven.callback()
        driven.step()
        driven.answer(1, {T: (0, 1)})
        driven.reconcile()
        driven.step()
        driven.answer(1)


def test_a_member_that_joins_again_knows_no_names() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    driven.callback()
    driven.step()
    driven.names.clear()
    driven.answer(2, {T: (0,)})
    driven.look()
    driven.poll()
    assert RefreshTopics() in driven.look()
    assert driven.member.owned == ()


def test_a_commit_of_a_member_that_is_fenced_meanwhile_names_no_member() -> None:
    driven = Driven.committing()
    driven.heartbeat()
    driven.answer(1, {T: (1,)})
    driven.advance(5_000)
    driven.step()
    driven.poll()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    assert driven.member.epoch == 0
    driven.look()
    driven.step()
    assert driven.look() == [CommitWithEpoch(-1)]


def test_an_answer_that_repeats_what_was_reconciled_makes_the_member_stable() -> None:
    """The callback of an earlier loss ends while the member reconciles, and clears what it has to reach."""
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    driven.member.unsubscribe()
    driven.member.subscribe(frozenset({"t"}))
    driven.poll()
    driven.step()
    driven.answer(2, {T: (0,)})
    driven.poll()
    driven.callback()
    driven.callback()
    states = [driven.member.state]
    driven.step()
    states.append(driven.member.state)
    driven.answer(2, {T: (0,)})
    states.append(driven.member.state)
    assert states == [MemberState.ACKNOWLEDGING, MemberState.RECONCILING, MemberState.STABLE]

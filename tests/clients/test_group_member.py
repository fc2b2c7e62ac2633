"""A member of a consumer group: its drivers' questions, librdkafka's ways, and ends that no recording has.

`tests/oracle/group_member` compares the member with Kafka's classes, script by script.
"""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import Backoff
from groupstorm.clients.error_tables import REACTIONS, Reaction, reaction
from groupstorm.clients.operations import (
    CallbackKind,
    FindCoordinator,
    RunCallback,
    SendHeartbeat,
    StopProcessing,
)
from groupstorm.clients.profiles import PROFILES
from groupstorm.coordinator.errors import Error
from tests.clients.group_member import Driven, T

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LIBRDKAFKA = PROFILES["librdkafka"]


def test_errors_that_are_not_in_the_table_are_fatal() -> None:
    assert {error for error in Error if reaction(error) is not Reaction.FATAL} == REACTIONS.keys()


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, None])
def test_a_member_that_loses_its_coordinator_asks_for_it(error: Error | None) -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.disconnect() if error is None else driven.refuse(error)
    assert driven.look() == [FindCoordinator()]


def test_a_longest_pause_below_the_first_is_the_only_pause() -> None:
    """retry.backoff.max.ms and retry.backoff.ms; the shortest pause that doubles is 1 ms."""
    assert [Backoff(100, 50).pause_ms(attempts) for attempts in range(3)] == [50, 50, 50]
    assert [Backoff(1, 8).pause_ms(attempts) for attempts in range(5)] == [1, 2, 4, 8, 8]


# -- reconciliation ------------------------------------------------------------------------------


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
    look()  # a poll() would wake the network thread, which acknowledges
    driven.step()
    look()
    driven.advance(12_000)
    driven.step()
    look()
    assert looks == [
        ("STABLE", False),
        ("RECONCILING", True),
        ("RECONCILING", False),
        ("ACKNOWLEDGING", True),
        ("STABLE", False),
        ("STALE", True),
    ]


# -- ends ----------------------------------------------------------------------------------------


def test_a_member_outside_the_group_has_lost_its_partitions_when_it_closes() -> None:
    driven = Driven.stable()
    assert driven.member.closing_callback() == RunCallback(CallbackKind.REVOKED, (T0, T1), "close")
    driven.heartbeat()
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    assert driven.member.closing_callback() == RunCallback(CallbackKind.LOST, (T0, T1), "close")
    assert Driven().member.closing_callback() is None


def test_nobody_waits_for_the_answer_to_the_leave_of_a_member_that_is_not_polled_or_closes_late() -> None:
    stale = Driven.stable(max_poll_interval_ms=12_000)
    stale.advance(12_000)
    stale.step()
    late = Driven.stable()
    late.member.close()
    late.member.end()
    for driven in (stale, late):
        leave = driven.look()[0]
        assert isinstance(leave, SendHeartbeat)
        assert (leave.request.member_epoch, leave.awaited) == (-1, False)


# -- librdkafka (recorded of version 2.16) ----------------------------------------------------------


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
    """The application has to run onPartitionsLost first."""
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


def test_librdkafka_does_not_acknowledge_that_it_got_nothing_and_tells_everything_at_the_interval() -> None:
    driven = Driven.joining(profile=LIBRDKAFKA)
    driven.answer(1, {})
    driven.look()
    assert driven.member.state is MemberState.STABLE
    driven.step()
    assert driven.sent() == []
    assert (driven.heartbeat().topics, driven.member.epoch) == (("t",), 1)
    driven.answer(1)
    assert driven.heartbeat().topics is None, "once"


def test_a_librdkafka_member_that_got_partitions_acknowledges_them_and_tells_nothing_else() -> None:
    driven = Driven.joining(profile=LIBRDKAFKA)
    driven.answer(1, {T: (0,)})
    driven.look()
    driven.reconcile()
    driven.step()
    [acknowledgement] = driven.sent()
    assert (acknowledgement.owned, acknowledgement.topics) == (((T, (0,)),), None)

"""When a member of a consumer group sends a heartbeat, and what the heartbeat carries."""

from __future__ import annotations

import pytest

from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.consumer_group.operations import ReportError
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS, Backoff, HeartbeatTiming, Timer
from groupstorm.clients.operations import FindCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from tests.clients.group_member import INTERVAL_MS, Driven, T, U


def test_a_member_joins_at_the_first_poll_after_subscribe() -> None:
    driven = Driven()
    driven.member.subscribe(frozenset({"t"}))
    assert driven.step() == FOREVER_MS
    assert driven.sent() == []
    driven.poll()
    driven.step()
    assert [request.member_epoch for request in driven.sent()] == [0]


def test_a_join_carries_everything() -> None:
    driven = Driven(
        group_instance_id="i", client_rack="r", group_remote_assignor="range", max_poll_interval_ms=60_000
    )
    driven.member.subscribe(frozenset({"u", "t"}))
    driven.poll()
    driven.step()
    assert driven.sent() == [
        ConsumerGroupHeartbeat(
            "g", "m", 0, "i", "r", 60_000, ("t", "u"), None, "range", (), version=1, client_id="c"
        )
    ]


def test_a_later_heartbeat_carries_only_who_sends_it() -> None:
    driven = Driven.stable(group_instance_id="i", client_rack="r", group_remote_assignor="range")
    assert driven.heartbeat() == ConsumerGroupHeartbeat("g", "m", 1, "i", client_id="c")


@pytest.mark.parametrize("problem", [Error.COORDINATOR_LOAD_IN_PROGRESS, None])
def test_after_an_error_or_a_lost_connection_it_carries_everything_but_the_rack(
    problem: Error | None,
) -> None:
    driven = Driven.stable(client_rack="r", group_remote_assignor="range")
    driven.heartbeat()
    driven.disconnect() if problem is None else driven.refuse(problem)
    driven.member.coordinator_found()
    full = ConsumerGroupHeartbeat(
        "g", "m", 1, None, None, 300_000, ("t",), None, "range", ((T, (0, 1)),), client_id="c"
    )
    assert driven.heartbeat() == full


def test_a_new_subscription_waits_for_the_interval() -> None:
    driven = Driven.stable()
    driven.member.subscribe(frozenset({"t", "u"}))
    driven.poll()
    driven.step()
    assert driven.sent() == []
    assert driven.heartbeat().topics == ("t", "u")


def test_a_regular_expression_is_told_once_and_then_taken_back() -> None:
    driven = Driven()
    driven.member.subscribe(regex="t.*")
    driven.poll()
    driven.step()
    [join] = driven.sent()
    assert (join.topics, join.regex) == ((), "t.*")
    driven.answer(1, {})
    driven.reconcile()
    driven.step()
    assert [request.regex for request in driven.sent()] == [None]
    driven.answer(1)
    driven.member.unsubscribe()
    driven.step()
    assert [(request.member_epoch, request.regex) for request in driven.sent()] == [(-1, "")]


def test_the_interval_is_the_brokers_and_runs_from_the_request() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.advance(2_000)
    driven.answer(1)
    driven.advance(INTERVAL_MS - 2_000 - 1)
    assert driven.step() == 1
    assert driven.sent() == []
    driven.advance(1)
    driven.step()
    assert len(driven.sent()) == 1


def test_a_changed_interval_runs_from_the_answer() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.advance(400)
    driven.answer(1, interval=1_000)
    driven.advance(999)
    assert driven.step() == 1
    driven.advance(1)
    driven.step()
    assert len(driven.sent()) == 1


def test_no_heartbeat_leaves_while_an_answer_is_missing() -> None:
    driven = Driven.joining()
    assert driven.member.state is MemberState.JOINING
    driven.look()
    driven.advance(60_000)
    driven.step()
    assert driven.sent() == []


def test_an_acknowledgement_leaves_at_once() -> None:
    driven = Driven.joining()
    driven.answer(1, {T: (0,)})
    driven.look()
    driven.reconcile()
    assert driven.member.state.value == "ACKNOWLEDGING"
    driven.step()
    assert [request.owned for request in driven.sent()] == [((T, (0,)),)]
    assert driven.member.state.value == "STABLE"


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
def test_a_member_sends_as_soon_as_it_has_found_the_coordinator(error: Error) -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(error)
    assert driven.look() == [FindCoordinator()]
    assert driven.step() == FOREVER_MS
    driven.member.coordinator_found()
    driven.step()
    assert len(driven.sent()) == 1


def test_pauses_double_up_to_retry_backoff_max_ms() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    waits = []
    for _ in range(6):
        driven.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
        waits.append(driven.step())
        driven.advance(waits[-1])
        driven.step()
    assert waits == [100, 200, 400, 800, 1_000, 1_000]


def test_a_lost_connection_pauses_too() -> None:
    driven = Driven.stable(retry_backoff_ms=300)
    driven.heartbeat()
    driven.disconnect()
    assert driven.look() == [FindCoordinator()]
    driven.member.coordinator_found()
    assert driven.step() == 300


def test_jitter_stretches_a_pause_below_the_longest() -> None:
    driven = Driven.stable(jitter=lambda: 1.2, retry_backoff_max_ms=200)
    driven.heartbeat()
    waits = []
    for _ in range(2):
        driven.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
        waits.append(driven.step())
        driven.advance(waits[-1])
        driven.step()
    assert waits == [120, 200]


def test_a_longest_pause_below_the_first_is_the_only_pause() -> None:
    assert [Backoff(100, 50, lambda: 1.2).pause_ms(attempts) for attempts in range(3)] == [50, 50, 50]


def test_an_error_that_only_poll_throws_changes_nothing_else() -> None:
    driven = Driven.stable()
    driven.heartbeat()
    driven.refuse(Error.TOPIC_AUTHORIZATION_FAILED)
    assert driven.look() == [ReportError("TOPIC_AUTHORIZATION_FAILED")]
    assert driven.member.state is MemberState.STABLE
    assert driven.step() == 100


def test_poll_looks_again_when_something_is_due() -> None:
    driven = Driven.stable(max_poll_interval_ms=8_000)
    wait = driven.member.poll_wait_ms
    assert wait(driven.now_ms) == 4_000, "half of max.poll.interval.ms"
    assert wait(driven.now_ms + 2_000) == 3_000
    assert wait(driven.now_ms + 8_000) == 0


def test_poll_of_a_member_that_has_not_subscribed_waits_for_ever() -> None:
    driven = Driven()
    assert driven.member.poll_wait_ms(driven.now_ms) == FOREVER_MS


def test_topic_ids_and_partitions_are_told_in_order() -> None:
    driven = Driven.joining()
    driven.answer(1, {U: (2, 1), T: (0,)})
    driven.look()
    driven.reconcile()
    driven.step()
    assert [request.owned for request in driven.sent()] == [((T, (0,)), (U, (1, 2)))]


def test_a_member_asks_for_the_coordinator_before_it_joins() -> None:
    driven = Driven()
    member = ConsumerGroupMember(driven.member._config, "m", dict, lambda: False, 0)  # no other way in
    member.subscribe(frozenset({"t"}))
    member.poll(0)
    assert member.step(0) == FOREVER_MS
    assert member.operations() == []
    member.coordinator_found()
    member.step(0)
    assert len(member.operations()) == 1


def test_the_interval_is_known_from_the_first_answer_on() -> None:
    driven = Driven.joining()
    assert driven.member.heartbeat_interval_ms == 0
    driven.answer(1, {T: (0,)}, interval=700)
    assert driven.member.heartbeat_interval_ms == 700


def test_a_first_heartbeat_may_leave_at_once() -> None:
    timing = HeartbeatTiming(1_000, Backoff(100, 1_000, lambda: 1.0))
    assert (timing.next_ms(1_000), timing.may_send(1_000)) == (0, True)


def test_nothing_remains_of_a_timer_that_has_expired() -> None:
    timer = Timer(1_000, 5)
    looks = []
    for now_ms in (1_004, 1_005, 1_009, 1_001):
        timer.update(now_ms)
        looks.append((timer.remaining_ms, timer.expired))
    assert looks == [(1, False), (0, True), (0, True), (0, True)]


def test_the_shortest_pause_doubles_too() -> None:
    backoff = Backoff(1, 8, lambda: 1.0)
    assert [backoff.pause_ms(attempts) for attempts in range(5)] == [1, 2, 4, 8, 8]
    assert Backoff(0, 8, lambda: 1.0).pause_ms(3) == 0


def test_without_a_longest_pause_there_is_none() -> None:
    assert Backoff(0, 0, lambda: 1.0).pause_ms(1) == 0


def test_after_a_reset_the_pauses_begin_anew() -> None:
    timing = HeartbeatTiming(1_000, Backoff(100, 1_000, lambda: 1.0))
    pauses = []
    for resets in (False, False, True):
        if resets:
            timing.reset()
        timing.sent()
        timing.failed(1_000)
        pauses.append(timing.next_ms(1_000))
    assert pauses == [100, 200, 100]


@pytest.mark.parametrize(("answered_ms", "backs_off"), [(2_900, False), (2_901, True)])
def test_a_late_answer_puts_the_next_heartbeat_off_by_the_backoff(answered_ms: int, backs_off: bool) -> None:
    """It left at 1,000 ms with an interval of 2 s, so the next one is due at 3,000 ms, or 100 ms after the
    answer."""
    timing = HeartbeatTiming(1_000, Backoff(100, 1_000, lambda: 1.0))
    timing.succeeded(1_000, 2_000)
    timing.reset()
    timing.sent()
    assert not timing.may_send(answered_ms)
    timing.succeeded(answered_ms, 2_000)
    assert timing.backs_off(answered_ms) is backs_off
    assert timing.may_send(3_000) is not backs_off

"""The table of record states, transition by transition, and changes that are confirmed or undone."""

from __future__ import annotations

import pytest

from groupstorm.share_records.states import (
    ACKNOWLEDGED_AS,
    TRANSITIONS,
    AcknowledgeType,
    DeliveryRule,
    InFlightState,
    RecordState,
)
from groupstorm.share_records.timers import Timers

_FIVE = DeliveryRule(limit=5, has_dead_letters=False)
_WITH_QUEUE = DeliveryRule(limit=5, has_dead_letters=True)


def _acquired(delivery_count: int, timers: Timers | None = None) -> InFlightState:
    state = InFlightState(RecordState.AVAILABLE, delivery_count - 1)
    state.acquire("a")
    state.lock = (timers or Timers()).schedule(30_000, lambda: None)
    return state


def test_terminal_states_are_those_that_nothing_follows() -> None:
    assert {state for state, after in TRANSITIONS.items() if not after} == {
        state for state in RecordState if state.is_terminal
    }
    assert set(TRANSITIONS) == set(RecordState)


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (AcknowledgeType.GAP, RecordState.ARCHIVED),
        (AcknowledgeType.ACCEPT, RecordState.ACKNOWLEDGED),
        (AcknowledgeType.RELEASE, RecordState.AVAILABLE),
        (AcknowledgeType.REJECT, RecordState.ARCHIVED),
    ],
)
def test_each_acknowledgement_has_its_state(kind: AcknowledgeType, state: RecordState) -> None:
    record = _acquired(1)
    assert record.begin(ACKNOWLEDGED_AS[kind], _FIVE)
    assert (record.state, record.member_id, record.is_changing) == (state, "", True)
    record.complete(confirmed=True)
    assert (record.state, record.lock, record.is_changing) == (state, None, False)


@pytest.mark.parametrize(
    ("count", "rule", "state"),
    [
        (4, _FIVE, RecordState.AVAILABLE),
        (5, _FIVE, RecordState.ARCHIVED),
        (5, _WITH_QUEUE, RecordState.ARCHIVING),
        (6, _FIVE, RecordState.ARCHIVED),  # the limit was lowered meanwhile
    ],
)
def test_a_record_at_its_last_delivery_is_not_available_again(
    count: int, rule: DeliveryRule, state: RecordState
) -> None:
    record = _acquired(count)
    assert record.give_up(RecordState.AVAILABLE, rule)
    assert record.state is state
    assert record.delivery_count == count


def test_nobody_else_changes_a_record_during_a_change() -> None:
    record = _acquired(1)
    record.begin(RecordState.AVAILABLE, _FIVE)
    assert not record.is_acquirable
    assert not record.give_up(RecordState.AVAILABLE, _FIVE)
    assert not record.begin(RecordState.ACKNOWLEDGED, _FIVE)


def test_a_failed_change_gives_the_record_back_with_its_lock() -> None:
    record = _acquired(1)
    lock = record.lock
    record.begin(RecordState.ACKNOWLEDGED, _FIVE)
    record.complete(confirmed=False)
    assert (record.state, record.member_id, record.lock) == (RecordState.ACQUIRED, "a", lock)


@pytest.mark.parametrize(("count", "state"), [(1, RecordState.AVAILABLE), (5, RecordState.ARCHIVED)])
def test_a_change_that_fails_after_the_locks_end_frees_the_record(count: int, state: RecordState) -> None:
    timers = Timers()
    record = _acquired(count, timers)
    record.begin(RecordState.ACKNOWLEDGED, _FIVE)
    timers.now_ms = 30_000
    assert timers.fire_one()
    record.complete(confirmed=False)
    assert (record.state, record.member_id, record.lock) == (state, "", None)


def test_a_record_that_the_log_lost_stays_archived_when_a_change_of_it_fails() -> None:
    record = _acquired(1)
    record.begin(RecordState.AVAILABLE, _FIVE)
    record.archive()
    record.complete(confirmed=False)
    assert record.state is RecordState.ARCHIVED


@pytest.mark.parametrize(("limit", "throttled"), [(2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (10, 5)])
def test_deliveries_are_throttled_from_half_of_the_limit_on(limit: int, throttled: int) -> None:
    assert DeliveryRule(limit, has_dead_letters=False).throttled_from == throttled

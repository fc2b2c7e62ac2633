"""The virtual clock against the plainest one: a list that is sorted again before every call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.world.clock import Clock

# Delays within one bucket, at its edges and far beyond it.
_DELAYS = st.sampled_from([0, 1, 5, 1_023, 1_024, 1_025, 2_048, 50_000, 3_000_000])
_CALLS = st.lists(st.tuples(_DELAYS, st.lists(_DELAYS, max_size=3)), max_size=12)
_PAUSES = st.lists(_DELAYS, max_size=6)


def _by_sorting(calls: list[tuple[int, list[int]]], pauses: list[int]) -> list[tuple[int, str]]:
    """The order of calls, by sorting: each pause schedules a call at once and one a little later."""
    due = [(delay, number, f"{number}", then) for number, (delay, then) in enumerate(calls)]
    made: list[tuple[int, str]] = []
    scheduled, now, limit = len(due), 0, 0
    for pause, wait in enumerate([*pauses, 10_000_000]):
        limit = limit + wait
        while due and min(due)[0] < limit:
            due.sort(key=lambda item: item[:2])
            now, _, name, then = due.pop(0)
            made.append((now, name))
            for place, delay in enumerate(then):
                due.append((now + delay, scheduled, f"{name}.{place}", []))
                scheduled += 1
        now = limit
        due += [(now + delay, scheduled + delay, f"pause {pause}+{delay}", []) for delay in (0, 1)]
        scheduled += 2
    return made


@given(_CALLS, _PAUSES)
def test_calls_are_made_in_the_order_of_time_and_of_scheduling(
    calls: list[tuple[int, list[int]]], pauses: list[int]
) -> None:
    clock = Clock()
    made: list[tuple[int, str]] = []

    def call(name: str, then: list[int]) -> None:
        made.append((clock.now_us, name))
        for place, delay in enumerate(then):
            clock.after(delay, call, f"{name}.{place}", [])

    for number, (delay, then) in enumerate(calls):
        clock.at(delay, call, f"{number}", then)
    for pause, wait in enumerate([*pauses, 10_000_000]):
        clock.limit_us += wait
        clock.run()
        clock.advance_to(clock.limit_us)
        for delay in (0, 1):
            clock.after(delay, call, f"pause {pause}+{delay}", [])
    assert made == _by_sorting(calls, pauses)


def test_a_call_can_move_the_limit() -> None:
    clock, made = Clock(), []
    clock.limit_us = 10_000

    def stop() -> None:
        made.append(clock.now_us)
        clock.limit_us = 3_000

    for time_us in (1_000, 2_999, 3_000):
        clock.at(time_us, made.append, time_us)
    clock.at(1_000, stop)
    clock.run()
    assert made == [1_000, 1_000, 2_999]


@pytest.mark.parametrize("method", ["at", "first_at"])
def test_a_call_in_the_past_is_refused(method: str) -> None:
    clock = Clock()
    clock.advance_to(5)
    getattr(clock, method)(5, lambda: None)
    with pytest.raises(ValueError, match="4 us lies before now"):
        getattr(clock, method)(4, lambda: None)


@pytest.mark.parametrize("at_us", [500, 50_000], ids=["in the bucket of now", "in a later bucket"])
def test_a_first_call_comes_before_the_others_of_its_time_and_behind_earlier_ones(at_us: int) -> None:
    clock, made = Clock(), list[str]()
    clock.limit_us = 100_000

    def schedule() -> None:
        clock.at(at_us, made.append, "other")
        clock.at(at_us - 1, made.append, "earlier")
        clock.first_at(at_us, made.append, "first")
        clock.at(at_us, made.append, "another")
        clock.first_at(at_us + 1, made.append, "later")

    clock.at(100, schedule)
    clock.run()
    assert made == ["earlier", "first", "other", "another", "later"]


def test_a_first_call_of_this_instant_is_made_next() -> None:
    clock, made = Clock(), list[str]()
    clock.limit_us = 1_000

    def schedule() -> None:
        made.append("schedule")
        clock.first_at(100, made.append, "first")

    clock.at(100, schedule)
    clock.at(100, made.append, "other")
    clock.run()
    assert made == ["schedule", "first", "other"]

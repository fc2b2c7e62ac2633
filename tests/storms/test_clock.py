"""The virtual clock against the plainest one: a list that is sorted again for everything that happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.clock import Clock

# Delays within one bucket, at its edges and far beyond it.
_DELAYS = st.sampled_from([0, 1, 5, 1_023, 1_024, 1_025, 2_048, 50_000, 3_000_000])
_PLANS = st.lists(st.tuples(_DELAYS, st.lists(_DELAYS, max_size=3)), max_size=12)
_PAUSES = st.lists(_DELAYS, max_size=6)


def _plainly(plan: list[tuple[int, list[int]]], pauses: list[int]) -> list[tuple[int, str]]:
    """What happens when, by sorting: at each pause something new is due at once, and a little later."""
    due = [(delay, number, f"{number}", then) for number, (delay, then) in enumerate(plan)]
    told: list[tuple[int, str]] = []
    scheduled, now, limit = len(due), 0, 0
    for pause, wait in enumerate([*pauses, 10_000_000]):
        limit = limit + wait
        while due and min(due)[0] < limit:
            due.sort(key=lambda item: item[:2])
            now, _, name, then = due.pop(0)
            told.append((now, name))
            for place, delay in enumerate(then):
                due.append((now + delay, scheduled, f"{name}.{place}", []))
                scheduled += 1
        now = limit
        due += [(now + delay, scheduled + delay, f"pause {pause}+{delay}", []) for delay in (0, 1)]
        scheduled += 2
    return told


@given(_PLANS, _PAUSES)
def test_things_happen_in_the_order_of_time_and_of_scheduling(
    plan: list[tuple[int, list[int]]], pauses: list[int]
) -> None:
    clock = Clock()
    told: list[tuple[int, str]] = []

    def happen(name: str, then: list[int]) -> None:
        told.append((clock.now_us, name))
        for place, delay in enumerate(then):
            clock.after(delay, happen, f"{name}.{place}", [])

    for number, (delay, then) in enumerate(plan):
        clock.at(delay, happen, f"{number}", then)
    for pause, wait in enumerate([*pauses, 10_000_000]):
        clock.limit_us += wait
        clock.run()
        clock.advance_to(clock.limit_us)
        for delay in (0, 1):
            clock.after(delay, happen, f"pause {pause}+{delay}", [])
    assert told == _plainly(plan, pauses)


def test_what_happens_can_move_the_limit() -> None:
    clock, told = Clock(), []
    clock.limit_us = 10_000

    def stop() -> None:
        told.append(clock.now_us)
        clock.limit_us = 3_000

    for time_us in (1_000, 2_999, 3_000):
        clock.at(time_us, told.append, time_us)
    clock.at(1_000, stop)
    clock.run()
    assert told == [1_000, 1_000, 2_999]


def test_nothing_is_scheduled_for_the_past() -> None:
    clock = Clock()
    clock.advance_to(5)
    with pytest.raises(ValueError, match="4 us lies before now"):
        clock.at(4, lambda: None)

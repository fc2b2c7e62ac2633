"""The heap of deadlines: order, ties, resets."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.simulated import ObservedTimers
from groupstorm.coordinator.timers import TimerKind, Timers


def _drain(timers: Timers, now_ms: int) -> list[tuple[str, int]]:
    fired = []
    while (timer := timers.pop_due(now_ms)) is not None:
        fired.append((timer.key[2], timer.deadline_ms))
    return fired


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcd"), st.integers(0, 30)),
        st.tuples(st.just("cancel"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("fire"), st.just(""), st.integers(0, 30)),
    )
)


@given(_STEPS)
def test_equals_a_sorted_list(steps: list[tuple[str, str, int]]) -> None:
    timers = Timers()
    model: dict[str, tuple[int, int]] = {}
    for number, (what, name, time_ms) in enumerate(steps):
        if what == "set":
            timers.set(TimerKind.SESSION, "g", name, time_ms, number)
            model[name] = (time_ms, number)
        elif what == "cancel":
            timers.cancel(TimerKind.SESSION, "g", name)
            model.pop(name, None)
        else:
            due = sorted((when, key) for key, when in model.items() if when[0] <= time_ms)
            assert _drain(timers, time_ms) == [(key, when[0]) for when, key in due]
            for _, gone in due:
                del model[gone]
        earliest = min((when[0] for when in model.values()), default=None)
        assert timers.next_deadline() == earliest
        assert len(timers) == len(model)


@given(_STEPS)
def test_who_keeps_what_it_was_told_is_never_late(steps: list[tuple[str, str, int]]) -> None:
    """As a driver does that asks for the next deadline only when the one that it knows has come."""
    known_ms = math.inf

    def earlier(deadline_ms: int) -> None:
        nonlocal known_ms
        known_ms = min(known_ms, deadline_ms)

    timers = ObservedTimers(earlier, lambda: 0)
    model: dict[str, int] = {}
    for what, name, time_ms in steps:
        if what == "set":
            timers.set(TimerKind.SESSION, "g", name, time_ms)
            model[name] = time_ms
        elif what == "cancel":
            timers.cancel(TimerKind.SESSION, "g", name)
            model.pop(name, None)
        else:
            for gone, _ in _drain(timers, time_ms):
                del model[gone]
            next_ms = timers.next_deadline()
            known_ms = math.inf if next_ms is None else next_ms
        assert known_ms <= min(model.values(), default=math.inf)

"""The virtual clock, what happens at one instant, and what clients have: clocks and member ids."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.world.clock import ClientClock, Clock, Kind, order_of
from groupstorm.storms.world.record_times import drawn_member_id
from tests.soaking import one_in
from tests.storms.storms_in_memory import START, Storm, scenario, storm
from tests.storms.test_equal_small_worlds import TOGETHER, of_variant

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


def test_a_call_in_the_past_is_refused() -> None:
    clock = Clock()
    clock.advance_to(5)
    clock.at(5, lambda: None)
    with pytest.raises(ValueError, match="4 us lies before now"):
        clock.at(4, lambda: None)


@pytest.mark.parametrize("at_us", [500, 50_000], ids=["in the bucket of now", "in a later bucket"])
def test_calls_of_one_instant_are_made_by_kind_and_member_and_not_as_they_were_scheduled(at_us: int) -> None:
    clock, made = Clock(), list[str]()
    clock.limit_us = 100_000

    def schedule() -> None:
        for kind in reversed(Kind):
            for member in (2, 1):
                clock.in_order(at_us, order_of(kind, member), made.append, (f"{kind.name} {member}",))
        clock.at(at_us, made.append, "due")
        clock.at(at_us - 1, made.append, "earlier")

    clock.at(100, schedule)
    clock.run()
    assert made == ["earlier", "due", *(f"{kind.name} {member}" for kind in Kind for member in (1, 2))]


def test_what_follows_at_once_is_made_next_and_does_not_bring_back_what_has_passed() -> None:
    """A poll() of member 1 makes a request that arrives at once: its arrival is called next, and arrivals of
    that instant have passed all the same, since those of others were called before."""
    clock, made = Clock(), list[tuple[str, int]]()
    clock.limit_us = 1_000
    arrives, polls = order_of(Kind.REQUEST_ARRIVES, 1), order_of(Kind.POLL, 1)

    def note(name: str) -> None:
        made.append((name, clock.passed_us(arrives)))

    def poll() -> None:
        note("poll")
        clock.in_order(100, arrives, note, ("arrival",))

    clock.at(100, note, "due")
    clock.in_order(100, polls, poll)
    clock.in_order(100, order_of(Kind.POLL, 2), note, ("another poll",))
    clock.run()
    assert made == [("due", 99), ("poll", 100), ("arrival", 100), ("another poll", 100)]


@pytest.mark.parametrize(
    ("drift_ppm", "time_us", "shown_ms"),
    [(0, 4_999, 4), (0, 5_000, 5), (250_000, 4_000, 5), (250_000, 3_999, 4), (-200_000, 6_250, 5)],
)
def test_a_clock_shows_whole_milliseconds(drift_ppm: int, time_us: int, shown_ms: int) -> None:
    assert ClientClock(drift_ppm).ms(time_us) == shown_ms


@pytest.mark.parametrize("drift_ppm", [0, 7, -7, 250_000, -200_000])
def test_a_clock_begins_to_show_a_millisecond_at_one_microsecond(drift_ppm: int) -> None:
    clock = ClientClock(drift_ppm)
    for shown_ms in (1, 2, 5_004, 10**9):
        assert clock.ms(clock.us(shown_ms)) == shown_ms
        assert clock.ms(clock.us(shown_ms) - 1) == shown_ms - 1


def test_member_ids_are_uuids_that_begin_with_no_dash() -> None:
    """Kafka's Uuid.randomUuid: 16 bytes in URL-safe base64, and another one if it begins with a dash."""
    drawn = {drawn_member_id(seed, name, number) for seed in range(9) for name in "ab" for number in range(9)}
    assert len(drawn) == 9 * 2 * 9
    assert all(len(each) == 22 and not each.startswith("-") for each in drawn)
    assert drawn_member_id(1, "a", 1) == drawn_member_id(1, "a", 1)


def test_member_ids_stay_the_same_from_version_to_version() -> None:
    """Traces of the same seed do, too. The first draw for the last of these begins with a dash."""
    ids = [drawn_member_id(1, *who) for who in (("member-0", 1), ("member-1", 1), ("member-0", 6))]
    assert ids == ["S445TxIRi_fzPT_qoIKYOw", "4rZmrW1-cDXk_1u4CWqCoA", "XqC05TycEVs8AwzSa__-fw"]


PAUSED_MS = 30_000
LATENCY_MS = 2


def _paused(variant: str, for_ms: int, exact: bool) -> Storm:
    """A member stands still, and sends a heartbeat as soon as it runs again."""
    settings: dict[str, Any] = of_variant(variant) | TOGETHER | {"max.poll.interval.ms": 60_000}
    step = {"at_ms": PAUSED_MS, "do": "pause", "members": [0], "for_ms": for_ms}
    return storm(scenario([START, step], **settings), exact=exact)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("variant", one_in(2, ["cooperative", "static", "consumer"]))
def test_a_heartbeat_that_arrives_when_the_session_ends_comes_first(variant: str, exact: bool) -> None:
    [(ended_us, removed)] = _paused(variant, 40_000, exact).events("member_removed")
    assert removed.cause == "session-expired"
    until_ms = ended_us // 1000 - PAUSED_MS - LATENCY_MS
    assert _paused(variant, until_ms, exact).events("member_removed") == []
    assert len(_paused(variant, until_ms + 1, exact).events("member_removed")) == 1

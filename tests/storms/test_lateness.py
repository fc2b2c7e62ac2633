"""Late timers in closed form: against sums that are added up one by one, and against the distributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, pvariance
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.clients.profiles import LATENESS, PROFILES
from groupstorm.storms.scenario.distributions import parse
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.periodic_requests.lateness import (
    LENGTH,
    SHARES,
    DrawnSums,
    Lateness,
    ProcessTimer,
    timer_sums,
)
from groupstorm.storms.world.periodic_requests.schedule import RequestSchedule

INTERVAL_US = 3_000_000
LATENCY = parse("latency", {"uniform": [0.2, 10]})
START_US = 17_000_003

#: (from which heartbeat on, share of the time, the most microseconds)
Work = tuple[int, int, int]


def sums(profile: str = "java", written: Any = None) -> DrawnSums:
    lateness = parse(LATENESS, written or PROFILES[profile].defaults[LATENESS])
    drawn = timer_sums(PROFILES[profile], lateness, LATENCY)
    assert drawn is not None
    return drawn


def late(name: str = "java", place: int = 0, work: Sequence[Work] = ()) -> Lateness:
    lateness = Lateness(sums(name), place)
    for after_k, share, most_us in work:
        lateness.works(after_k, share, most_us)
    return lateness


def series_of(process: ProcessTimer, first_us: int) -> Lateness:
    lateness = process.series(first_us)
    assert lateness is not None
    return lateness


def schedule(lateness: Lateness | None) -> RequestSchedule:
    connection = SimpleNamespace(epoch=0, periodic_latency_us=lambda sent_us: 200 + sent_us * 7919 % 9_800)
    own = cast(VirtualConnection, connection)
    anything: Any = None
    return RequestSchedule("Heartbeat", START_US, INTERVAL_US, anything, own, LATENCY.largest_us, lateness)


works = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, SHARES), st.integers(0, 100_000)), max_size=4
).map(sorted)
latenesses = st.one_of(
    st.none(),
    st.builds(late, st.sampled_from(sorted(PROFILES)), st.integers(0, LENGTH - 1), works),
)


def test_a_sum_that_goes_round_is_that_of_its_draws() -> None:
    values = [place * place % 101 for place in range(LENGTH)]
    drawn = DrawnSums(values)
    for place, count in (
        (0, 0),
        (5, 3),
        (LENGTH - 2, 2),
        (LENGTH - 2, 3),
        (7, LENGTH),
        (LENGTH - 1, 3 * LENGTH),
    ):
        whole, rest = divmod(count, LENGTH)
        one_by_one = sum(values[(place + at) % LENGTH] for at in range(rest))
        assert drawn.total(place, count) == whole * sum(values) + one_by_one


@given(latenesses)
def test_heartbeats_are_at_least_an_interval_apart_and_no_more_than_the_longest(
    lateness: Lateness | None,
) -> None:
    series = schedule(lateness)
    most_us = 0 if lateness is None else lateness.most_us
    for sooner, later in pairwise(series.sent_us(k) for k in range(400)):
        assert INTERVAL_US <= later - sooner <= INTERVAL_US + most_us
    assert series.most_apart_us() == INTERVAL_US + most_us + LATENCY.largest_us


@given(latenesses, st.integers(0, 400), st.integers(-3, 3_010_000))
def test_questions_by_time_have_the_answers_of_a_search(
    lateness: Lateness | None, near_k: int, offset_us: int
) -> None:
    series = schedule(lateness)
    at_us = series.sent_us(near_k) + offset_us
    sent = [series.sent_us(k) for k in range(405)]
    arrival = [0, *(series.arrival_us(k) for k in range(1, 405))]
    assert series.last_sent(at_us) == max((k for k in range(1, 405) if sent[k] < at_us), default=0)
    assert series.last_arrived(at_us) == max((k for k in range(1, 405) if arrival[k] <= at_us), default=0)
    assert series.first_arriving(at_us) == min(k for k in range(1, 405) if arrival[k] >= at_us)


@given(st.integers(0, LENGTH - 1), st.integers(1, 200), st.integers(0, SHARES), st.integers(0, 100_000))
def test_work_that_changes_leaves_the_next_heartbeat_as_it_was(
    place: int, k: int, share: int, most_us: int
) -> None:
    """In exact mode it may have been sent into the future already."""
    series = schedule(late("java", place, [(1, 5, 31_250)]))
    before = [series.sent_us(each) for each in range(k + 2)]
    series.works(series.sent_us(k), share, most_us)
    assert [series.sent_us(each) for each in range(k + 2)] == before


def test_work_in_half_of_the_time_delays_by_a_quarter_of_its_most_on_average() -> None:
    """Half of the heartbeats meet work, on average in its middle."""
    assert late(work=[(5, SHARES // 2, 4_000)]).mean_us == late().mean_us + 1_000


def test_work_of_which_no_heartbeat_came_delays_none() -> None:
    """Work changes at heartbeat 5 or before it: what began there before counts no more."""
    half, timer_us = SHARES // 2, late().most_us
    once = late(work=[(5, half, 30)])
    again = late(work=[(5, half, 5_000_000), (9, half, 40), (5, half, 30)])
    assert [again.total_us(k) for k in range(20)] == [once.total_us(k) for k in range(20)]
    assert again.most_us == once.most_us == timer_us + 30
    assert late(work=[(5, half, 5_000_000), (0, half, 30)]).most_us == timer_us + 30
    kept = late(work=[(5, half, 5_000_000), (9, half, 40), (6, half, 30)])
    assert kept.most_us == timer_us + 5_000_000


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_single_latenesses_have_the_distribution_of_the_profile(name: str) -> None:
    lateness = late(name)
    drawn = sorted(lateness.total_us(k + 1) - lateness.total_us(k) for k in range(LENGTH))
    parts = [parse(LATENESS, PROFILES[name].defaults[LATENESS])]
    parts += [LATENCY, LATENCY] if PROFILES[name].heartbeat_timer_waits_for_response else []
    expected = sum(mean(part.at(draw << 22) for draw in range(1 << 10)) for part in parts)
    assert mean(drawn) == pytest.approx(expected, rel=0.03)
    if len(parts) == 1:
        assert drawn[LENGTH // 2] == pytest.approx(parts[0].at(1 << 31), rel=0.02)


def test_a_working_java_member_is_late_in_its_share_of_heartbeats() -> None:
    lateness = Lateness(DrawnSums([0] * LENGTH), 11)
    lateness.works(0, 4, 100_000)
    single = [lateness.total_us(k + 1) - lateness.total_us(k) for k in range(LENGTH)]
    assert sum(us > 1 for us in single) / LENGTH == pytest.approx(4 / SHARES, abs=0.01)
    assert mean(us for us in single if us > 1) == pytest.approx(50_000, rel=0.02)
    assert max(single) <= 100_001


def test_phases_of_members_drift_apart_with_the_root_of_time() -> None:
    """The variance of when the k-th heartbeat leaves grows with k, not with its square."""
    drawn = sums("java", {"uniform": [0, 12]})
    members = [series_of(ProcessTimer(drawn, 1, f"member-{number}", 0), 0) for number in range(2000)]
    for k in (1, 10, 100, 1000):
        spread = pvariance([lateness.total_us(k) / 1000 for lateness in members])
        assert spread == pytest.approx(k * 12**2 / 12, rel=0.3)


def test_each_series_and_each_incarnation_begins_at_a_place_of_its_own() -> None:
    drawn = sums("java", {"uniform": [0, 12]})

    def total_us(seed: int, incarnation: int, first_us: int) -> int:
        return series_of(ProcessTimer(drawn, seed, "member-0", incarnation), first_us).total_us(100)

    assert total_us(1, 0, 5) == total_us(1, 0, 5)
    assert len({total_us(1, 0, 5), total_us(1, 0, 6), total_us(1, 1, 5), total_us(2, 0, 5)}) == 4


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_timer_that_is_never_late_keeps_its_interval(name: str) -> None:
    drawn = timer_sums(PROFILES[name], parse(LATENESS, 0), LATENCY)
    on_time = schedule(ProcessTimer(drawn, 1, "member-0", 0).series(0))
    assert [on_time.sent_us(k) for k in (1, 1000)] == [START_US + INTERVAL_US, START_US + 1000 * INTERVAL_US]

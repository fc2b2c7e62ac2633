from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.problems import InputError
from groupstorm.storms.scenario.randomness import DRAW_SPAN, Stream, parse_distribution, parse_varying


def split_mix_64(state: int) -> int:
    """SplitMix64's finaliser as Steele, Lea and Flood (2014) give it, cut down to 64 bits at every step."""
    mask = 2**64 - 1
    z = state & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


@given(st.integers(0, 2**63 - 1), st.integers(-(2**62), 2**62))
def test_draws_are_those_of_split_mix_64(seed: int, index: int) -> None:
    base = int.from_bytes(blake2b(f"{seed}/net".encode(), digest_size=8).digest(), "big")
    mixed = split_mix_64(base + index * 0x9E3779B97F4A7C15)
    assert Stream(seed, "net").pair(index) == (mixed >> 32, mixed & 0xFFFF_FFFF)


def test_streams_differ_by_seed_and_by_name() -> None:
    streams = [Stream(1, "a"), Stream(2, "a"), Stream(1, "b"), Stream(1, "a", 1)]
    assert len({tuple(stream.at(k) for k in range(4)) for stream in streams}) == len(streams)


def test_a_pair_begins_with_the_single_draw() -> None:
    stream = Stream(3, "pair")
    for k in (-2, 0, 7):
        first, second = stream.pair(k)
        assert first == stream.at(k)
        assert 0 <= second < DRAW_SPAN
        assert second != first


# -- distributions ---------------------------------------------------------------------------------


def test_every_draw_from_a_number_gives_that_number() -> None:
    assert {parse_distribution("x", 0.5).at(draw) for draw in (0, DRAW_SPAN // 2, DRAW_SPAN - 1)} == {500}


def test_one_number_for_what_varies_is_its_median() -> None:
    """25 s: from 22.5 s to 30 s, 19 of 20 below 27.5 s. Nothing stays nothing, and exactly is exactly."""
    start = parse_varying("x", "25s")
    assert (start.at(0), start.largest_us) == (22_500_000, 30_000_000)
    assert start.at(DRAW_SPAN // 2) == 25_000_000
    assert start.at(DRAW_SPAN * 95 // 100) == pytest.approx(27_500_000, abs=1)
    assert start.as_written == "25s"
    assert parse_varying("x", 0).largest_us == 0
    exactly = parse_varying("x", {"exactly": "25s"})
    assert {exactly.at(draw) for draw in (0, DRAW_SPAN - 1)} == {25_000_000}
    assert parse_varying("x", {"uniform": [1, 2]}).largest_us == 2_000


def test_quantiles_are_met_and_linear_between() -> None:
    distribution = parse_distribution("x", {"quantiles": {0: 0, 50: 10, 100: 110}})
    assert distribution.at(0) == 0
    assert distribution.at(DRAW_SPAN // 4) == 5_000
    assert distribution.at(DRAW_SPAN // 2) == 10_000
    assert distribution.at(3 * DRAW_SPAN // 4) == 60_000
    assert distribution.largest_us == 110_000


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, DRAW_SPAN - 1))
def test_uniform_stays_within_its_bounds(a: int, b: int, draw: int) -> None:
    low, high = sorted((a, b))
    assert low * 1000 <= parse_distribution("x", {"uniform": [low, high]}).at(draw) <= high * 1000


@pytest.mark.parametrize(
    "written",
    [-1, "soon", True, None, [], {}, {"p50": 1}, {"uniform": [1]}, {"uniform": [2, 1]}, {"quantiles": {0: 1}},
     {"quantiles": {0: 5, 100: 1}}, {"quantiles": {"zero": 1, 100: 2}}, {"quantiles": {"0": 1, 0: 1, 100: 2}},
     float("inf"), {"p50": 2, "p95": 1}, {"p50": 1, "p101": 2}, {"p50": "1 parsec", "p95": 2},
     {"p50": 1, "median": 1}, "-3s"],
)  # fmt: skip
def test_an_invalid_distribution_is_refused_with_the_name_of_its_setting(written: Any) -> None:
    with pytest.raises(InputError, match="net_latency_ms"):
        parse_distribution("net_latency_ms", written)


def test_units_and_fractions_of_a_percentile() -> None:
    distribution = parse_distribution("x", {"p50": "20s", "p99.9": "2m"})
    assert distribution.at(DRAW_SPAN // 2) == 20_000_000
    assert distribution.at(DRAW_SPAN * 999 // 1000) == pytest.approx(120_000_000, abs=1)
    assert distribution.at(0) == 10_000_000
    assert distribution.largest_us == 120_000_000 + 50_000_000
    assert (
        parse_distribution("x", {"quantiles": {0: "1ms", "99.9": 2, 100: "1h"}}).largest_us == 3_600_000_000
    )


def test_the_ends_can_be_given() -> None:
    distribution = parse_distribution("x", {"p0": 5, "p50": 6, "p100": 100})
    assert (distribution.at(0), distribution.largest_us) == (5_000, 100_000)

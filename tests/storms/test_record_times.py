"""Times that an application works on records: drawn times have the mean and the spread of `process_ms`."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest

from groupstorm.storms.scenario.randomness import Stream, parse_distribution
from groupstorm.storms.world.record_times import RecordTimes

BATCHES = range(1500)


def times(process_ms: object, concurrency: int = 1, factor: int = 1000) -> RecordTimes:
    process = parse_distribution("process_ms", process_ms)
    return RecordTimes(process, concurrency, Stream(1, "records", "m", 1), factor)


def drawn_us(of: RecordTimes, count: int) -> list[int]:
    """Draw the time that so many records take, in each of many batches."""
    return [of.records_us(count, batch, 0) for batch in BATCHES]


def test_constant_times_add_up_and_are_shared_and_stretched() -> None:
    """``factor`` is in thousandths; 24 ms among four workers are 6 ms, and 9 ms on a slower machine."""
    assert times(3).records_us(7, 0, 0) == 21_000
    assert times(3, concurrency=4).records_us(8, 0, 0) == 6_000
    assert times(3, concurrency=4, factor=1500).records_us(8, 0, 0) == 9_000


def test_the_longest_and_the_mean_time_of_records() -> None:
    uniform = times({"uniform": [2, 6]}, concurrency=2, factor=3000)
    assert uniform.largest_us(10) == 10 * 6_000 * 3 // 2
    assert uniform.mean_us(10) == 10 * 4_000 * 3 // 2


@pytest.mark.parametrize("count", [1, 8, 9, 400])
def test_drawn_times_have_the_mean_and_the_spread_of_their_distribution(count: int) -> None:
    """A uniform distribution's standard deviation is its width / sqrt(12): 1,155 us. That of n records is
    sqrt(n) times as large, and the mean of 1,500 batches is off by 4 / sqrt(1,500) of it at most."""
    found = drawn_us(times({"uniform": [2, 6]}), count)
    assert all(count * 2_000 <= us <= count * 6_000 for us in found)
    spread_us = 4_000 / 12**0.5 * count**0.5
    assert fmean(found) == pytest.approx(count * 4_000, abs=4 * spread_us / len(BATCHES) ** 0.5)
    assert pstdev(found) == pytest.approx(spread_us, rel=0.08)
    assert len(set(found)) > 700


def test_a_sum_of_many_drawn_times_stays_within_their_bounds() -> None:
    """A normal distribution in place of a skewed one would often be shorter than the shortest time."""
    assert min(drawn_us(times({"quantiles": {0: 1, 99: 1.001, 100: 1000}}), 9)) == 9 * 1_000
    assert max(drawn_us(times({"quantiles": {0: 0, 1: 999.999, 100: 1000}}), 9)) == 9 * 1_000_000


def test_the_time_between_two_polls_has_the_mean_of_its_distribution() -> None:
    interval = parse_distribution("poll_interval_ms", {"uniform": [100, 900]})
    between = [times(1).interval_us(interval, batch) for batch in BATCHES]
    # 231 ms is its standard deviation
    assert fmean(between) == pytest.approx(500_000, abs=4 * 231_000 / len(BATCHES) ** 0.5)

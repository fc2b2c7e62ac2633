"""What the draws of a late timer mean, number by number."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import shake_128
from itertools import pairwise
from struct import unpack

from groupstorm.clients.profiles import JAVA
from groupstorm.storms.scenario.distributions import parse
from groupstorm.storms.world.periodic_requests.lateness import LENGTH, SHARES, DrawnSums, Lateness, timer_sums

#: 54 hours of heartbeats, one every 3 s.
ROUND = 65_536


NEVER_LATE = DrawnSums([0] * LENGTH)


def uniform() -> DrawnSums:
    """Of a timer that is late by up to 1,024 ms."""
    drawn = timer_sums(JAVA, parse("lateness", {"uniform": [0, 1_024]}), parse("latency", 1))
    assert drawn is not None
    return drawn


def on_time(place: int = 0) -> Lateness:
    """A timer that is late only because of work."""
    return Lateness(NEVER_LATE, place)


def single(lateness: Lateness, count: int) -> Iterator[int]:
    """By how much each of the first heartbeats is late."""
    return (later - sooner for sooner, later in pairwise(lateness.total_us(k) for k in range(count + 1)))


def test_a_timer_is_late_by_the_middle_of_one_of_1024_equal_parts() -> None:
    """Each part of up to 1,024 ms is a millisecond wide: 0.5 ms, 1.5 ms and so on."""
    drawn = set(single(Lateness(uniform(), 0), 1_000))
    assert {us % 1_000 for us in drawn} == {500}
    assert 0 < min(drawn) < max(drawn) < 1_024_000


def test_what_is_drawn_comes_again_after_65536_heartbeats() -> None:
    """A whole round is late by the same amount, wherever it begins."""
    drawn = uniform()
    round_us = {Lateness(drawn, place).total_us(ROUND) for place in (0, 1, 5_000, ROUND - 1)}
    assert len(round_us) == 1


def test_work_delays_by_whole_4096ths_of_its_most() -> None:
    """Of 4,096 ms at most: by whole milliseconds."""
    lateness = on_time()
    lateness.works(0, SHARES, 4_096_000)
    delays = set(single(lateness, 1_000))
    assert {us % 1_000 for us in delays} == {0}
    assert len(delays) > 500


def test_an_application_works_if_its_draw_lies_below_its_share() -> None:
    """A sequence of its own says whether it works, in 65,536 parts, of which each share has 4,096: here for
    shares of 1, 2 and 3. A draw at the border lies above it."""
    below: list[int] = []
    at_border: list[int] = []
    for place, draw in enumerate(unpack("<65536H", shake_128(b"whether it works").digest(2 * ROUND))):
        share, distance = divmod(draw + 1, 4_096)
        if 0 < share < 4 and distance <= 1:
            lateness = on_time(place)
            lateness.works(0, share, 4_096_000)
            (at_border if distance else below).append(lateness.total_us(1))
    assert min(below) > 0
    assert set(at_border) == {0}


def test_another_share_of_work_counts_though_its_most_is_the_same() -> None:
    """On average half of the most delays a heartbeat that meets work."""
    lateness = on_time()
    lateness.works(0, 4, 32_000)
    assert lateness.mean_us == 4_000
    lateness.works(5, SHARES, 32_000)
    assert lateness.mean_us == 16_000


def test_work_that_stays_as_it_is_goes_on_with_its_draws() -> None:
    once, again = on_time(), on_time()
    once.works(0, 4, 32_000)
    again.works(0, 4, 32_000)
    again.works(5, 4, 32_000)
    assert [again.total_us(k) for k in range(100)] == [once.total_us(k) for k in range(100)]


def test_an_application_that_does_not_work_delays_no_heartbeat_whatever_its_batches() -> None:
    lateness = on_time()
    lateness.works(3, 0, 50_000)
    assert (lateness.most_us, lateness.mean_us, lateness.total_us(100)) == (0, 0, 0)

"""When records arrive: ends of logs, against a look at every microsecond."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)

PIECES = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 400_000_000)), min_size=1, max_size=4)


def _logs(*rates: tuple[int, int]) -> RecordLogs:
    return RecordLogs(lambda _: rates)


def test_rates_that_change() -> None:
    logs = _logs((0, 1_000_000), (5_000_000, 0), (7_000_000, 500))
    assert logs.end(P0, 5_000_000) == logs.end(P0, 8_999_999) == 5_000
    assert [logs.rate(P0, us) for us in (4_999_999, 5_000_000, 7_000_000)] == [1_000_000, 0, 500]
    assert (logs.curve(P0).arrived_us(4_999), logs.curve(P0).arrived_us(5_000)) == (5_000_000, 9_000_000)
    assert [logs.next_change_us(us) for us in (0, 5_000_000, 7_000_000)] == [5_000_000, 7_000_000, None]


def test_a_log_that_is_created_after_a_long_time_begins_empty() -> None:
    """Long after a record a second would have come, and at the instant of a change of the rate."""
    logs = _logs((0, 1_000), (5_000_000_000, 2_000), (6_000_000_000, 3_000))
    logs.create(P0, 5_000_000_000)
    assert [logs.end(P0, us) for us in (4_999_999_999, 5_000_000_000, 5_500_000_000)] == [0, 0, 1_000]
    assert [logs.rate(P0, us) for us in (4_999_999_999, 5_000_000_000, 6_000_000_000)] == [0, 2_000, 3_000]
    assert logs.curve(P0).arrived_us(0) == 5_000_500_000


def test_a_log_that_is_created_again_is_empty_again() -> None:
    logs = _logs((0, 100_000))
    for created_us in (5_000_000, 10_000_000):
        logs.create(P0, created_us)
    assert [logs.end(P0, us) for us in (9_000_000, 10_000_000, 11_000_000)] == [0, 0, 100]
    assert logs.end(P1, 11_000_000) == 1_100, "the other one has been there from the beginning"


def test_partitions_have_rates_of_their_own() -> None:
    logs = RecordLogs(lambda tp: ((0, 1_000 * (tp.partition + 1)),))
    assert (logs.end(P0, 5_000_000), logs.end(P1, 5_000_000)) == (5, 10)


def test_a_record_is_there_when_it_has_arrived_as_a_whole() -> None:
    assert [_logs((0, 999_999_999)).end(P0, us) for us in (1, 2)] == [0, 1]


@given(st.integers(-1, 60), PIECES)
def test_ends_are_the_sum_of_what_arrives_in_each_microsecond_from_the_creation_on(
    created_us: int, pieces: list[tuple[int, int]]
) -> None:
    """-1: the log was there before."""
    rates, from_us = [], 0
    for width_us, rate in pieces:
        rates.append((from_us, rate))
        from_us += width_us
    logs = _logs(*rates)
    if created_us >= 0:
        logs.create(P0, created_us)
    grown, seen = Fraction(0), 0
    for now_us in range(from_us + max(created_us, 0) + 20):
        end = grown.numerator // grown.denominator
        assert logs.end(P0, now_us) == end
        for offset in range(seen, end):
            assert logs.curve(P0).arrived_us(offset) == now_us
        seen = end
        if now_us >= created_us:
            grown += Fraction([rate for at, rate in rates if at <= now_us][-1], 10**9)

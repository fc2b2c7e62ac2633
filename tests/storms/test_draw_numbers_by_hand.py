"""Which random numbers the times of records and polls are drawn from, so that a seed gives the same times."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes

A, B = (TopicPartition("t", number) for number in range(2))
MS, SECOND = 1_000, 1_000_000

#: Two draws of 16 bits each, in the middle.
MIDDLE = 0x8000_8000


class Draws:
    """A stream that notes which numbers are drawn. All single ones are 0; the pairs are these."""

    def __init__(self, *pairs: tuple[int, int]) -> None:
        self.drawn: list[int] = []
        self._pairs = list(pairs)

    def at(self, index: int) -> int:
        self.drawn.append(index)
        return 0

    def pair(self, index: int) -> tuple[int, int]:
        self.drawn.append(index)
        return self._pairs.pop(0)


def times(draws: Any, process_ms: object) -> RecordTimes:
    return RecordTimes(distributions.parse("process_ms", process_ms), 1, draws)


UNIFORM = {"uniform": [2, 6]}

#: The draws of batch 3 begin here, and those of its slot 2 32 later.
THIRD = 3 * 16_777_216


# --- the times of one batch


def test_up_to_eight_records_draw_one_by_one() -> None:
    draws = Draws()
    assert times(draws, UNIFORM).records_us(A, 8, 3, 2) == 8 * 2_000
    assert draws.drawn == [THIRD + 32 + record for record in range(8)]


@pytest.mark.parametrize(
    ("count", "first", "us"),
    [
        # all twelve draws in the middle: the mean of 4 ms each
        (9, MIDDLE, 36_000),
        (12, MIDDLE, 48_000),
        # four draws a quarter higher or lower, one standard deviation: 1,154.7 us times the root of 12
        (12, 0xC000_C000, 48_000 + 3_999),
        (12, 0x4000_4000, 48_000 - 3_999),
    ],
)
def test_the_time_of_more_than_eight_records_is_drawn_from_twelve_numbers(
    count: int, first: int, us: int
) -> None:
    draws = Draws((first, first), (MIDDLE, MIDDLE), (MIDDLE, MIDDLE))
    assert times(draws, UNIFORM).records_us(A, count, 3, 2) == us
    assert draws.drawn == [THIRD + 32, THIRD + 33, THIRD + 34]


def test_the_time_between_two_polls_is_the_last_draw_of_its_batch() -> None:
    draws = Draws()
    interval = distributions.parse("poll_interval_ms", {"uniform": [100, 900]})
    assert times(draws, 1).interval_us(interval, 3) == 100 * MS
    assert draws.drawn == [THIRD + 16_777_215]


# --- the numbers of looks


class ByNumber:
    """The n-th look's draws are all n eighths of the span."""

    def at(self, index: int) -> int:
        return (index // 16_777_216) << 29


def numbered(rates: dict[TopicPartition, int], interval_ms: object, process_ms: object) -> PollLoop:
    """``rates``: records a second."""
    interval = distributions.parse("poll_interval_ms", interval_ms)
    logs = RecordLogs(lambda tp: ((0, rates[tp] * 1_000),))
    polling = PollSettings(500, 500, 1_000, interval, 60 * SECOND)
    return PollLoop(logs, polling, times(ByNumber(), process_ms))


LONGER: dict[str, Any] = {"uniform": [100, 900]}
"""Each look's interval is 100 ms longer than the one before it: 100 ms after the first."""


def test_looks_are_numbered_from_0_on() -> None:
    ours = numbered({A: 0}, LONGER, 1)
    ours.own((A,), (0,), 0)
    polls = [0]
    while len(polls) < 6:
        polls.append(ours.poll_after_us(polls[-1]))
    assert [poll // MS for poll in polls] == [0, 100, 300, 600, 1_000, 1_500]


def test_a_slow_batch_counts_as_one_look() -> None:
    """The looks at 0 and 0.1 s are numbers 0 and 1, the slow batch is number 2: then come 400 ms."""
    ours = numbered({A: 0}, LONGER, 1)
    ours.own((A,), (0,), 0)
    ours.stall(150 * MS, SECOND, polls=True)
    assert ours.next_poll_us(151 * MS) == 1_150 * MS
    assert ours.poll_after_us(1_150 * MS) == 1_550 * MS


def test_a_change_between_two_looks_leaves_the_numbers_as_they_are() -> None:
    """A record arrives at 1 s, 2 s and 3 s, when the application polls. The first one takes 20 ms, and each
    next one 10 ms more."""
    ours = numbered({A: 1, B: 0}, 1_000, {"uniform": [10, 90]})
    ours.own((A,), (0,), 0)
    assert ours.positions(1_020 * MS - 1) == {A: 0}
    assert ours.positions(1_020 * MS) == {A: 1}
    assert ours.positions(2_030 * MS - 1) == {A: 1}
    assert ours.positions(2_030 * MS) == {A: 2}
    ours.own((B,), (0,), 2_500 * MS)
    assert ours.positions(3_040 * MS - 1) == {A: 2, B: 0}
    assert ours.positions(3_040 * MS) == {A: 3, B: 0}

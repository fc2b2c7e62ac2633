"""Batches of records in hand, looks that fill them, and the times of their records: worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.randomness import Stream
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.batches import Batch, Stretch
from groupstorm.storms.world.looks import Looks, PollSettings
from groupstorm.storms.world.record_times import RecordTimes

A, B, C = (TopicPartition("t", number) for number in range(3))
SECOND = 1_000_000


def batch(*stretches: Stretch, poll_records: int = 4, look_us: int = 100) -> Batch:
    made = Batch(look_us, 7, 0, -1, poll_records, [A, B], [])
    made.stretches = list(stretches)
    made.end_us = stretches[-1][4] if stretches else look_us
    made.next_us = made.end_us
    return made


def two() -> Batch:
    """Ten records of A in 100 us, then five of B in 100 us."""
    return batch((A, 20, 10, 100, 200), (B, 60, 5, 200, 300))


# -- a batch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_us", "done", "polled"),
    [
        *((0, 0, 0), (100, 0, 0), (109, 0, 0), (110, 1, 0), (139, 3, 0), (140, 4, 4), (199, 9, 8)),
        *((200, 10, 8), (219, 10, 8), (220, 11, 8), (240, 12, 12), (299, 14, 12), (300, 15, 12)),
        (900, 15, 12),
    ],
)
def test_how_many_records_are_done_and_were_at_the_last_poll(at_us: int, done: int, polled: int) -> None:
    assert (two().done(at_us), two().polled(at_us)) == (done, polled)
    assert two().records == 15


STRETCHES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 50)), min_size=1, max_size=4)


@given(STRETCHES)
def test_a_record_is_finished_at_the_first_instant_at_which_it_is_done(parts: list[tuple[int, int]]) -> None:
    stretches, at_us = list[Stretch](), 100
    for number, (count, lasts_us) in enumerate(parts):
        stretches.append((TopicPartition("t", number), 0, count, at_us, at_us + lasts_us))
        at_us += lasts_us
    made = batch(*stretches)
    for record in range(1, made.records + 1):
        first = next(now_us for now_us in range(100, at_us + 1) if made.done(now_us) >= record)
        assert made.finished_us(record) == first
    assert made.finished_us(made.records + 1) == made.end_us


@pytest.mark.parametrize(
    ("done", "positions"),
    [(0, (20, 60)), (3, (23, 60)), (10, (30, 60)), (12, (30, 62)), (15, (30, 65))],
)
def test_positions_are_taken_back_to_what_is_done(done: int, positions: tuple[int, int]) -> None:
    behind = {A: 30, B: 65, C: 9}
    two().take_back(behind, done)
    assert behind == {A: positions[0], B: positions[1], C: 9}


def test_positions_are_never_moved_forward_nor_come_back() -> None:
    behind = {A: 15}
    two().take_back(behind, 2)
    assert behind == {A: 15}


@pytest.mark.parametrize(
    ("at_us", "cut_at", "left"),
    [
        (100, 20, [(B, 60, 5, 200, 300)]),
        (109, 20, [(B, 60, 5, 200, 300)]),
        (135, 23, [(A, 20, 3, 100, 135), (B, 60, 5, 200, 300)]),
        (200, None, [(A, 20, 10, 100, 200), (B, 60, 5, 200, 300)]),
    ],
)
def test_what_is_not_done_of_a_partition_is_cut(at_us: int, cut_at: int | None, left: list[Stretch]) -> None:
    made = two()
    assert made.cut(A, at_us) == cut_at
    assert made.stretches == left


def test_of_several_stretches_of_a_partition_the_first_unfinished_record_is_cut_at() -> None:
    made = batch((A, 20, 2, 100, 200), (A, 22, 1, 200, 300), (A, 23, 2, 300, 400))
    assert made.cut(A, 250) == 22
    assert made.stretches == [(A, 20, 2, 100, 200)]


@pytest.mark.parametrize(
    ("at_us", "stretches"),
    [
        (100, [(A, 20, 10, 1100, 1200), (B, 60, 5, 1200, 1300)]),
        (109, [(A, 20, 10, 1109, 1200), (B, 60, 5, 1200, 1300)]),
        (150, [(A, 20, 5, 100, 150), (A, 25, 5, 1150, 1200), (B, 60, 5, 1200, 1300)]),
        (200, [(A, 20, 10, 100, 200), (B, 60, 5, 1200, 1300)]),
    ],
)
def test_a_stall_moves_what_is_not_done(at_us: int, stretches: list[Stretch]) -> None:
    made = two()
    made.next_us = 350
    made.stall(at_us, 1000)
    assert made.stretches == stretches
    assert (made.end_us, made.next_us) == (1300, 1350)


# -- a look ------------------------------------------------------------------------------------------


def looks(
    poll: int = 500, fetch: int = 1000, interval_ms: object = 100, process_ms: object = 1, run: int = 0
) -> Looks:
    times = RecordTimes(distributions.parse("process_ms", process_ms), 1, Stream(1, "records", "m", 1))
    interval = distributions.parse("poll_interval_ms", interval_ms)
    return Looks(PollSettings(poll, run or poll, fetch, interval, SECOND), times)


def looked(
    rates: Sequence[int], settings: Looks, at_us: int = SECOND, turn: int = 0, left: int = -1
) -> tuple[Batch, dict[TopicPartition, int], tuple[int, int]]:
    """A look at one second, at logs that grow by so many records a second from 0 on."""
    logs = RecordLogs(lambda tp: ((0, 1000 * rates[tp.partition]),))
    order = [A, B, C][: len(rates)]
    made = Batch(at_us, 0, turn, left, 500, order, [logs.curve(partition) for partition in order])
    positions = dict.fromkeys(order, 0)
    follows = settings.fill(made, positions)
    return made, positions, follows


def test_a_look_takes_all_that_has_arrived_partition_by_partition() -> None:
    made, positions, follows = looked([3, 0, 2], looks())
    assert made.stretches == [(A, 0, 3, SECOND, SECOND + 3000), (C, 0, 2, SECOND + 3000, SECOND + 5000)]
    assert positions == {A: 3, B: 0, C: 2}
    assert (made.took_all, made.end_us, made.next_us) == (True, SECOND + 5000, SECOND + 100_000)
    assert follows == (0, -1)


def test_the_next_look_comes_when_the_work_is_done_if_that_takes_longer_than_the_interval() -> None:
    made, _, _ = looked([3], looks(process_ms=60))
    assert made.next_us == made.end_us == SECOND + 180_000


@pytest.mark.parametrize(
    ("poll", "positions", "follows", "took_all"),
    [
        (2, (2, 0, 0), (0, 1), False),
        (3, (3, 0, 0), (1, -1), False),
        (4, (3, 1, 0), (1, 2), False),
        (6, (3, 3, 0), (2, -1), False),
        (8, (3, 3, 2), (0, -1), True),
        (9, (3, 3, 2), (0, -1), True),
    ],
)
def test_a_look_takes_no_more_than_a_poll_returns(
    poll: int, positions: tuple[int, ...], follows: tuple[int, int], took_all: bool
) -> None:
    made, found, after = looked([3, 3, 2], looks(poll=poll))
    assert (tuple(found.values()), after, made.took_all) == (positions, follows, took_all)
    full = poll <= 8
    assert made.next_us == (made.end_us if full else SECOND + 100_000), "a full poll is followed by another"


def test_a_look_takes_no_more_than_a_fetch_of_each_partition() -> None:
    made, positions, follows = looked([9, 2, 9], looks(fetch=4))
    assert positions == {A: 4, B: 2, C: 4}
    assert (made.took_all, follows) == (False, (0, -1))
    exact, _, _ = looked([4, 2, 4], looks(fetch=4))
    assert exact.took_all


def test_a_look_begins_with_what_is_left_of_the_last_fetch() -> None:
    made, positions, follows = looked([5, 5, 5], looks(), turn=1, left=2)
    assert [stretch[0] for stretch in made.stretches] == [B, C, A]
    assert positions == {A: 5, B: 2, C: 5}
    assert (made.took_all, follows) == (False, (1, -1)), "B has more, which was not fetched yet"
    drained, _, _ = looked([5, 5, 5], looks(), turn=1, left=0)
    assert [stretch[0] for stretch in drained.stretches] == [C, A]
    assert drained.took_all, "nothing is fetched of it"


@pytest.mark.parametrize(
    ("interval_ms", "looks_every_us", "inside"),
    [(0, 50_000, True), (9.999, 50_000, True), (10, 10_000, False), (700, 700_000, False)],
)
def test_a_short_interval_means_that_the_application_waits_in_poll(
    interval_ms: float, looks_every_us: int, inside: bool
) -> None:
    made = looks(interval_ms=interval_ms)
    assert made.interval_us(3) == made.longest_interval_us == looks_every_us
    assert made.waits_in_poll is inside


@pytest.mark.parametrize(
    ("settings", "limit_ms", "partitions", "within"),
    [
        (looks(poll=50), 100, 1, True),  # at most 50 ms of work, and 100 ms between polls
        (looks(poll=50), 99, 1, False),
        (looks(poll=100), 100, 1, True),
        (looks(poll=101), 100, 1, False),
        (looks(poll=500, fetch=30), 100, 3, True),
        (looks(poll=500, fetch=30), 100, 4, False),
    ],
)
def test_polls_are_surely_near_each_other(
    settings: Looks, limit_ms: int, partitions: int, within: bool
) -> None:
    assert settings.polls_within(limit_ms * 1000, partitions) is within


@pytest.mark.parametrize(
    ("rates", "settings", "until_us"),
    [
        ([10], looks(), -1),
        # at most 2 and 3 records in each 100 ms: less than a poll returns, or not
        ([10, 20], looks(poll=6), -1),
        ([10, 20], looks(poll=5), 0),
        ([100], looks(fetch=11), -1),
        ([100], looks(fetch=10), 0),
        # 11 records in 100 ms, of which each takes 9 ms or 10
        ([100], looks(process_ms=9), -1),
        ([100], looks(process_ms=10), 0),
        ([10], looks(interval_ms={"uniform": [90, 100]}), 0),
    ],
)
def test_every_look_is_alike_as_long_as_a_poll_surely_takes_everything(
    rates: list[int], settings: Looks, until_us: int
) -> None:
    logs = RecordLogs(lambda tp: ((0, 1000 * rates[tp.partition]),))
    order = [A, B, C][: len(rates)]
    curves = [logs.curve(partition) for partition in order]
    assert settings.sure_until_us(order, curves, SECOND, SECOND) == until_us


def test_every_look_is_alike_until_the_first_change_of_a_rate() -> None:
    logs = RecordLogs(
        lambda tp: ((0, 10_000), (5 * SECOND, 20_000)) if tp == A else ((0, 10_000), (4 * SECOND, 0))
    )
    curves = [logs.curve(partition) for partition in (A, B)]
    assert looks().sure_until_us([A, B], curves, SECOND, SECOND) == 4 * SECOND
    assert looks().sure_until_us([B, A], curves[::-1], SECOND, SECOND) == 4 * SECOND
    assert looks().sure_until_us([A, B], curves, 4 * SECOND, SECOND) == 5 * SECOND
    assert looks().sure_until_us([A, B], curves, 5 * SECOND, SECOND) == -1


class Slow:
    """Records of A that take longer: offset -> microseconds."""

    def __init__(self, extra_us: dict[int, int]) -> None:
        self._extra_us = extra_us

    def extra_us(self, partition: TopicPartition, first: int, last: int) -> tuple[tuple[int, int], ...]:
        found = sorted(self._extra_us.items()) if partition == A else []
        return tuple((offset, us) for offset, us in found if first <= offset < last)

    def next_offset(self, partition: TopicPartition, first: int) -> int | None:
        later = [offset for offset in self._extra_us if offset >= first and partition == A]
        return min(later, default=None)


def with_slow(extra_us: dict[int, int]) -> Looks:
    process = distributions.parse("process_ms", 1)
    times = RecordTimes(process, 1, Stream(1, "x"), slow=Slow(extra_us))
    return Looks(PollSettings(500, 500, 1000, distributions.parse("poll_interval_ms", 100), SECOND), times)


@pytest.mark.parametrize(
    ("extra_us", "stretches"),
    [
        ({}, [(0, 5, 0, 5)]),
        ({2: 1000_000}, [(0, 2, 0, 2), (2, 1, 2, 1003), (3, 2, 1003, 1005)]),
        ({0: 10_000}, [(0, 1, 0, 11), (1, 4, 11, 15)]),
        ({4: 10_000}, [(0, 4, 0, 4), (4, 1, 4, 15)]),
        ({1: 10_000, 2: 20_000}, [(0, 1, 0, 1), (1, 1, 1, 12), (2, 1, 12, 33), (3, 2, 33, 35)]),
        ({9: 10_000}, [(0, 5, 0, 5)]),
    ],
)
def test_a_slow_record_is_worked_on_by_itself(
    extra_us: dict[int, int], stretches: list[tuple[int, int, int, int]]
) -> None:
    """Five records of 1 ms each: (first offset, how many, from and until when in ms after the look)."""
    made, _, _ = looked([5], with_slow(extra_us))
    assert made.stretches == [
        (A, first, count, SECOND + 1000 * from_ms, SECOND + 1000 * to_ms)
        for first, count, from_ms, to_ms in stretches
    ]
    assert made.end_us == SECOND + 1000 * stretches[-1][3]


def test_every_look_is_alike_until_a_slow_record_arrives() -> None:
    logs = RecordLogs(lambda _: ((0, 10_000), (5 * SECOND, 20_000)))
    curves = [logs.curve(A)]
    # ten records a second: the 26th (offset 25) arrives at 2.6 s
    assert with_slow({25: SECOND}).sure_until_us([A], curves, SECOND, SECOND) == 2_600_000
    assert with_slow({25: SECOND}).sure_until_us([A], curves, 3 * SECOND, 3 * SECOND) == 5 * SECOND
    # it has arrived, and was not taken before
    assert with_slow({25: SECOND}).sure_until_us([A], curves, 3 * SECOND, 2 * SECOND) == 0
    assert with_slow({900: SECOND}).sure_until_us([A], curves, SECOND, SECOND) == 5 * SECOND
    assert not with_slow({25: SECOND}).polls_within(SECOND, 1)


# -- the times of records ----------------------------------------------------------------------------


def times(process_ms: object, concurrency: int = 1, factor: int = 1000) -> RecordTimes:
    process = distributions.parse("process_ms", process_ms)
    return RecordTimes(process, concurrency, Stream(1, "records", "m", 1), factor)


class Doubled:
    """Records of B take twice as long."""

    def factor(self, partition: TopicPartition) -> int:
        return 2000 if partition == B else 1000


def test_constant_times_add_up_and_are_shared_and_stretched() -> None:
    assert times(3).records_us(A, 7, 0, 0) == 21_000
    assert times(3, concurrency=4).records_us(A, 7, 0, 0) == 5_250
    assert times(3, concurrency=4, factor=1500).records_us(A, 8, 0, 0) == 9_000
    double = RecordTimes(distributions.parse("p", 3), 2, Stream(1, "x"), 1000, Doubled())
    assert [double.records_us(tp, 4, 0, 0) for tp in (A, B)] == [6_000, 12_000]
    assert [double.most_us(tp, 4) for tp in (A, B)] == [6_000, 12_000]
    assert double.largest_us(4) == double.mean_us(4) == 6_000


def test_the_longest_and_the_mean_time_of_records() -> None:
    uniform = times({"uniform": [2, 6]}, concurrency=2, factor=3000)
    assert uniform.most_us(A, 10) == uniform.largest_us(10) == 10 * 6_000 * 3 // 2
    assert uniform.mean_us(10) == 10 * 4_000 * 3 // 2


@pytest.mark.parametrize("count", [1, 8, 9, 400])
def test_drawn_times_have_the_mean_and_the_spread_of_their_distribution(count: int) -> None:
    drawn = times({"uniform": [2, 6]})
    found = [drawn.records_us(A, count, number, 0) for number in range(1500)]
    assert all(count * 2_000 <= us <= count * 6_000 for us in found)
    mean = Fraction(sum(found), len(found))
    assert float(mean) == pytest.approx(count * 4_000, abs=4 * 1155 * count**0.5 / 38)
    variance = sum((us - mean) ** 2 for us in found) / len(found)
    # a uniform distribution's standard deviation: its width / sqrt(12)
    assert float(variance) ** 0.5 == pytest.approx(4_000 / 12**0.5 * count**0.5, rel=0.08)
    assert len(set(found)) > 700


def test_slots_and_batches_draw_for_themselves() -> None:
    drawn = times({"uniform": [2, 6]})
    by_place = {drawn.records_us(A, 3, number, slot) for number in range(20) for slot in range(20)}
    assert len(by_place) > 380
    interval = distributions.parse("poll_interval_ms", {"uniform": [100, 900]})
    between = [drawn.interval_us(interval, number) for number in range(400)]
    assert len(set(between)) > 390
    assert sum(between) / 400 == pytest.approx(500_000, abs=40_000)
    assert drawn.interval_us(distributions.parse("poll_interval_ms", 70), 3) == 70_000


def test_a_sum_of_many_drawn_times_stays_within_their_bounds() -> None:
    """Of a skewed distribution the normal one would often be shorter than the shortest time."""
    skewed = times({"quantiles": {0: 1, 99: 1.001, 100: 1000}})
    found = [skewed.records_us(A, 9, number, 0) for number in range(300)]
    assert min(found) == 9 * 1000
    most = times({"quantiles": {0: 0, 1: 999.999, 100: 1000}})
    assert max(most.records_us(A, 9, number, 0) for number in range(300)) == 9 * SECOND

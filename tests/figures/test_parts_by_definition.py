"""The arithmetic of figures, part by part, against the plainest definition: sets, and every microsecond."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.figures.lag import LagCurve
from groupstorm.figures.percentiles import nearest_rank, percentile
from groupstorm.figures.progress import Progress
from groupstorm.figures.record_model import NANO, Line, RecordModel
from groupstorm.figures.records import RecordSums
from groupstorm.figures.staleness import arrived_us, oldest_us

# -- records -----------------------------------------------------------------------------------------

RANGES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 25), st.integers(-2, 9)), max_size=12)


@given(RANGES, st.integers(0, 12))
def test_records_are_counted_as_sets_of_offsets(ranges: list[tuple[str, int, int]], deleted_at: int) -> None:
    """Partition ``a`` is deleted once: the offsets of the next one of its name are other records."""
    sums = RecordSums()
    covered: dict[tuple[str, int], list[int]] = {}
    first: dict[tuple[str, int], int] = {}
    furthest: dict[tuple[str, int], int] = {}
    life = 0
    for number, (name, start, size) in enumerate(ranges):
        if number == deleted_at:
            sums.forget("a")
            life = 1
        key = name, life if name == "a" else 0
        sums.begin(name, start)
        sums.end(name, start, start + size)
        first.setdefault(key, start)
        covered.setdefault(key, []).extend(range(start, start + size))
        furthest[key] = max(furthest.get(key, start), start + size, first[key])
    offsets = [offset for of in covered.values() for offset in of]
    assert sums.processed == len(offsets)
    assert sums.duplicated == len(offsets) - sum(len(set(of)) for of in covered.values())
    assert sums.skipped == sum(
        len(set(range(first[key], furthest[key])) - set(of)) for key, of in covered.items()
    )


def test_a_partition_that_nobody_processed_is_forgotten() -> None:
    sums = RecordSums()
    sums.forget("a")
    assert (sums.processed, sums.duplicated, sums.skipped) == (0, 0, 0)


# -- lines -------------------------------------------------------------------------------------------


def test_an_owner_is_never_ahead_of_the_log_nor_behind_where_it_began() -> None:
    model = RecordModel(10, 30)  # records per second
    assert model.process_rate == 30_000
    owner = Line(5, 0, 30_000)
    assert [model.position("t", owner, at_ms * 1_000) for at_ms in (0, 200, 1000, 2050)] == [5, 5, 10, 20]
    model.change_log("t", Line(100, 2_000_000, 0))
    assert [model.position("t", owner, at_s * 1_000_000) for at_s in (2, 3, 4)] == [65, 95, 100]
    assert model.log("other") == Line(0, 0, 10_000)
    model.forget_log("t")
    assert model.log("t") == Line(0, 0, 10_000)
    line = Line(7, 50, 3)
    assert [line.exact(at_us) for at_us in (50, 60)] == [7 * NANO, 7 * NANO + 30]
    assert line.base() + line.rate * 60 == line.exact(60)


# -- the age of records ------------------------------------------------------------------------------

RATES = st.sampled_from([0, 50_000_000, 120_000_000, 400_000_000, NANO])


def log_lines(pieces: Sequence[tuple[int, int]]) -> list[Line]:
    """A log that grows by these rates, each for so long, in whole records between the pieces."""
    lines = [Line(0, 0, pieces[0][1])]
    for lasts_us, rate in pieces[1:]:
        before = lines[-1]
        from_us = before.from_us + lasts_us
        lines.append(Line(before.exact(from_us) // NANO, from_us, rate))
    return lines


def end_of(lines: Sequence[Line], at_us: int) -> int:
    return next(line for line in reversed(lines) if line.from_us <= at_us).exact(at_us)


PIECES = st.lists(st.tuples(st.integers(1, 30), RATES), min_size=1, max_size=3)


@given(PIECES, st.integers(0, 40))
def test_a_record_has_arrived_when_the_log_is_not_below_it_for_good(
    pieces: list[tuple[int, int]], record: int
) -> None:
    lines = log_lines(pieces)
    below = [at_us for at_us in range(400) if end_of(lines, at_us) < record * NANO]
    found = arrived_us(lines, record * NANO)
    if below and below[-1] == 399:
        assert found is None or found > 399
    else:
        assert found is not None
        # where a log loses a part of a record as its rate changes, the first time counts
        first = next(at_us for at_us in range(400) if end_of(lines, at_us) >= record * NANO)
        assert first <= found <= (below[-1] + 1 if below else 0) or found == first


@given(
    st.integers(1, 60),
    RATES,
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(0, 20), RATES), max_size=2),
    st.integers(0, 30),
)
def test_the_oldest_record_is_looked_for_at_every_microsecond(
    lasts_us: int, rate: int, furthest: int, owners: list[tuple[int, int]], known_us: int
) -> None:
    logs, from_us = [Line(0, 0, rate)], 30
    to_us = from_us + lasts_us
    lines = [(position * NANO - owner_rate * from_us, owner_rate) for position, owner_rate in owners]
    oldest = known_us
    for at_us in range(from_us, to_us + 1):
        reached = max([furthest * NANO, *(base + speed * at_us for base, speed in lines)])
        if logs[0].exact(at_us) < reached + NANO:
            continue
        arrived = next(then for then in range(at_us + 1) if logs[0].exact(then) >= reached + NANO)
        oldest = max(oldest, at_us - arrived)
    assert oldest_us(known_us, logs, furthest * NANO, lines, from_us, to_us) == oldest


def test_a_record_arrives_in_the_microsecond_in_which_the_log_reaches_it() -> None:
    grows, stands = Line(0, 10, 5), Line(0, 10, 0)
    assert [arrived_us([grows], position) for position in (0, 1, 5, 6)] == [10, 11, 11, 12]
    assert [arrived_us([stands], position) for position in (0, 1)] == [10, None]
    jumps = [stands, Line(1, 50, 5)]
    assert [arrived_us(jumps, position) for position in (1, NANO, NANO + 1)] == [50, 50, 51]


def test_the_oldest_record_may_be_oldest_where_one_owner_overtakes_another() -> None:
    """A record arrives each microsecond. One owner stands at 5; another one passes it at 15 us, twice as fast
    as records arrive. The record at 5 came at 6 us: it is 9 us old then, and younger before and after."""
    owners = [(5 * NANO, 0), (-25 * NANO, 2 * NANO)]
    assert oldest_us(0, [Line(0, 0, NANO)], 0, owners, 10, 20) == 9


def test_the_oldest_record_is_looked_for_on_both_sides_of_the_instant_of_overtaking() -> None:
    """Ten records a microsecond: the one behind offset 5 came at 1 us. The second owner passes between 15 and
    16 us. At 16 us it is at 5.2, so that the record that waits still is the one of 1 us; then it is fast."""
    owners = [(5 * NANO, 0), (-394_800_000_000, 25 * NANO)]
    assert oldest_us(0, [Line(0, 0, 10 * NANO)], 0, owners, 10, 20) == 15


def test_a_billionth_of_a_record_lags() -> None:
    """One record in 1,000 seconds arrives, and nobody moves: the lag is what the log holds."""
    curve = LagCurve()
    curve.create("t", 0, Line(0, 0, 1))
    curve.start("t", Line(0, 0, 0))
    curve.begin_peak(0)
    curve.start("t", Line(0, 1, 0))  # another owner, from 1 us on
    assert curve.finish(3) == (3, None)


# -- percentiles -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), max_size=30), st.sampled_from([1, 50, 95, 99, 100]))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(values: list[int], percent: int) -> None:
    values.sort()
    least = [one for one in values if sum(other <= one for other in values) * 100 >= percent * len(values)]
    assert percentile(values, percent) == (least[0] if values else 0)


def test_ranks_count_from_one() -> None:
    assert [nearest_rank(count, 50) for count in (1, 2, 3, 4)] == [1, 1, 2, 2]
    assert nearest_rank(10, 0) == 1


# -- generations without progress --------------------------------------------------------------------


def without(*stables: tuple[int, int], end: tuple[int, int]) -> int:
    """Generations are complete when so many records are processed and so many wait."""
    progress = Progress()
    for processed, waiting in stables:
        progress.stable(processed * NANO, waiting * NANO)
    progress.finish(end[0] * NANO, end[1] * NANO)
    return progress.without_max


@pytest.mark.parametrize(
    ("stables", "end", "found"),
    [
        ([], (0, 9), 0),
        ([(0, 9)], (0, 9), 1),
        ([(0, 9)], (1, 9), 0),
        ([(0, 9)], (0, 0), 0),
        ([(0, 9), (0, 9)], (0, 1), 2),
        ([(0, 9), (0, 9), (1, 8), (1, 8)], (1, 8), 2),
        ([(0, 9), (1, 8), (1, 8)], (1, 8), 2),
        # a crash sets the group back: only what was never reached before is progress
        ([(5, 9), (5, 9), (3, 9), (5, 9)], (6, 9), 3),
    ],
)
def test_generations_without_progress_in_a_row(
    stables: list[tuple[int, int]], end: tuple[int, int], found: int
) -> None:
    assert without(*stables, end=end) == found


def test_less_than_a_record_is_no_progress_and_nothing_that_waits() -> None:
    progress = Progress()
    progress.stable(0, NANO)
    progress.stable(NANO - 1, NANO)
    assert progress.without_max == 1
    progress.stable(NANO - 1, NANO - 1)
    progress.finish(NANO - 1, NANO)
    assert progress.without_max == 1


def test_a_window_counts_its_own_generations() -> None:
    progress = Progress()
    for _ in range(4):
        progress.stable(0, NANO)
    progress.begin_window()
    assert progress.without_max == 0
    progress.stable(0, NANO)
    progress.stable(0, NANO)
    progress.finish(0, NANO)
    assert progress.without_max == 2

"""The one-pass figures equal what a look at every microsecond gives."""

from __future__ import annotations

from itertools import chain

import pytest

from groupstorm.figures import FiguresAccumulator
from groupstorm.figures.totals import Totals
from tests.figures.brute_force import BruteForce
from tests.figures.settled_oracle import changes
from tests.figures.synthetic import trace
from tests.figures.synthetic_rows import TracedRow
from tests.soaking import one_in

SEEDS = range(40)


def short_trace(seed: int) -> list[TracedRow]:
    rates = ((300_000, 900_000), (1_000_000, 700_000), (333_333, 1_000_000))[seed % 3]
    changing = seed % 2 == 1
    return trace(seed, actions=14, step_us=8, members=3, partitions=3, rates=rates, rates_change=changing)


def totals(rows: list[TracedRow]) -> Totals:
    accumulator = FiguresAccumulator()
    for row in rows:
        accumulator.add(*row)
    return accumulator.totals()


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_ownership(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows)
    assert quick.sums.ownership.dual_us == slow.dual_us()
    if slow.begin_row is None:
        assert quick.gaps is None
        return
    assert quick.gaps is not None
    gaps = sorted(until_us - from_us for _, from_us, until_us, _, _ in slow.gaps())
    assert (quick.gaps.total, quick.gaps.longest) == (sum(gaps), max(gaps, default=0))
    if gaps:
        for percent, found in ((50, quick.gaps.p50), (95, quick.gaps.p95)):
            least = min(gap for gap in gaps if sum(g <= gap for g in gaps) * 100 >= percent * len(gaps))
            assert found == least
    assert quick.sums.ownership.nobody_us == slow.nobody_us()
    assert quick.sums.ownership.paused_us == slow.paused_us()


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_records(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows).figures()
    ranges = slow.ranges()
    processed = sum(map(len, chain.from_iterable(ranges.values())))
    assert quick.records_processed == processed
    assert quick.records_duplicated == processed - sum(len(set(chain(*found))) for found in ranges.values())
    skipped = {}
    for name, found in ranges.items():
        if found:
            behind = range(slow.first_counted(name), max(r.stop for r in found))
            skipped[name] = len(set(behind) - set(chain(*found)))
    assert quick.records_skipped == sum(skipped.values())
    most = max(skipped.values(), default=0)
    assert quick.skipped_worst_partition == (min(n for n in skipped if skipped[n] == most) if most else None)


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_lag(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows)
    if slow.begin_row is None:
        assert quick.lag_peak_nano is None
    else:
        peak = max(lag for _, lag in slow.lags(slow.begin_row))
        assert quick.lag_peak_nano == peak


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_the_lag_at_the_end_and_its_growth(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows)
    end_us, last_row = rows[-1][0], len(rows) - 1
    assert quick.lag_at_end_nano == slow.lag(last_row, end_us)
    assert quick.lag_growth == slow.lag(last_row, end_us + 1) - slow.lag(last_row, end_us)


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_ages(seed: int) -> None:
    rows = short_trace(seed)
    slow, found = BruteForce(rows), totals(rows).ages_us
    if slow.begin_row is None:
        assert found is None
    else:
        begun_us = rows[slow.begin_row][0]
        assert found == {name: slow.oldest_us(name, begun_us) for name in slow.created}


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_generations_without_progress(seed: int) -> None:
    rows = short_trace(seed)
    assert (
        totals(rows).figures().generations_without_progress_max
        == BruteForce(rows).generations_without_progress()
    )


def test_the_traces_have_old_records_and_generations_without_progress() -> None:
    found = [totals(short_trace(seed)) for seed in SEEDS]
    assert sum(max((one.ages_us or {}).values(), default=0) > 20 for one in found) > 20
    assert sum(one.sums.progress.without_max > 0 for one in found) > 5


@pytest.mark.parametrize("seed", one_in(3, SEEDS))
def test_lag_recovery(seed: int) -> None:
    """Whether the group had settled before is asked of the shorter trace; the rest is brute force."""
    rows = short_trace(seed)
    quick = totals(rows).lag_recovery_us
    settled = (
        n
        for n in changes(rows)
        if totals([row for row in rows if row[0] < rows[n][0]]).sums.moves.moves is not None
    )
    change_row = next(settled, None)
    if change_row is None:
        assert quick is None
        return
    slow, change_us = BruteForce(rows), rows[change_row][0]
    before = slow.lag(slow.last_row_at(change_us - 1), change_us)
    values = slow.lags(change_row, skipped=True)
    late = [now_us for now_us, lag in values if lag > before]
    if values[-1][1] > before:
        assert quick is None
    elif not late:
        assert quick == 0
    else:
        low_from = next(now_us for now_us, lag in values if now_us >= late[-1] and lag <= before)
        assert quick == low_from - change_us

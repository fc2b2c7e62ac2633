"""The one-pass fold equals the oracle that asks every question of all rows: settled points, rounds, moves."""

from __future__ import annotations

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from tests.figures.settled_oracle import SettledOracle
from tests.figures.synthetic import trace
from tests.figures.synthetic_rows import TracedRow
from tests.soaking import one_in

SEEDS = range(40)
SAMPLED = one_in(3, SEEDS)


def group(seed: int) -> list[TracedRow]:
    rates_change = seed % 3 == 1
    return trace(seed, actions=25, members=3 + seed % 2, partitions=3 + seed % 4, rates_change=rates_change)


def fold(rows: list[TracedRow], from_us: int = 0) -> FiguresAccumulator:
    accumulator = FiguresAccumulator(from_us)
    for row in rows:
        accumulator.add(*row)
    return accumulator


@pytest.mark.parametrize("seed", SAMPLED)
def test_settled_points_rounds_and_moves(seed: int) -> None:
    rows = group(seed)
    slow, quick = SettledOracle(rows), fold(rows).totals()
    sums, figures = quick.sums, quick.figures()
    rounds, latencies = slow.rounds(), slow.latencies_us()
    assert figures.generations == len(slow.stable_rows())
    assert (sums.changes, sums.rounds_after_changes) == (len(rounds), sum(rounds))
    assert (sums.rounds.latencies, sums.rounds.latency_sum_us) == (len(latencies), sum(latencies))
    assert sums.rounds.latency_max_us == max(latencies, default=None)
    assert figures.moves == slow.moves()
    assert figures.moves_lower_bound == slow.moves_lower_bound()
    assert figures.imbalance_max == slow.imbalance_max()
    assert sums.moves.imbalance_rate_max == slow.imbalance_rate_max()
    assert figures.idle_members_max == slow.idle_members_max()
    assert figures.revoked_and_returned == slow.revoked_and_returned()


@pytest.mark.parametrize("seed", SAMPLED)
def test_the_group_is_settled_when_the_oracle_says_so(seed: int) -> None:
    """Cut after any instant, the trace has as many settled points as the oracle finds up to there."""
    rows = group(seed)
    slow = SettledOracle(rows)
    first = slow.points[0].row if slow.points else len(rows)
    for number in range(1, len(rows)):
        if rows[number][0] > rows[number - 1][0]:
            settled = fold(rows[:number]).figures().moves is not None
            assert settled == (number - 1 >= first)


@pytest.mark.parametrize("seed", SAMPLED)
def test_the_answer_says_what_the_oracle_counts(seed: int) -> None:
    rows = group(seed)
    slow, figures = SettledOracle(rows), fold(rows).figures()
    generations, moves = len(slow.stable_rows()), slow.moves()
    assert figures.answer.startswith(f"{generations} generation{'' if generations == 1 else 's'}; ")
    if moves is None:
        assert "; the group never settled" in figures.answer
    elif moves == 0:
        assert "; nothing moved for good" in figures.answer
    else:
        assert f"; {moves} partition{'' if moves == 1 else 's'} moved" in figures.answer
    bound = slow.moves_lower_bound()
    if moves and bound is not None and moves > bound:
        assert f"moved, {moves - bound} of them needlessly" in figures.answer
    assert ("un-owned for" in figures.answer) == bool(figures.unowned_partition_seconds)


def test_the_traces_are_worth_it() -> None:
    """Most traces settle several times, with changes that take more than one round, moves and waste."""
    found: list[Figures] = [fold(group(seed)).figures() for seed in SEEDS]
    assert sum((one.moves or 0) > 1 for one in found) > 25
    assert sum((one.moves_wasted or 0) != 0 for one in found) > 12
    assert sum((one.rounds_per_change or 0) > 1 for one in found) > 12
    assert sum((one.revoked_and_returned or 0) > 0 for one in found) > 12
    assert sum((one.imbalance_max or 0) > 1 for one in found) > 12


@pytest.mark.parametrize("seed", one_in(3, range(12)))
def test_a_window_counts_from_its_beginning(seed: int) -> None:
    """Counts of a window are those of the rows in it; what lasts is cut where it begins."""
    rows = group(seed)
    from_us = rows[len(rows) // 2][0]
    slow, quick = SettledOracle(rows), fold(rows, from_us).totals()
    ownership, figures = slow.ownership, quick.figures()
    assert figures.generations == sum(rows[row][0] >= from_us for row in slow.stable_rows())
    if ownership.begin_row is None:
        assert quick.gaps is None
    else:
        assert quick.gaps is not None
        gaps = [
            min(until - from_us, until - begin)
            for _, begin, until, _, _ in ownership.gaps()
            if until > from_us
        ]
        assert quick.gaps.total == sum(gaps)
        assert quick.gaps.longest == max(gaps, default=0)
        lasting = range(max(from_us, rows[ownership.begin_row][0]), ownership.end_us)
        nobody = [
            now_us
            for now_us in lasting
            if not any(
                ownership.processing(name, ownership.last_row_at(now_us)) for name in ownership.created
            )
        ]
        assert quick.sums.ownership.nobody_us == len(nobody)
        begun_us = rows[ownership.begin_row][0]
        lags = [lag for now_us, lag in ownership.lags(ownership.begin_row) if now_us >= from_us]
        if begun_us < from_us:
            lags.append(ownership.lag(ownership.last_row_at(from_us - 1), from_us))
        assert quick.lag_peak_nano == max(lags)
        begin_us = max(from_us, begun_us)
        ages = {name: ownership.oldest_us(name, begin_us) for name in ownership.created}
        assert quick.ages_us == ages
    dual = [
        len(ownership.processing(name, ownership.last_row_at(now_us))) > 1
        for now_us in range(from_us, ownership.end_us)
        for name in ownership.created
    ]
    assert quick.sums.ownership.dual_us == sum(dual)
    last_before = [point for point in slow.points if rows[point.row][0] < from_us][-1:]
    slow.points = last_before + [point for point in slow.points if rows[point.row][0] >= from_us]
    assert figures.moves == slow.moves()
    assert figures.imbalance_max == slow.imbalance_max()
    assert quick.sums.moves.imbalance_rate_max == slow.imbalance_rate_max()
    assert figures.idle_members_max == slow.idle_members_max()

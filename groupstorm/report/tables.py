"""Figures as tables, those that people ask for first: a few runs side by side, many one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from groupstorm.figures import Figures
from groupstorm.report.grid import Grid, Row, csv_text
from groupstorm.verdicts.measures import Spread, all_within_spread, spread_of
from groupstorm.wording import listed, size

#: Runs by the name of their column: one of each seed.
Runs = Mapping[str, Sequence[Figures]]

#: The figures that a table has without --all, in the order in which people ask.
LEADING = (
    "generations",
    "rounds_per_change",
    "unowned_partition_seconds",
    "unowned_max_seconds",
    "unowned_worst_partition",
    "nobody_consuming_seconds",
    "cost_per_deploy_partition_seconds",
    "cost_per_crash_partition_seconds",
    "dual_owner_seconds",
    "staleness_max_seconds",
    "staleness_worst_partition",
    "lag_peak",
    "lag_recovery_seconds",
    "lag_growth_per_second",
    "records_duplicated",
    "records_skipped",
    "skipped_worst_partition",
    "moves",
    "moves_wasted",
    "imbalance_max",
    "imbalance_records_max",
    "max_poll_interval_exceeded",
    "rebalance_latency_max_ms",
    "generations_without_progress_max",
    "task_downtime_seconds",
    "task_downtime_max_seconds",
    "probing_rebalances",
    "converged_after_seconds",
    "tasks_from_scratch",
    "restored_bytes",
    "cross_rack_usd",
    "records_per_second",
    "busy_consumers_percent",
    "busy_consumers_mean",
    "consumers_without_records",
    "first_record_seconds",
    "lock_seconds_lost",
    "in_flight_max",
    "records_archived",
    "records_dead_lettered",
    "records_out_of_order",
)
#: Figures that count by name.
COUNTS = (
    *("requests", "errors", "commits_rejected", "consumers_failed", "delivery_counts"),
    "redeliveries_by_cause",
)
#: Figures that are no cells of a table.
NOT_IN_TABLES = frozenset({"answer", "invariants", *COUNTS})

#: More runs than this stand one below the other.
SIDE_BY_SIDE_MAX = 4

#: The figures of such a table, and what heads their columns.
HEADINGS = {
    "generations": "gen.",
    "unowned_partition_seconds": "un-owned s",
    "unowned_max_seconds": "longest gap s",
    "staleness_max_seconds": "stale s",
    "cost_per_deploy_partition_seconds": "per deploy s",
    "cost_per_crash_partition_seconds": "per crash s",
    "lag_peak": "peak lag",
    "records_duplicated": "again",
    "moves": "moves",
    "moves_wasted": "wasted moves",
    "imbalance_max": "un-even",
    "nobody_consuming_seconds": "nobody s",
    "task_downtime_seconds": "tasks down s",
    "records_per_second": "done a s",
    "busy_consumers_percent": "busy %",
    "lock_seconds_lost": "locked s",
    "records_archived": "archived",
    "records_out_of_order": "un-ordered",
}

RANGE = "  least..most"
ALIKE = "~"
ALIKE_NOTE = f"{ALIKE} differs by no more than the seeds do"


def figure_names() -> list[str]:
    """All figures that tables show, the leading ones first."""
    names = [field.name for field in fields(Figures) if field.name not in NOT_IN_TABLES]
    leading = [name for name in LEADING if name in names]
    return [*leading, *(name for name in names if name not in leading)]


def figures_grid(title: str, runs: Runs, everything: bool = False) -> Grid:
    """Medians, and below them the range over several seeds.

    ``everything``: all figures, in blocks of columns if there are many runs.
    """
    if len(runs) > SIDE_BY_SIDE_MAX and not everything:
        return _one_below_the_other(title, runs)
    return _side_by_side(title, runs, everything)


def _side_by_side(title: str, runs: Runs, everything: bool) -> Grid:
    """A column per name; below them, if ``everything``, the sums of requests and errors."""
    rows, zero = [], []
    for name in figure_names():
        if name not in LEADING and not everything:
            continue
        of_runs = [[getattr(figures, name) for figures in each] for each in runs.values()]
        if all(value is None for values in of_runs for value in values):
            continue
        if not everything and all(value == 0 for values in of_runs for value in values):
            zero.append(name)
        elif not _are_different_names(of_runs):
            rows.append(_row(name, of_runs))
    if everything:
        rows += _counts(runs)
    notes = [ALIKE_NOTE] if any(row.mark for row in rows) else []
    if zero:
        notes.append(f"0 everywhere: {', '.join(zero)}")
    return Grid(("figure", *runs), rows, title, [*notes, *bounds_note(runs)])


def bounds_note(runs: Runs) -> list[str]:
    """The note on runs with figures that are bounds, of which only the answers say so; none without any."""
    answers = {name: " ".join(figures.answer or "" for figures in each) for name, each in runs.items()}
    bounds = [name for name, answer in answers.items() if "at least " in answer or "at most " in answer]
    note = 'Some figures are bounds ("at least" or "at most" in the answer)'
    return [f"{note}: {listed(bounds)}"] if bounds else []


def _one_below_the_other(title: str, runs: Runs) -> Grid:
    every = [figures for each in runs.values() for figures in each]
    names = [name for name in HEADINGS if any(getattr(figures, name, None) is not None for figures in every)]
    rows = []
    for run, each in runs.items():
        cells, below = [], []
        for name in names:
            cell, under = _cell(name, [getattr(figures, name) for figures in each])
            cells.append(cell)
            below.append(under)
        rows.append(Row(run, cells, below if any(below) else (), RANGE))
    return Grid(("", *(HEADINGS[name] for name in names)), rows, title, bounds_note(runs))


def _row(name: str, of_runs: Sequence[Sequence[Any]]) -> Row:
    cells, below = zip(*(_cell(name, values) for values in of_runs), strict=True)
    spreads = [spread for values in of_runs if (spread := spread_of(values)) is not None]
    several_seeds = any(len(values) > 1 for values in of_runs)
    alike = several_seeds and len(spreads) > 1 and all_within_spread(spreads)
    return Row(name, cells, below if any(below) else (), RANGE, ALIKE if alike else "")


def _cell(name: str, values: Sequence[Any]) -> tuple[str, str]:
    """The median and the range; of names, the only one or how many there are."""
    spread = spread_of(values)
    if spread is None:
        texts = {value for value in values if value is not None}
        return (texts.pop() if len(texts) == 1 else f"{len(texts)} names" if texts else "-"), ""
    unknown = sum(value is None for value in values)
    below = "" if spread.least == spread.most else range_shown(name, spread)
    if unknown:
        below = f"{below} {unknown} without".strip()
    return brief(name, spread.median), below


def range_shown(name: str, spread: Spread) -> str:
    return f"{brief(name, spread.least)}..{brief(name, spread.most)}"


def _are_different_names(of_runs: Sequence[Sequence[Any]]) -> bool:
    """Names, a different one for each seed: nothing for a table."""
    return all(len({value for value in values if isinstance(value, str)}) > 1 for values in of_runs)


def _counts(runs: Runs) -> list[Row]:
    rows = []
    for name in COUNTS:
        every = [[getattr(figures, name) or {} for figures in each] for each in runs.values()]
        for key in sorted({key for each in every for counts in each for key in counts}):
            of_runs = [[counts.get(key, 0) for counts in each] for each in every]
            rows.append(_row(f"{name}: {key}", of_runs))
    return rows


def spreads(runs: Sequence[Figures]) -> dict[str, Spread]:
    """Least, median and most of every figure that is a number in some run."""
    found = {name: spread_of(getattr(figures, name) for figures in runs) for name in figure_names()}
    return {name: one for name, one in found.items() if one is not None}


def spread(runs: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """`spreads` as JSON has them."""
    return {name: one._asdict() for name, one in spreads(runs).items()}


def figures_csv(first: Sequence[str], rows: Sequence[tuple[Sequence[Any], Figures]]) -> str:
    """A row per run: the columns ``first``, then every figure that is a number or a name, exact."""
    names = figure_names()
    values = [[*head, *(getattr(figures, name) for name in names)] for head, figures in rows]
    return csv_text([*first, *names], values)


def brief(name: str, value: float | None) -> str:
    """A number with three digits that count at least; bytes in words. `figures.json` has all digits."""
    if value is None:
        return "-"
    if name.endswith("_bytes") and value:
        return size(value)
    if isinstance(value, int) or value == int(value):
        return f"{value:,.0f}"
    decimals = 4 if name.endswith("_usd") else 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{decimals}f}"


def seeds_named(seeds: Sequence[int]) -> str:
    """The seeds of some runs, for a title."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"

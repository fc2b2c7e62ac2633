"""Figures as tables for a terminal: one column per run, what has no meaning left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from statistics import median
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from groupstorm.storms.figures import Figures
from groupstorm.storms.figures.wording import size

#: The figures that a table begins with, in the order in which people ask; the rest follows.
LEADING = (
    "generations",
    "rounds_per_change",
    "unowned_partition_seconds",
    "unowned_max_seconds",
    "nobody_consuming_seconds",
    "moves",
    "moves_wasted",
    "lag_peak",
    "records_duplicated",
    "task_downtime_seconds",
    "task_downtime_max_seconds",
    "probing_rebalances",
    "converged_after_seconds",
    "tasks_from_scratch",
    "restored_bytes",
    "cross_rack_usd",
)
#: Figures that are told elsewhere than in the table's numbers.
NOT_IN_TABLES = frozenset({"answer", "invariants", "requests", "errors", "commits_rejected"})


def figure_names() -> list[str]:
    """All figures that tables show, the leading ones first."""
    names = [field.name for field in fields(Figures) if field.name not in NOT_IN_TABLES]
    return [*LEADING, *(name for name in names if name not in LEADING)]


#: More runs than this are told one below the other, with the figures that people ask for first.
SIDE_BY_SIDE_MAX = 4

#: Those figures, and what heads their columns.
_HEADINGS = {
    "generations": "gen.",
    "rounds_per_change": "rounds",
    "unowned_partition_seconds": "un-\nowned s",
    "unowned_max_seconds": "longest\ngap s",
    "nobody_consuming_seconds": "nobody\ns",
    "moves": "moves",
    "moves_wasted": "wasted",
    "imbalance_max": "uneven",
    "records_duplicated": "again",
}


def figures_table(title: str, runs: Mapping[str, Figures]) -> Table:
    """Figures of a few runs side by side; of many, the leading ones with a row for each run."""
    return _one_below_the_other(title, runs) if len(runs) > SIDE_BY_SIDE_MAX else _side_by_side(title, runs)


def _one_below_the_other(title: str, runs: Mapping[str, Figures]) -> Table:
    table = Table(
        title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=0, show_edge=False
    )
    table.add_column("", overflow="fold")
    for heading in _HEADINGS.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for name, figures in runs.items():
        table.add_row(name, *(_brief(getattr(figures, figure)) for figure in _HEADINGS))
    return table


def _brief(value: float | None) -> str:
    """A number with three digits at least: where there are more, none behind the point."""
    if isinstance(value, float):
        return shown(round(value, 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2))
    return shown(value)


def _side_by_side(title: str, columns: Mapping[str, Figures]) -> Table:
    """A column per run, the sums of requests and errors below."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("figure", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right")
    for name in figure_names():
        row = [getattr(figures, name) for figures in columns.values()]
        if any(value is not None for value in row):
            in_words = name.endswith("_bytes")
            table.add_row(name, *(size(value) if in_words and value else shown(value) for value in row))
    for name in ("requests", "errors"):
        rows = [getattr(figures, name) or {} for figures in columns.values()]
        for key in sorted({key for row in rows for key in row}):
            table.add_row(f"{name}: {key}", *(shown(row.get(key, 0)) for row in rows))
    return table


def spread_table(title: str, runs: Sequence[Figures]) -> Table:
    """How much each figure varies over several seeds."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("figure", no_wrap=True)
    for name in ("least", "median", "most"):
        table.add_column(name, justify="right")
    for name in figure_names():
        numbers = sorted(value for figures in runs if (value := getattr(figures, name)) is not None)
        if numbers:
            table.add_row(name, shown(numbers[0]), shown(median(numbers)), shown(numbers[-1]))
    return table


def spread(runs: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Least, median and most of every figure that is a number in some run."""
    result = {}
    for name in figure_names():
        numbers = sorted(value for figures in runs if (value := getattr(figures, name)) is not None)
        if numbers:
            result[name] = {"least": numbers[0], "median": median(numbers), "most": numbers[-1]}
    return result


def shown(value: Any) -> str:
    """A number as people read it: grouped digits, no more than three decimals."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}"

"""Tables of figures in a terminal of eighty columns."""

from __future__ import annotations

import dataclasses
import io

from rich.console import Console

from groupstorm.report.tables import SIDE_BY_SIDE_MAX, figures_table
from groupstorm.storms.figures import Figures


def printed(runs: dict[str, Figures]) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(figures_table("title", runs))
    return out.getvalue()


def figures(number: int) -> Figures:
    empty = Figures(**dict.fromkeys(field.name for field in dataclasses.fields(Figures)))  # type: ignore[arg-type]
    return dataclasses.replace(
        empty, generations=number, unowned_partition_seconds=1234.5678, moves_wasted=-3
    )


def test_a_few_runs_stand_side_by_side() -> None:
    text = printed({f"v{number}": figures(number) for number in range(SIDE_BY_SIDE_MAX)})
    [line] = [line for line in text.splitlines() if "generations" in line]
    assert line.replace("\u2502", "").split() == ["generations", "0", "1", "2", "3"]
    assert text.count("1,234.568") == SIDE_BY_SIDE_MAX


def test_many_runs_stand_one_below_the_other_with_all_digits() -> None:
    names = [f"constrained-cooperative-{number}" for number in range(SIDE_BY_SIDE_MAX + 1)]
    text = printed({name: figures(1000 + number) for number, name in enumerate(names)})
    assert "\u2026" not in text, "nothing is cut off"
    for number in range(len(names)):
        [line] = [line for line in text.splitlines() if f"1,00{number}" in line]
        assert line.split()[1:] == [f"1,00{number}", "-", "1,235", "-", "-", "-", "-3", "-", "-"]

"""Tables of figures in eighty columns: nothing is cut, whatever the names and numbers."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.figures import Figures
from groupstorm.report.grid import Grid, Row
from groupstorm.report.tables import LEADING, SIDE_BY_SIDE_MAX, figures_csv, figures_grid
from groupstorm.visible import wrapped

EMPTY = Figures(**dict.fromkeys(field.name for field in dataclasses.fields(Figures)))  # type: ignore[arg-type]


def figures(number: int, **changes: Any) -> Figures:
    return dataclasses.replace(
        EMPTY, generations=number, unowned_partition_seconds=1234.5678, moves_wasted=3, **changes
    )


def printed(runs: Mapping[str, Sequence[Figures]], everything: bool = False) -> list[str]:
    lines = figures_grid("title", runs, everything).text(80)
    assert max(map(len, lines)) <= 80
    return lines


def test_a_few_runs_stand_side_by_side() -> None:
    lines = printed({f"v{number}": [figures(number)] for number in range(SIDE_BY_SIDE_MAX)})
    assert "generations                    0      1      2      3" in lines
    assert "unowned_partition_seconds  1,235  1,235  1,235  1,235" in lines


def test_many_runs_stand_one_below_the_other_with_all_names() -> None:
    names = [f"constrained-cooperative-{number}" for number in range(SIDE_BY_SIDE_MAX + 1)]
    lines = printed({name: [figures(1000 + number)] for number, name in enumerate(names)})
    for number, name in enumerate(names):
        assert f"{name}  1,00{number}    1,235       3" in lines


def test_all_figures_of_many_runs_stand_in_blocks() -> None:
    names = [f"constrained-cooperative-{number}" for number in range(9)]
    one = figures(7, requests={"JoinGroup": 1_234_567}, settled_after_ms=1_234_567.891)
    lines = printed({name: [one] for name in names}, everything=True)
    for row in ("generations", "settled_after_ms", "requests: JoinGroup"):
        cells = [cell for line in lines if line.startswith(f"{row} ") for cell in line[len(row) :].split()]
        assert len(cells) == 9, row
    assert not any(line.startswith("settled_after_ms") for line in printed({"a": [one]}))


def test_all_figures_that_count_by_name_have_a_row_for_each_name() -> None:
    by_name = [field.name for field in dataclasses.fields(Figures) if "Mapping[str, int]" in str(field.type)]
    counted: dict[str, Any] = {name: {"SOME_NAME": 3} for name in by_name}
    lines = printed({"a": [figures(1, **counted)]}, everything=True)
    shown = [line.partition(":")[0] for line in lines if ": SOME_NAME" in line and line.endswith(" 3")]
    assert sorted(shown) == sorted(by_name)


def test_the_range_stands_below_the_median_if_seeds_differ() -> None:
    lines = printed({"a": [figures(1), figures(5), figures(2)], "b": [figures(80)] * 3})
    place = lines.index("generations                    2     80")
    assert lines[place + 1] == "  least..most               1..5"
    assert "unowned_partition_seconds  1,235  1,235 ~" in lines
    assert lines[-1] == "~ differs by no more than the seeds do"


def test_runs_without_a_value_are_counted() -> None:
    lines = printed({"a": [figures(1, lag_recovery_seconds=value) for value in (4.0, None, 8.0)]})
    place = next(number for number, line in enumerate(lines) if line.startswith("lag_recovery_seconds"))
    assert lines[place].split()[1:] == ["6"]
    assert "4..8 1 without" in lines[place + 1]


def test_figures_that_are_zero_everywhere_take_one_line() -> None:
    lines = printed({"a": [figures(1, records_skipped=0, dual_owner_seconds=0.0)]})
    assert lines[-1] == "0 everywhere: dual_owner_seconds, records_skipped"
    assert {"records_skipped", "dual_owner_seconds"} <= set(LEADING)


WORDS = st.from_regex(r"[a-z]{1,12}(-[a-z]{1,12}){0,4}", fullmatch=True)
CELLS = st.integers(0, 10**9).map("{:,}".format)


ROWS = st.lists(st.tuples(WORDS, st.lists(CELLS, min_size=9, max_size=9)), min_size=1, max_size=4)


@given(st.lists(WORDS, min_size=1, max_size=9), ROWS)
def test_whatever_is_in_a_table_no_word_and_no_number_is_cut(
    headings: list[str], rows: list[tuple[str, list[str]]]
) -> None:
    grid = Grid(("", *headings), [Row(name, cells[: len(headings)]) for name, cells in rows])
    lines = grid.text(80)
    assert max(map(len, lines)) <= 80
    words = " ".join(lines).split()
    for name, cells in rows:
        assert all(part in " ".join(words) for part in name.split("-"))
        for cell in cells[: len(headings)]:
            assert cell in words


def test_markdown_and_csv_have_the_same_cells() -> None:
    grid = Grid(("figure", "a|b"), [Row("x", ("1",), ("0..2",), "range", "~")], "t", ["note"])
    assert grid.markdown() == [
        "**t**", "", r"| figure | a\|b |", "| :-- | --: |", "| x ~ | 1 (0..2) |", "", "note",
    ]  # fmt: skip
    read = list(csv.DictReader(io.StringIO(figures_csv(("variant", "seed"), [(("a", 3), figures(2))]))))
    assert read[0]["variant"] == "a"
    assert read[0]["unowned_partition_seconds"] == "1234.5678"
    assert read[0]["lag_peak"] == ""


def test_a_paragraph_keeps_its_words() -> None:
    assert wrapped("a cooperative-sticky b", 12) == ["a", "cooperative-sticky", "b"]
    assert wrapped("", 12) == [""]


def test_a_table_of_html_has_every_cell_and_escapes_it() -> None:
    row = Row("a<b", ["1", "2"], ["0..3", ""], "range", "~")
    shown = Grid(("figure", "x&y", "z"), [row], "title", ["~ alike"]).html()
    assert shown == (
        "<table><caption>title</caption><thead><tr><th>figure</th><th>x&amp;y</th><th>z</th></tr></thead>"
        "<tbody><tr><td>a&lt;b ~</td><td>1 (0..3)</td><td>2</td></tr></tbody></table><p>~ alike</p>"
    )
    assert "caption" not in Grid(("figure",), []).html()


def test_runs_with_figures_that_are_bounds_are_named() -> None:
    bound = figures(1, answer="1 generation; partitions were un-owned for at least 3.0 s in all.")
    plain = figures(1, answer="1 generation; partitions were un-owned for 3.0 s in all.")
    for runs in (
        {"served": [bound], "storm": [plain]},
        {"served": [bound], **{str(n): [plain] for n in range(6)}},
    ):
        assert printed(runs)[-1] == 'Some figures are bounds ("at least" or "at most" in the answer): served'
    assert not any("bounds" in line for line in printed({"storm": [plain]}))

"""The figures have the names that their page gives; rows are read back."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, get_args

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.history.gaps import nearest_rank, percentile
from groupstorm.problems import InputError
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import share as share_events
from groupstorm.trace.events import streams as streams_events
from groupstorm.trace.rows import as_mapping, event_types, read_row
from tests.figures.synthetic import trace
from tests.generated_pages import DOCS


def test_every_figure_stands_in_the_table_of_the_page_and_in_json() -> None:
    table = (DOCS / "figures.md").read_text("utf-8").partition("\n## Figures\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = [field.name for field in fields(Figures)]
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(names)
    assert list(FiguresAccumulator().figures().to_json()) == names


@pytest.mark.parametrize("seed", range(6))
def test_rows_and_events_give_the_same(seed: int) -> None:
    events, rows = FiguresAccumulator(), FiguresAccumulator()
    for seq, row in enumerate(trace(seed)):
        events.add(*row)
        rows.add_row(as_mapping(seq, *row))
    assert events.figures() == rows.figures()


def test_percentiles_are_nearest_ranks() -> None:
    assert [percentile([10, 20, 30, 40], percent) for percent in (50, 95)] == [20, 40]
    assert percentile([7], 50) == 7
    assert percentile([], 95) == 0
    assert nearest_rank(20, 95) == 19
    assert nearest_rank(21, 95) == 20
    assert nearest_rank(1000, 50) == 500


def test_every_event_type_has_one_name() -> None:
    assert event_types()["partitions_assigned"].__name__ == "PartitionsAssigned"
    unions = (
        *(coordinator_events.Event, member_events.Event, streams_events.Event, world_events.Event),
        imported_events.Event,
        share_events.Event,
    )
    assert len(event_types()) == sum(len(get_args(union)) for union in unions)


GOOD = {
    "seq": 4,
    "time_us": 10,
    "source": "member",
    "event": "partitions_assigned",
    "group": "g",
    "member": "m",
    "member_id": "m-1",
    "generation": 1,
    "partitions": ["t-0"],
    "positions": [0],
    "duration_us": 5,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"time_us": "soon"},
            "row 4 (partitions_assigned): time_us: 'soon': expected a whole number",
        ),
        ({"time_us": 1}, "time_us: 1: expected a whole number of at least 2"),
        ({"source": "me"}, "source: 'me': expected one of coordinator, member, world"),
        ({"seq": 3}, "seq: 3: expected a whole number of at least 4"),
        ({"group": None}, "group: None: expected a text"),
        ({"event": None}, "event: None: expected a text"),
        ({"count": "six"}, "count: 'six': expected a whole number"),
        ({"generation": 2**63}, "expected a whole number"),
        ({"duration_us": None}, "duration_us: None: expected a whole number"),
        ({"member": 7}, "member: 7: expected a text"),
        ({"partitions": "t-0"}, "partitions: 't-0': expected a list"),
        ({"positions": [1, 2]}, "positions: [1, 2]: expected one for each of ['t-0']"),
    ],
)
def test_rows_that_are_none(change: dict[str, Any], expected: str) -> None:
    assert read_row(GOOD, 2, 4) is not None
    with pytest.raises(InputError) as caught:
        read_row(GOOD | change, 2, 4)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)

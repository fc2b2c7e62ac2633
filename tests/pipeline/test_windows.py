"""Tables of a window, of traces of a few rows: a row at the first microsecond of the window is inside.

Both engines: what they are compared with is written down here and computed by neither.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.figures.accumulator import Window
from groupstorm.pipeline.results import TABLES, Request
from tests.figures.tracing import Trace
from tests.pipeline.test_tables import S, tables_and_result
from tests.pipeline.traces import write_trace


def tables(
    trace: Trace, window: Window, engine: str, folder: Path, fixtures: pytest.FixtureRequest
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table in the order of their times."""
    write_trace(trace.rows, folder)
    found, _ = tables_and_result(engine, Request({"run": folder}, window=window), fixtures)
    of_time = {"intervals": "from_us", "handovers": "from_us", "rounds": "prepared_us", "members": "time_us"}
    return {
        name: sorted(
            (dict(zip(TABLES[name], row, strict=True)) for row in found[name]),
            key=lambda row: (row[of_time[name]], str(row)),
        )
        for name in TABLES
    }


def test_what_lasts_into_a_window_counts_and_what_ends_where_it_begins_does_not(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A window from 10 s on: intervals and gaps that end at 10 s are outside, also if they began there."""
    trace = Trace.begun("t-0", "t-1", "t-2")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0", "t-1", "t-2")})
    trace.revoke(8, "a", 1, "t-1")
    trace.revoke(9, "a", 1, "t-2")
    trace.rejoin(9.999_999, "a")
    trace.state_to(9.999_999, "PreparingRebalance", 1, "left")
    trace.revoke(10, "a", 1, "t-0")
    trace.rejoin(10, "a")
    trace.state_to(10, "PreparingRebalance", 1, "new-member")
    trace.take(10, "a", 1, "t-0", "t-1")
    trace.revoke(10, "a", 1, "t-1")
    trace.take(12, "a", 1, "t-1", "t-2")
    trace.end(20)
    found = tables(trace, Window(10 * S), engine, tmp_path / "run", request)
    assert [(row["partition"], row["from_us"], row["to_us"]) for row in found["intervals"]] == [
        ("t-0", 10 * S, 20 * S),
        ("t-1", 10 * S, 10 * S),  # it began in the window
        ("t-1", 12 * S, 20 * S),
        ("t-2", 12 * S, 20 * S),
    ]
    assert [(row["partition"], row["from_us"], row["gap_us"]) for row in found["handovers"]] == [
        ("t-1", 10 * S, 2 * S),
        ("t-2", 10 * S, 2 * S),  # of 3 s
    ]
    assert [(row["prepared_us"], row["cause"]) for row in found["rounds"]] == [(10 * S, "new-member")]
    assert sorted((row["time_us"] // S, row["event"]) for row in found["members"]) == [
        (10, "partitions_assigned"), (10, "partitions_revoked"), (10, "partitions_revoked"),
        (10, "rejoin_requested"), (12, "partitions_assigned"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("callback_s", "paused_s"),
    [(1, 0), (2, 0), (3, 1), (9, 4)],
    ids=["over before", "over where it begins", "goes on for 1 s", "longer than the gap"],
)
def test_a_callback_counts_as_far_as_it_lasts_into_the_window(
    callback_s: int, paused_s: int, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """onPartitionsRevoked of a begins at 8 s; b takes the partition at 14 s: from 10 s on the gap has 4 s."""
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0",)})
    trace.start(2, "b")
    trace.revoke(8, "a", 1, "t-0", callback_s=callback_s, cause="close")
    trace.take(14, "b", 2, "t-0")
    trace.end(20)
    [gap] = tables(trace, Window(10 * S), engine, tmp_path / "run", request)["handovers"]
    assert (gap["gap_us"], gap["paused_us"]) == (4 * S, paused_s * S)


def test_the_next_owners_callback_pauses_what_is_left_of_a_gap(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Gaps of 6 s: 1 s + 2 s of callbacks, then 4 s + 5 s, which are cut at 6 s."""
    trace = Trace.begun("t-0", "t-1")
    trace.start(1, "a")
    trace.round(1, 1, {"a": ("t-0", "t-1")})
    trace.start(2, "b")
    trace.revoke(4, "a", 1, "t-0", callback_s=1, cause="close")
    trace.take(10, "b", 2, "t-0", callback_s=2)
    trace.revoke(14, "a", 1, "t-1", callback_s=4, cause="close")
    trace.take(20, "b", 2, "t-1", callback_s=5)
    trace.end(30)
    found = tables(trace, Window(), engine, tmp_path / "run", request)["handovers"]
    assert [(row["gap_us"], row["paused_us"]) for row in found] == [(6 * S, 3 * S), (6 * S, 6 * S)]


def test_a_gap_does_not_count_while_the_group_is_away(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Gaps from 4 s and from 7 s to 16 s; the group is deleted from 6 s to 9 s, from 11 s to 12 s, and from
    18 s on."""
    trace = Trace(has_member_rows=False)
    trace.create(0, "join")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0",)})
    trace.remove(4, "a")
    trace.delete(6, "expired")
    trace.create(9, "join")
    trace.delete(11, "expired")
    trace.create(12, "join")
    trace.start(13, "b")
    trace.round(16, 1, {"b": ("t-0",)})
    trace.remove(17, "b")
    trace.delete(18, "expired")
    trace.end(30)
    for window, gaps in ((Window(), [(4, 8), (17, 1)]), (Window(8 * S), [(8, 6), (17, 1)])):
        found = tables(trace, window, engine, tmp_path / f"run-{window.from_us}", request)["handovers"]
        assert [(row["from_us"] // S, row["gap_us"] // S) for row in found] == gaps
        assert {row["gap_us"] % S for row in found} == {0}


def test_without_rates_in_the_trace_owners_stay_where_rows_put_them(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """No row names records a second: of t-0's log, and of what a processes of t-1, the rate is unknown."""
    trace = Trace()
    trace.start(0, "a")
    trace.take(1, "a", 1, "t-0", "t-1", at=10)
    trace.rates(2, "a", {"t-0": (10, 5)})
    trace.logs(2, {"t-1": (10, 5)})
    trace.end(30)
    found = tables(trace, Window(), engine, tmp_path / "run", request)["intervals"]
    assert [(row["partition"], row["to_position"]) for row in found] == [("t-0", 10), ("t-1", 10)]

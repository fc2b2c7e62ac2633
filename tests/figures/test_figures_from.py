"""`figures_from` of a scenario is the window that a reader of its trace can choose, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.figures import FiguresAccumulator
from groupstorm.figures.accumulator import Window
from groupstorm.history.unknown import figures_from_us
from groupstorm.problems import ExitCode, InputError
from groupstorm.storms.runs.run import chosen_assignors, run
from groupstorm.storms.scenario.files import ResolvedScenario, parse
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.reader import read_rows
from groupstorm.trace.writer import NullSink
from tests.command import groupstorm
from tests.figures.tracing import figures_by_group

SCENARIO = """
name: restarts
settings:
  {members: 3, partitions: 6, group.instance.id: ordinal, start_ms: {exactly: 2000}, warm_up_ms: 60000}
steps: [{at_ms: 0, do: start}, {at_ms: warm_up_ms, do: restart, members: [1]}]
"""


def resolved(more: str = "") -> ResolvedScenario:
    return parse(SCENARIO + more, "yaml", "test").resolve(None, 0, {})


def test_only_what_the_restart_costs_counts(tmp_path: Path) -> None:
    whole = run(resolved(), tmp_path / "whole").figures
    windowed = run(resolved("figures_from: warm_up_ms"), tmp_path / "windowed")
    assert whole.generations == 1
    assert windowed.figures.generations == 0
    assert whole.unowned_partition_seconds is not None
    assert windowed.figures.unowned_partition_seconds is not None
    start_s = whole.unowned_partition_seconds - windowed.figures.unowned_partition_seconds
    # all six wait for the initial delay of 3 s, which those who join in it prolong once
    assert start_s == pytest.approx(6 * 6, abs=0.1)
    assert windowed.figures.rebalance_latency_max_ms is None
    in_ms = resolved("figures_from: 1m")
    assert windowed.figures == simulate(in_ms, chosen_assignors(in_ms), NullSink())


def test_a_reader_of_the_trace_comes_to_the_same_figures(tmp_path: Path) -> None:
    finished = run(resolved("figures_from: warm_up_ms"), tmp_path / "run")
    by_row = FiguresAccumulator()
    for row in read_rows(finished.folder):
        by_row.add_row(row)
    assert by_row.figures() == finished.figures
    assert list(figures_by_group(read_rows(finished.folder)).values()) == [finished.figures]
    earlier = figures_by_group(read_rows(finished.folder), Window(from_us=1))
    assert [figures.generations for figures in earlier.values()] == [1], "a window of one's own comes first"


@pytest.mark.parametrize("command", ["analyze", "explain", "report", "whatif"])
def test_a_run_that_was_cut_off_before_its_figures_count_is_not_called_quiet(
    command: str, tmp_path: Path
) -> None:
    whole = run(resolved("figures_from: warm_up_ms"), tmp_path / "whole").trace.read_text("utf-8")
    lines = whole.splitlines(keepends=True)
    cut = "".join(line for line in lines if json.loads(line)["time_us"] < 30_000_000)
    (tmp_path / "cut.jsonl").write_text(cut, "utf-8")
    answer = groupstorm(command, "cut.jsonl", cwd=tmp_path)
    assert answer.returncode == ExitCode.INPUT
    assert "it ends" in answer.stderr
    assert "figures_from" in answer.stderr


def test_a_run_that_ends_before_its_figures_count_is_refused() -> None:
    never = resolved("figures_from: 1h")
    with pytest.raises(
        InputError,
        match=r"restarts: nothing is counted: .* \(figures_from: 3,600 s\): name an earlier time there$",
    ):
        simulate(never, chosen_assignors(never), NullSink())


def test_records_processed_before_the_window_and_again_in_it_are_duplicates() -> None:
    """The member has its partition after 3.01 s (a delay of 3 s and five requests of 2 ms) and commits every
    5 s from then on, the last time at 58.01 s. Of the records of each 100 ms it had finished 579 then and 599
    when it was killed at 60 s, from where on figures count: it reads 20 again when it is back."""
    crash = """
name: crash
settings:
  {members: 1, partitions: 1, record_rate: 10, phases: aligned, net_latency_ms: 1, heartbeat_lateness_ms: 0,
   poll_interval_ms: 0, coordinator_service_us: 0, append_latency_ms: 0}
figures_from: 60s
steps: [{at_ms: 0, do: start}, {at_ms: 60000, do: crash-restart, members: [0]}]
"""
    one = parse(crash, "yaml", "test").resolve(None, 0, {})
    figures = simulate(one, chosen_assignors(one), NullSink())
    assert (figures.records_duplicated, figures.records_skipped) == (20, 0)


def test_it_is_part_of_what_is_replayed() -> None:
    one = resolved("figures_from: 1m")
    assert one.written()["figures_from"] == 60_000
    again = parse(one.as_yaml(), "yaml", "again").resolve(None, None, {})
    assert again.written() == one.written()
    assert "figures_from" not in resolved().written()


def test_without_a_time_above_zero_the_first_row_says_nothing() -> None:
    def of(detail: str) -> int | None:
        return figures_from_us(ScenarioStarted("g", detail, (), 0, 0))

    assert of('{"figures_from": 1}') == 1000
    assert [of(detail) for detail in ('{"figures_from": 0}', "{}", "[]", "not JSON")] == [None] * 4


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="test: figures_from: 'later' is neither milliseconds"):
        resolved("figures_from: later")

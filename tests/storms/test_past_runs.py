"""Folders of runs read back: one run, its seeds, a comparison, and folders of which a part is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.history.reasons import Reasons
from groupstorm.problems import InputError
from groupstorm.storms.runs.past_runs import pair, read_runs
from groupstorm.storms.runs.several import COMPARISON_FILE
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.member import PartitionsAssigned, PartitionsRevoked
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import JsonLinesWriter


def write(folder: Path, scenario: str, **figures: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text(scenario, "utf-8")
    (folder / "figures.json").write_text(json.dumps(figures), "utf-8")
    return folder


def test_a_run_has_its_scenario_and_its_figures(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", "seed: 3\n", generations=4, from_a_later_version=1)
    (run,) = read_runs(folder)["default"]
    assert (run.folder, run.scenario, run.figures.generations) == (folder, {"seed": 3}, 4)


def test_a_run_without_a_trace_has_no_reasons(tmp_path: Path) -> None:
    (run,) = read_runs(write(tmp_path / "run", "seed: 3\n"))["default"]
    assert run.reasons() == Reasons()


def state(name: str, cause: str) -> GroupStateChanged:
    return GroupStateChanged("g", "", name, 1, cause, None, None, None, 2)


def test_the_reasons_are_those_of_the_trace(tmp_path: Path) -> None:
    """Both partitions have owners from 1 s on; p1 has none from 10 s to 12.5 s."""
    folder = write(tmp_path / "run", "seed: 3\n")
    rows: list[tuple[float, Source, TracedEvent]] = [
        (0, Source.WORLD, ScenarioStarted("g", "{}", ("p0", "p1"), 0, 1)),
        (0, Source.COORDINATOR, state("PreparingRebalance", "new-member")),
        (1, Source.COORDINATOR, state("Stable", "assigned")),
        (1, Source.MEMBER, PartitionsAssigned("g", "a", "a", 1, ("p0",), (0,), 0)),
        (1, Source.MEMBER, PartitionsAssigned("g", "b", "b", 1, ("p1",), (0,), 0)),
        (10, Source.MEMBER, PartitionsRevoked("g", "b", "b", 1, ("p1",), (0,), (0,), 0, "rebalance")),
        (12.5, Source.MEMBER, PartitionsAssigned("g", "a", "a", 1, ("p1",), (0,), 0)),
    ]
    trace = JsonLinesWriter(folder / "trace.jsonl")
    for at_s, source, event in rows:
        trace.add(int(at_s * 1_000_000), source, event)
    trace.close()
    (run,) = read_runs(folder)["default"]
    reasons = run.reasons()
    assert sum(reasons.us.values()) == 2_500_000
    assert reasons.longest is not None
    assert reasons.longest[:5] == ("p1", 10_000_000, 12_500_000, "b", "a")


def test_seeds_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for seed in (10, 9, 1):
        write(tmp_path / f"seed-{seed}", f"seed: {seed}\nvariant: slow\n")
    (tmp_path / "seed-2").mkdir()  # a run that was not finished
    assert [run.scenario["seed"] for run in read_runs(tmp_path)["slow"]] == [1, 9, 10]


def test_a_comparison_has_the_runs_of_each_variant(tmp_path: Path) -> None:
    write(tmp_path / "eager", "seed: 1\n")
    write(tmp_path / "cooperative" / "seed-5", "seed: 5\n")
    comparison: dict[str, dict[str, dict[str, int]]] = {"variants": {"eager": {}, "cooperative": {}}}
    (tmp_path / COMPARISON_FILE).write_text(json.dumps(comparison), "utf-8")
    found = read_runs(tmp_path)
    assert {name: [run.scenario["seed"] for run in runs] for name, runs in found.items()} == {
        "eager": [1],
        "cooperative": [5],
    }


def test_a_variant_whose_run_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / COMPARISON_FILE).write_text(json.dumps({"variants": {"eager": {}}}), "utf-8")
    with pytest.raises(InputError, match=r"eager: .* its run is not there"):
        read_runs(tmp_path)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the folder of a run"):
        read_runs(tmp_path)


def test_variants_of_the_same_name_are_compared_and_single_ones_in_any_case() -> None:
    assert pair({"a": []}, {"b": []}) == [("a", "b")]
    assert pair({"a": [], "b": []}, {"b": [], "c": []}) == [("b", "b")]
    assert pair({"a": [], "b": []}, {"b": []}) == [("b", "b")]
    with pytest.raises(InputError, match="no variant in common: a, b and c"):
        pair({"a": [], "b": []}, {"c": []})

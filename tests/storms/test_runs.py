"""Runs and their files: saved, named by what was run, and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.history.reasons import Reasons
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import KeptRun, run, run_in_memory
from groupstorm.storms.runs.run_folder import folder_stem, free_folder
from groupstorm.storms.runs.several import COMPARISON_FILE, pair, read_runs
from groupstorm.storms.scenario.files import load
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.member import PartitionsAssigned, PartitionsRevoked
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.reader import read_entries
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import JsonLinesWriter

RESOLVED = load("cold-start").resolve(None, 5, {"members": 4, "partitions": 8})


@pytest.fixture(scope="module")
def kept() -> KeptRun:
    return run_in_memory(RESOLVED)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(RESOLVED, tmp_path_factory.mktemp("written") / "run").folder


def test_it_saves_the_files_of_a_run_that_writes_them(kept: KeptRun, written: Path, tmp_path: Path) -> None:
    kept.save(tmp_path / "saved", "jsonl")
    for name in ("trace.jsonl", "scenario.yaml", "figures.json"):
        assert (tmp_path / "saved" / name).read_bytes() == (written / name).read_bytes()
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {path.name for path in written.iterdir()}


def test_it_saves_as_parquet(kept: KeptRun, written: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'groupstorm[parquet]'")
    kept.save(tmp_path, "parquet")
    assert [*read_entries(tmp_path)] == [*read_entries(written)]


def test_its_rows_are_those_that_a_reader_reads(kept: KeptRun, written: Path) -> None:
    for (row, entry), (read, typed) in zip(kept.trace.rows(), read_entries(written), strict=True):
        assert (row, entry) == (read, typed)
        assert [type(value) for value in row.values()] == [type(value) for value in read.values()]


def test_a_folder_that_holds_something_else_is_refused(kept: KeptRun, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(InputError, match=r"holds thesis\.txt"):
        kept.save(tmp_path, "jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


class Interrupted(KeyboardInterrupt):
    pass


def test_a_run_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    def break_off(now_us: int, _phase: str) -> None:
        if now_us > 5_000_000:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(load("cold-start").resolve(None, 1, {"members": 3}), tmp_path / "x", progress=break_off)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_preset_as_it_is_has_its_name_and_seed() -> None:
    assert folder_stem("cold-start", "7", changed={}) == "cold-start-7"
    assert folder_stem("cold-start", "0-to-4", kind="compare", changed={}) == "cold-start-compare-0-to-4"


def test_variant_and_settings_are_in_the_name() -> None:
    stem = folder_stem("rolling-deploy", "0", variants="eager", changed={"members": 60})
    assert stem == "rolling-deploy-eager-members=60-seed0"
    odd = {"a": ["x", "y"], "start_ms": {"p50": 1}, "m": "mine/py:a b", "f": True}
    assert folder_stem("x", "0", changed=odd) == "x-a=x+y-start_ms=-p50-1-m=mine-py-a-b-f=true-seed0"
    assert folder_stem("x", "1", kind="on-127.0.0.1:9092", changed={}) == "x-on-127.0.0.1-9092-seed1"


def test_many_settings_are_counted_and_two_sets_of_them_differ() -> None:
    many = {f"a.long.setting.{number}": number for number in range(20)}
    one, other = (folder_stem("x", "0", changed=settings) for settings in (many, many | {"b": 1}))
    assert one.startswith("x-20-settings-")
    assert one != other
    assert max(len(one), len(other)) < 40


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_same_run_uses_its_folder_again_and_another_one_does_not() -> None:
    first = free_folder("x-0", {"scenario.yaml": "a"})
    assert first == Path("runs/x-0")
    put(first, scenario_yaml="a")
    assert free_folder("x-0", {"scenario.yaml": "a"}) == first
    second = free_folder("x-0", {"scenario.yaml": "b"})
    assert second == Path("runs/x-0-2")
    put(second, scenario_yaml="b")
    assert free_folder("x-0", {"scenario.yaml": "b"}) == second
    assert free_folder("x-0", {}) == Path("runs/x-0-3"), "a run in real time is another one each time"


def test_a_comparison_of_other_variants_is_another_one() -> None:
    folder = Path("runs/x")
    put(folder, eager__scenario_yaml="a", static__scenario_yaml="b")
    both = {"eager/scenario.yaml": "a", "static/scenario.yaml": "b"}
    assert free_folder("x", both) == folder
    assert free_folder("x", {"eager/scenario.yaml": "a"}) == Path("runs/x-2")


def test_somebody_elses_files_are_left_alone() -> None:
    put(Path("runs/x"), notes="mine")
    assert free_folder("x", {"scenario.yaml": "a"}) == Path("runs/x-2")
    Path("runs/y").mkdir()
    assert free_folder("y", {"scenario.yaml": "a"}) == Path("runs/y")
    Path("runs/z").write_text("a file")
    assert free_folder("z", {"scenario.yaml": "a"}) == Path("runs/z-2")


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

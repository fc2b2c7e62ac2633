"""`groupstorm.compare` and `sweep`: what the commands write, as objects."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import groupstorm
from groupstorm.library import Comparison, Knee, RunResult, SweepResult
from groupstorm.problems import InputError
from groupstorm.report.sweeps import SWEEP_FILE
from tests.command import environment_of_command
from tests.command import groupstorm as command
from tests.library.results import FEW, FEW_OPTIONS, SCENARIO
from tests.processes import run_process

OVER: Mapping[str, Any] = {"variant": ["static", "eager"], "session.timeout.ms": [6000, 20_000, 45_000]}
OVER_OPTIONS = ["--over", "variant=static,eager", "--over", "session.timeout.ms=6000,20000,45000"]


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where temporary folders are made."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def comparison(temporary: Path) -> Comparison:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        return groupstorm.compare(SCENARIO, ["static", "eager"], seeds=2, settings=FEW, seed=4)


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    return groupstorm.sweep(SCENARIO, OVER, 2, "generations==0 for 50%", settings=FEW)


def files(folder: Path) -> dict[str, bytes]:
    """Return the files that depend on the scenario alone."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "measured.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_a_saved_comparison_is_that_of_the_command(comparison: Comparison, tmp_path: Path) -> None:
    variants = ["--variant", "static", "--variant", "eager", "--seeds", "2", "--seed", "4"]
    ran = command("compare", SCENARIO, *variants, *FEW_OPTIONS, "--out", "cli", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    saved = comparison.save(tmp_path / "library")
    assert files(saved) == files(tmp_path / "cli")
    assert "static/seed-5/trace.jsonl" in files(saved)
    assert comparison.answer == json.loads((saved / "comparison.json").read_text())["answer"]
    again = groupstorm.read(saved / "comparison.json")
    assert isinstance(again, Comparison)
    assert (str(again), repr(again)) == (str(comparison), repr(comparison))
    assert again.to_arrow() == comparison.to_arrow()
    groupstorm.compare(SCENARIO, ["cooperative"], settings=FEW).save(saved)
    other = groupstorm.read(saved)
    assert isinstance(other, Comparison)
    assert [*other.runs] == ["cooperative"]


@pytest.mark.slow
def test_a_comparison_has_runs_figures_and_spread(comparison: Comparison) -> None:
    assert [*comparison.runs] == ["static", "eager"]
    assert {name: [run.seed for run in runs] for name, runs in comparison.runs.items()} == {
        "static": [4, 5],
        "eager": [4, 5],
    }
    first, second = (run.figures.unowned_partition_seconds for run in comparison.runs["eager"])
    assert comparison.figures["eager"].unowned_partition_seconds == first
    assert first is not None
    assert second is not None
    found = comparison.spread["eager"]["unowned_partition_seconds"]
    assert (found.least, found.most) == (min(first, second), max(first, second))
    assert repr(comparison) == "<Comparison rolling-deploy: static, eager; seeds 4 to 5>"
    assert str(comparison).startswith("rolling-deploy, seeds 4 to 5\n")
    assert comparison.runs["static"][1].replay() > 50


@pytest.mark.slow
def test_tables_of_a_comparison_name_variant_and_seed(comparison: Comparison) -> None:
    pytest.importorskip("pandas", reason="pip install 'groupstorm[pandas]'")
    frame = comparison.to_pandas()
    assert [*zip(frame["variant"], frame["seed"], strict=True)] == [
        ("static", 4),
        ("static", 5),
        ("eager", 4),
        ("eager", 5),
    ]
    rounds = comparison.to_pandas("rounds")
    assert [*rounds.columns[:4]] == ["variant", "seed", "group", "round"]
    of_run = rounds[(rounds["variant"] == "eager") & (rounds["seed"] == 5)]
    assert len(of_run) == comparison.runs["eager"][1].to_arrow("rounds").num_rows
    assert len(comparison.to_pandas("rows")) == sum(
        len([*run.rows]) for runs in comparison.runs.values() for run in runs
    )


@pytest.mark.slow
def test_the_temporary_folder_goes_with_the_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run: RunResult | None = groupstorm.compare(SCENARIO, ["static", "eager"], settings=FEW).runs["eager"][0]
    assert run is not None
    assert [row["seq"] for row in run.rows][:2] == [0, 1], "the comparison is gone, its run is not"
    run = None
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_the_seeds_of_one_variant_are_read(tmp_path: Path) -> None:
    ran = command("run", SCENARIO, "--seeds", "2", *FEW_OPTIONS, "--out", "seeds", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    seeds = groupstorm.read(tmp_path / "seeds")
    assert isinstance(seeds, Comparison)
    assert [run.seed for run in seeds.runs["eager"]] == [0, 1]
    assert seeds.answer
    assert files(seeds.save(tmp_path / "copy")) == files(tmp_path / "seeds")
    with pytest.raises(InputError, match=r"group: 'storm': .* has runs of one group each"):
        groupstorm.read(tmp_path / "seeds", group="storm")


@pytest.mark.slow
def test_a_saved_sweep_is_that_of_the_command(swept: SweepResult, tmp_path: Path) -> None:
    goal = ["--goal", "generations==0 for 50%"]
    ran = command(
        "sweep", SCENARIO, *OVER_OPTIONS, "--seeds", "2", *goal, *FEW_OPTIONS, "--out", "cli", cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    saved = swept.save(tmp_path / "library")
    assert (saved / SWEEP_FILE).read_bytes() == (tmp_path / "cli" / SWEEP_FILE).read_bytes()
    again = groupstorm.read(saved)
    assert isinstance(again, SweepResult)
    assert (str(again), repr(again), again.knees) == (str(swept), repr(swept), swept.knees)
    assert again.figures == swept.figures


@pytest.mark.slow
def test_a_sweep_has_a_row_per_run_and_the_knee(swept: SweepResult) -> None:
    pytest.importorskip("pandas", reason="pip install 'groupstorm[pandas]'")
    frame = swept.to_pandas()
    assert [*frame.columns[:3]] == ["variant", "session.timeout.ms", "seed"]
    assert len(frame) == len(swept.figures) == 2 * 3 * 2
    settings, seed, figures = swept.figures[3]
    assert (settings, seed) == ({"variant": "static", "session.timeout.ms": 20_000}, 1)
    assert [*frame.iloc[3, :4]] == ["static", 20_000, 1, figures.generations]
    by_variant = {knee.others: knee for knee in swept.knees}
    met = frame[(frame["variant"] == "static") & (frame["generations"] == 0)]
    assert by_variant["variant=static"] == Knee(
        "session.timeout.ms", "variant=static", met["session.timeout.ms"].min()
    )
    assert by_variant["variant=eager"].value is None
    assert swept.knee == by_variant["variant=static"].value
    assert swept.name == SCENARIO
    assert "<th>goal met</th>" in swept._repr_html_()


@pytest.mark.slow
def test_values_of_every_kind_and_refused_ones() -> None:
    over: dict[str, Any] = {
        "kafka_defects": [False, True],
        "max_unavailable": [1, "50%"],
        "members": [4, 200_000],
    }
    seen: list[tuple[int, int]] = []
    settings = {name: value for name, value in FEW.items() if name != "members"}
    result = groupstorm.sweep(
        SCENARIO, over, 1, settings=settings, progress=lambda done, of: seen.append((done, of))
    )
    assert [str(kind) for kind in result.to_arrow().schema.types[:3]] == ["bool", "string", "int64"]
    assert result.to_arrow()["max_unavailable"].to_pylist() == ["1", "50%", "1", "50%"]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    refused = result.refused
    assert [settings["members"] for settings, _ in refused] == [200_000] * 4
    assert "members: 200000 lies outside" in refused[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("function", ["compare", "sweep"])
def test_a_progress_that_fails_ends_the_processes(
    function: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even while a debugger or a notebook holds on to the error."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def stop(_done: int, _of: int) -> None:
        raise EOFError

    over: dict[str, Any] = {"over": {"members": [2, 3, 4]}} if function == "sweep" else {"seeds": 2}
    before = set(multiprocessing.active_children())
    with pytest.raises(EOFError):
        getattr(groupstorm, function)(SCENARIO, settings={"partitions": 8}, progress=stop, **over)
    assert set(multiprocessing.active_children()) == before


@pytest.mark.slow
def test_a_variant_that_is_named_twice_runs_once() -> None:
    comparison = groupstorm.compare(SCENARIO, ["eager", "eager"], seeds=1, settings=FEW)
    assert [len(runs) for runs in comparison.runs.values()] == [1]
    assert [*groupstorm.compare(SCENARIO, "static", settings=FEW).runs] == ["static"]


@pytest.mark.slow
def test_a_script_that_has_no_guard_runs_once(tmp_path: Path) -> None:
    """Worker processes do not import the user's script, as multiprocessing would have them do."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import groupstorm\nprint('begun')\n"
        f"comparison = groupstorm.compare({SCENARIO!r}, ['static', 'eager'], settings={dict(FEW)!r})\n"
        f"print(sorted(comparison.figures))\n"
    )
    ran = run_process(
        [sys.executable, script], capture_output=True, text=True, check=False, env=environment_of_command()
    )
    assert (ran.stdout, ran.stderr) == ("begun\n['eager', 'static']\n", "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"variants": ["eager", "lazy"]}, "variant: 'lazy' is not one of eager, cooperative, static"),
        ({"seeds": 0}, "seeds: 0: expected how many, 1 to 100000"),
        ({"seeds": 10**9}, "seeds: 1000000000: expected how many, 1 to 100000"),
        ({"variants": 3}, "variants: 3: expected a text"),
        ({"rank": "beauty"}, "rank 'beauty': 'beauty' is none of unowned"),
        ({"rank": ["unowned"]}, "rank: ['unowned']: expected a text"),
        ({"settings": {"members": -1}}, "settings: members: -1 lies outside"),
        ({"scenario": "mine.yaml"}, "mine.yaml: "),
    ],
)
def test_a_wrong_argument_of_compare_is_named(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as raised:
        groupstorm.compare(**{"scenario": SCENARIO, **arguments})
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"over": {}}, "over: {}: expected settings with values"),
        ({"over": ["members"]}, "over: ['members']: expected settings with values"),
        ({"over": {"members": 5}}, "over 'members': 5: expected a list of values"),
        ({"over": {"members": []}}, "over 'members': []: expected a list of values"),
        ({"over": {"members": [0]}}, "over: every point is refused: "),
        ({"over": {"members": range(2, 9_000), "topics": [1, 2]}}, "over: 17,996 points: expected 10,000"),
        ({"settings": {"members": 3}}, "settings: members: it is swept over with over"),
        ({"variant": "lazy"}, "variant: 'lazy' is not one of eager"),
        ({"goal": "speed<3"}, "goal 'speed<3': no such figure: 'speed'"),
        ({"goal": ["generations<3", "fast"]}, "goal 'fast': expected FIGURE<NUMBER"),
        ({"goal": [3]}, "goal: 3: expected a text"),
        ({"figure": "speed"}, "figure: no such figure: 'speed'"),
        ({"seeds": 0}, "seeds: 0: expected how many"),
    ],
)
def test_a_wrong_argument_of_sweep_is_named(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as raised:
        groupstorm.sweep(**{"scenario": SCENARIO, "over": {"members": [2, 3]}, **arguments})
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_result_writes_its_report(tmp_path: Path) -> None:
    comparison = groupstorm.compare(SCENARIO, ["static", "eager"], seeds=1, settings=FEW)
    for number, result in enumerate((comparison, comparison.runs["eager"][0])):
        page = result.report(tmp_path / f"{number}.html").read_text("utf-8")
        assert page.startswith("<!doctype html>")
        assert "eager" in page

"""`groupstorm run`: its files, its log, its gate; a trace that is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.cli.failed_runs import requirements_of
from groupstorm.figures import Figures
from tests.command import groupstorm, refused

SMALL = ["--set", "members=4", "--set", "partitions=8", "--set", "start_ms=1000", "--set", "ready_ms=500"]


def test_run_writes_its_files_and_prints_figures_and_answer(tmp_path: Path) -> None:
    result = groupstorm("run", "rolling-deploy", "--seed", "7", *SMALL, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    name = "rolling-deploy-members=4-partitions=8-start_ms=1000-ready_ms=500-seed7"
    folder = tmp_path / "runs" / name
    names = {path.name for path in folder.iterdir()}
    assert names == {"trace.jsonl", "scenario.yaml", "figures.json", "measured.json"}
    figures = json.loads((folder / "figures.json").read_text())
    assert list(figures) == list(Figures.__dataclass_fields__)
    assert " ".join(figures["answer"].split()) in " ".join(result.stdout.split())
    again = groupstorm("replay", str(folder), cwd=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    assert groupstorm("replay", str(folder), "--exact", cwd=tmp_path).returncode == 0


def test_run_logs_for_people_bound_with_group_generation_and_member(tmp_path: Path) -> None:
    result = groupstorm("run", "cold-start", "--log", "--out", "x", *SMALL[:4], cwd=tmp_path)
    assert result.returncode == 0
    [line] = [
        line
        for line in result.stderr.splitlines()
        if "partitions assigned" in line and "member=member-2" in line and "generation=1" in line
    ]
    assert "group=storm" in line
    assert "at=3." in line
    assert "join parked" not in result.stderr
    assert "one run at a time" in refused(
        groupstorm("run", "cold-start", "--log", "--seeds", "2", cwd=tmp_path)
    )


@pytest.mark.slow
def test_several_seeds_give_the_spread(tmp_path: Path) -> None:
    result = groupstorm("run", "cold-start", "--seeds", "3", "--json", "--out", "s", *SMALL[:4], cwd=tmp_path)
    content = json.loads(result.stdout)
    assert list(content["seeds"]) == ["0", "1", "2"]
    settled = sorted(figures["settled_after_ms"] for figures in content["seeds"].values())
    assert content["spread"]["settled_after_ms"] == {
        "least": settled[0],
        "median": settled[1],
        "most": settled[2],
    }
    assert (tmp_path / "s" / "seed-2" / "trace.jsonl").is_file()


def test_require_is_a_gate(tmp_path: Path) -> None:
    command = ["run", "cold-start", *SMALL[:4], "--out", "x"]
    assert groupstorm(*command, "--require", "generations>=1", cwd=tmp_path).returncode == 0
    failed = groupstorm(*command, "--require", "generations>=1", "--require", "generations>99", cwd=tmp_path)
    assert failed.returncode == 1
    assert "generations is 4, but > 99 was required" in failed.stderr
    assert "no such figure" in refused(groupstorm(*command, "--require", "generatons<1", cwd=tmp_path))
    assert "expected FIGURE" in refused(groupstorm(*command, "--require", "generations", cwd=tmp_path))


def test_a_broken_invariant_fails_the_run_and_says_how_to_see_it_again(tmp_path: Path) -> None:
    """A callback of three hours under a rebalance timeout of a day: nothing goes on in the group."""
    settings = ["--set", "assign_callback_ms=10800000", "--set", "max.poll.interval.ms=86400000"]
    again = ["--set", "settle_timeout_ms=60000", "--set", "group.initial.rebalance.delay.ms=0"]
    result = groupstorm("run", "cold-start", *SMALL[:4], *settings, *again, "--out", "x", cwd=tmp_path)
    assert result.returncode == 1
    assert "an invariant broke" in result.stderr
    assert "group_settles: the group had not settled" in result.stderr
    assert "seed 0" in result.stderr
    assert "assign_callback_ms=10800000" in result.stderr
    assert "groupstorm run x/scenario.yaml" in result.stderr
    assert "raise settle_timeout_ms" in result.stderr


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert "thesis.txt" in refused(groupstorm("run", "cold-start", "--out", "mine", cwd=tmp_path))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_trace_tells_the_story(tmp_path: Path) -> None:
    groupstorm("run", "cold-start", *SMALL[:4], "--out", "x", cwd=tmp_path)
    told = groupstorm("trace", "x", cwd=tmp_path)
    assert "PreparingRebalance -> CompletingRebalance" in told.stdout
    assert "nothing in it matches" in refused(groupstorm("trace", "x", "--from", "99999", cwd=tmp_path))


def test_a_limit_on_staleness_says_what_real_consumers_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.figure for one in requirements_of(["staleness_max_seconds<30"])] == ["staleness_max_seconds"]
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("staleness_max_seconds is too low after an outage a real consumer works off one")
    requirements_of(["unowned_max_seconds<30", "staleness_max_seconds>30"], "--goal")
    assert capsys.readouterr().err == ""

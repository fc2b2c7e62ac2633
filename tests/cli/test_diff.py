"""`groupstorm diff`: two folders of finished runs."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from groupstorm.report.comparisons import changed_settings, settings_grid
from tests.command import groupstorm, refused

SMALL = ["--set", "partitions=8", "--set", "record_rate=0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a (4 members), b (5 members, another seed), seeds (two seeds), and comparisons c and d."""
    folder = tmp_path_factory.mktemp("runs")
    for command in (
        ["run", "cold-start", "--set", "members=4", "--out", "a"],
        ["run", "cold-start", "--set", "members=5", "--seed", "3", "--out", "b"],
        ["run", "cold-start", "--set", "members=5", "--seeds", "2", "--out", "seeds"],
        ["compare", "cold-start", "--set", "members=4", "--out", "c"],
        ["compare", "cold-start", "--set", "members=5", "--variant", "no-delay", "--out", "d"],
    ):
        result = groupstorm(*command, *SMALL, cwd=folder)
        assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.slow
def test_settings_and_figures_that_differ(folder: Path) -> None:
    result = groupstorm("diff", "a", "b", "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content["runs"] == ["a", "b"]
    (pair,) = content["pairs"]
    assert pair["settings"] == {"seed": [0, 3], "members": [4, 5]}
    one, other = (json.loads((folder / name / "figures.json").read_text()) for name in ("a", "b"))
    assert {name: (f["first"], f["second"]) for name, f in pair["figures"].items()} == {
        name: (value, other[name])
        for name, value in one.items()
        if value != other[name] and not isinstance(value, dict) and name != "answer"
    }
    settled = pair["figures"]["settled_after_ms"]
    assert settled["difference"] == pytest.approx(settled["second"] - settled["first"])
    assert settled["ratio"] == pytest.approx(settled["second"] / settled["first"], abs=0.001)
    assert "There is no winner by un-owned time" in pair["answer"]


@pytest.mark.slow
def test_what_is_printed_fits_eighty_columns(folder: Path) -> None:
    result = groupstorm("diff", "a", "b", "--all", cwd=folder)
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "members  4  5" in lines
    assert any(line.startswith("settled_after_ms  ") for line in lines)
    rows = list(csv.DictReader(io.StringIO(groupstorm("diff", "a", "b", "--csv", cwd=folder).stdout)))
    assert {row["figure"] for row in rows} >= {"settled_after_ms"}


@pytest.mark.slow
def test_a_run_is_compared_with_the_median_of_seeds(folder: Path) -> None:
    (pair,) = json.loads(groupstorm("diff", "a", "seeds", "--json", cwd=folder).stdout)["pairs"]
    found = sorted(
        json.loads((folder / "seeds" / name / "figures.json").read_text())["settled_after_ms"]
        for name in ("seed-0", "seed-1")
    )
    assert pair["figures"]["settled_after_ms"]["second"] == pytest.approx(sum(found) / 2)
    assert "within_spread" in pair["figures"]["settled_after_ms"]


@pytest.mark.slow
def test_comparisons_are_compared_by_variant(folder: Path) -> None:
    pairs = json.loads(groupstorm("diff", "c", "d", "--json", cwd=folder).stdout)["pairs"]
    assert [pair["variants"] for pair in pairs] == [["no-delay", "no-delay"]]
    both = json.loads(groupstorm("diff", "c", "c", "--json", cwd=folder).stdout)["pairs"]
    assert [pair["variants"][0] for pair in both] == [
        "delay-3s",
        "no-delay",
        "delay-10s",
        "no-delay-eager",
        "consumer",
    ]
    assert all(pair["figures"] == pair["settings"] == {} for pair in both)
    assert "No figure differs." in groupstorm("diff", "a", "a", cwd=folder).stdout


@pytest.mark.slow
def test_a_seed_is_no_better_than_another_one(folder: Path) -> None:
    printed = groupstorm("diff", "seeds/seed-0", "seeds/seed-1", cwd=folder).stdout
    assert "Only the seed differs: neither run is better" in printed
    assert "Best" not in printed


def test_steps_that_differ_may_be_as_many(tmp_path: Path) -> None:
    start, crash = {"at_ms": 0, "do": "start"}, {"at_ms": 9_000, "do": "crash", "members": [0]}
    for name, steps in (("a", [start, crash]), ("b", [start, crash | {"at_ms": 8_000}])):
        written = {"name": name, "settings": {"members": 2, "partitions": 2}, "steps": steps}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(written))
        assert groupstorm("run", f"{name}.yaml", "--out", name, cwd=tmp_path).returncode == 0
    printed = groupstorm("diff", "a", "b", cwd=tmp_path).stdout
    assert "steps    2 steps, in its scenario.yaml  2 steps, in its scenario.yaml" in printed
    assert "There is no best variant: they differ in what befalls the group" in printed


def test_settings_are_shown_as_they_are_written_and_one_that_is_not_there_is_a_dash() -> None:
    before = {"settings": {"members": 3, "topic_partitions": {"\u65e5\u672c": 4}}}
    after = {"settings": {"members": 3, "group.protocol": "consumer"}}
    lines = settings_grid(changed_settings(before, after), ("a", "b")).text(80)
    assert [line.split() for line in lines[1:]] == [
        ["topic_partitions", '{"\u65e5\u672c":', "4}", "-"],
        ["group.protocol", "-", "consumer"],
    ]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    groupstorm("run", "cold-start", "--set", "members=4", "--out", "a", *SMALL, cwd=tmp_path)
    assert "nowhere: not the folder of a run" in refused(groupstorm("diff", "a", "nowhere", cwd=tmp_path))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "comparison.json").write_text('{"variants": {}}')
    assert "no variant in common: delay-3s and" in refused(groupstorm("diff", "a", "other", cwd=tmp_path))
    shutil.copytree(tmp_path / "a", tmp_path / "broken")
    (tmp_path / "broken" / "figures.json").write_text("{")
    assert "figures.json: not JSON" in refused(groupstorm("diff", "a", "broken", cwd=tmp_path))

"""`groupstorm sweep`: points, the table, the knee, refused points, files."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.runs.sweep import Sweep, parse_axis
from groupstorm.storms.scenario.files import load
from tests.command import groupstorm, refused

PRESET = load("rolling-deploy")
SMALL = ["--set", "members=3", "--set", "partitions=6", "--set", "start_ms=7s", "--set", "ready_ms=500"]


@pytest.mark.slow
def test_a_sweep_ends_with_one_recommendation(tmp_path: Path) -> None:
    over = ["--over", "variant=eager,cooperative", "--over", "session.timeout.ms=15s,45s", "--seeds", "2"]
    ran = groupstorm("sweep", "deploy-and-crash", *SMALL, *over, "--out", "x", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    text = " ".join(ran.stdout.split())
    assert text.count("Recommendation: ") == 1
    assert "It costs (medians of 2 seeds, with their range): " in text
    assert "Against the defaults (variant=eager, session.timeout.ms=45s)" in text or "the defaults." in text
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "Recommendation: " in json.loads((tmp_path / "x" / "sweep.json").read_text())["answer"]
    by_gap = [*over, "--rank", "gap", "--out", "y"]
    ranked = groupstorm("sweep", "deploy-and-crash", *SMALL, *by_gap, cwd=tmp_path)
    assert "session.timeout.ms=15s" in " ".join(ranked.stdout.split()).split("Recommendation: ")[1][:60]
    ugly = groupstorm("sweep", "deploy-and-crash", *over, "--rank", "beauty", cwd=tmp_path)
    assert "--rank 'beauty'" in refused(ugly)


@pytest.mark.slow
def test_what_nobody_chooses_has_a_recommendation_for_each_value(tmp_path: Path) -> None:
    over = ["--over", "session.timeout.ms=10s,45s", "--over", "start_ms=8s,30s", "--seeds", "1"]
    of_static = ["--variant", "static", *SMALL[:4]]
    ran = groupstorm("sweep", "rolling-deploy", *of_static, *over, "--out", "x", cwd=tmp_path)
    text = " ".join(ran.stdout.split())
    both = "between session.timeout.ms=10s and session.timeout.ms=45s"
    assert f"With start_ms=8s: No recommendation: {both} no figure of any seed differs" in text
    assert "With start_ms=30s: Recommendation: session.timeout.ms=10s. " in text
    assert "knee" not in text
    asked = groupstorm("sweep", "--read", "x", "--figure", "generations", cwd=tmp_path)
    assert "knee" in asked.stdout


@pytest.mark.slow
def test_members_are_no_choice_to_recommend(tmp_path: Path) -> None:
    over = ["--over", "members=2,3", "--seeds", "1"]
    ran = groupstorm("sweep", "deploy-and-crash", *SMALL[2:], *over, "--out", "x", cwd=tmp_path)
    assert "Recommendation" not in ran.stdout


@pytest.mark.parametrize(
    ("text", "labels", "values"),
    [
        ("session.timeout.ms=10s..30s:10s", ("10s", "20s", "30s"), (10_000, 20_000, 30_000)),
        ("session.timeout.ms=1m..2m:30s", ("60s", "90s", "120s"), (60_000, 90_000, 120_000)),
        ("session.timeout.ms=6000..7000:500", ("6000", "6500", "7000"), (6_000, 6_500, 7_000)),
        ("members=20,60", ("20", "60"), (20, 60)),
        ("members=1..6:2", ("1", "3", "5"), (1, 3, 5)),
        (
            "start_ms=20s,{p50: 1s, p95: 2s}",
            ("20s", "{p50: 1s, p95: 2s}"),
            (20_000, {"p50": "1s", "p95": "2s"}),
        ),
        ("partition.assignment.strategy=range,sticky", ("range", "sticky"), ("range", "sticky")),
        ("variant=eager,static", ("eager", "static"), ("eager", "static")),
    ],
)
def test_axes(text: str, labels: tuple[str, ...], values: tuple[object, ...]) -> None:
    axis = parse_axis(text, PRESET)
    assert (axis.labels, axis.values) == (labels, values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("members", "expected NAME=A..B:STEP or NAME=V1,V2"),
        ("members=", "expected NAME=A..B:STEP"),
        ("member=1,2", "did you mean members"),
        ("members=1..9", "expected A..B:STEP"),
        ("members=9..1:1", "B not below A"),
        ("members=1..9:0", "a STEP above 0"),
        ("members=1..x:1", "'x' is no number"),
        ("members=1..1000000:1", "more than 10,000 values"),
        ("members=1,1", "a value stands twice"),
        ("session.timeout.ms=10s..soon:1s", "'soon' is no duration"),
        ("variant=lazy", "'lazy' is not one of eager, cooperative, static"),
    ],
)
def test_what_is_no_axis_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_axis(text, PRESET)


def test_points_are_all_combinations_in_order() -> None:
    axes = (parse_axis("members=2,3", PRESET), parse_axis("variant=eager,static", PRESET))
    points = Sweep("rolling-deploy", None, axes, 0, 1, {}).points()
    assert [point.labels for point in points] == [
        ("2", "eager"),
        ("2", "static"),
        ("3", "eager"),
        ("3", "static"),
    ]


@pytest.mark.slow
def test_a_sweep_names_the_smallest_session_timeout_that_bridges_a_restart(tmp_path: Path) -> None:
    """Processes are away for 7.5 s, and their last heartbeats are up to 3 s older."""
    over = ["--over", "session.timeout.ms=6s,12s,20s,1h", "--variant", "static", "--seeds", "2"]
    result = groupstorm(
        "sweep", "rolling-deploy", *over, *SMALL, "--goal", "generations==0 for 99%", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "session.timeout.ms=12s is the smallest from which on generations==0 for 99% is met" in text
    assert "Refused: session.timeout.ms=1h: session.timeout.ms: 3600000: the broker allows" in text
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith("runs/"))
    (folder,) = (tmp_path / "runs").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["runs", "sweep.json"]
    content = json.loads((folder / "sweep.json").read_text())
    assert [point.get("goal_met") for point in content["points"]] == [0, 1, 1, None]
    assert content["knees"] == [{"setting": "session.timeout.ms", "others": "", "value": "12s"}]
    # the command that is named with each run gives its figures
    one = content["points"][1]["runs"][1]
    command = [*shlex.split(one["command"])[1:], "--json", "--out", "again"]
    assert json.loads(groupstorm(*command, cwd=tmp_path).stdout) == one["figures"]


@pytest.mark.slow
def test_one_value_beside_refused_ones_makes_neither_a_difference_nor_none(tmp_path: Path) -> None:
    over = ["--over", "session.timeout.ms=1s,20s", "--variant", "static", "--seeds", "1"]
    result = groupstorm("sweep", "rolling-deploy", *over, *SMALL, cwd=tmp_path)
    assert "Refused: session.timeout.ms=1s: heartbeat.interval.ms" in result.stdout
    assert "makes no difference" not in result.stdout
    assert "no knee" not in result.stdout


@pytest.mark.slow
def test_the_same_sweep_gives_the_same_file_and_another_one_a_new_folder(tmp_path: Path) -> None:
    command = ["sweep", "cold-start", "--over", "members=2,3", "--set", "partitions=4", "--seeds", "1"]
    assert groupstorm(*command, cwd=tmp_path).returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    before = (folder / "sweep.json").read_bytes()
    spoil_runs(folder)  # a sweep that is finished begins anew
    shown = groupstorm(*command, "--json", cwd=tmp_path).stdout
    assert [*(tmp_path / "runs").iterdir()] == [folder]
    assert (folder / "sweep.json").read_bytes() == before
    assert json.loads(shown) == json.loads(before)
    spoil_runs(folder)
    (folder / "sweep.json").unlink()  # one that is not finished goes on
    assert "every point is refused: spoilt" in refused(groupstorm(*command, cwd=tmp_path))
    (folder / "sweep.json").touch()
    rows = list(csv.DictReader(io.StringIO(groupstorm(*command, "--csv", cwd=tmp_path).stdout)))
    assert [(row["members"], row["seed"]) for row in rows] == [("2", "0"), ("3", "0")]
    assert groupstorm(*command[:-3], "partitions=8", "--seeds", "1", cwd=tmp_path).returncode == 0
    assert len([*(tmp_path / "runs").iterdir()]) == 2


def spoil_runs(folder: Path) -> None:
    """Let the kept runs of every point say that its settings are refused."""
    (file,) = (folder / "runs").glob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    spoilt = [{"point": row["point"], "seed": row["seed"], "refused": "spoilt"} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in spoilt))


OVER = ["--over", "members=2,3", "--set", "partitions=4", "--seeds", "2"]


@pytest.mark.slow
def test_a_sweep_is_read_back_without_a_run(tmp_path: Path) -> None:
    """With the same options it prints the same; --goal, --figure and --rank may be others."""
    ran = groupstorm("sweep", "cold-start", *OVER, "--out", "x", "--all", cwd=tmp_path)
    read = groupstorm("sweep", "--read", "x", "--all", cwd=tmp_path)
    assert ran.stdout == read.stdout + "\nAll figures, and a command for each run: x/sweep.json\n"
    assert read.stderr == "", "no run, no progress"
    files = {path: path.read_bytes() for path in (tmp_path / "x").rglob("*.json*")}
    by_goal = groupstorm("sweep", "--read", "x", "--goal", "generations<=1", "--json", cwd=tmp_path)
    asked = groupstorm("sweep", "cold-start", *OVER, "--out", "y", "--goal", "generations<=1", cwd=tmp_path)
    assert asked.returncode == 0
    assert json.loads(by_goal.stdout) == json.loads((tmp_path / "y" / "sweep.json").read_text())
    assert files == {path: path.read_bytes() for path in (tmp_path / "x").rglob("*.json*")}
    spoil_runs(tmp_path / "x")
    assert "every point is refused: spoilt" in refused(groupstorm("sweep", "--read", "x", cwd=tmp_path))


@pytest.mark.slow
def test_a_sweep_goes_on_in_the_folder_of_out(tmp_path: Path) -> None:
    """A run that is there is not done again, whatever it says; another sweep does not go on there."""
    command = ["sweep", "cold-start", *OVER, "--out", "x"]
    assert groupstorm(*command, cwd=tmp_path).returncode == 0
    spoil_runs(tmp_path / "x")
    (file,) = (tmp_path / "x" / "runs").glob("*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if json.loads(line)["point"] == 1))
    again = groupstorm(*command, cwd=tmp_path)
    assert again.stderr.splitlines()[-1] == "  4 of 4 runs", again.stderr
    points = json.loads((tmp_path / "x" / "sweep.json").read_text())["points"]
    assert [point.get("refused") for point in points] == [None, "spoilt"]
    other = groupstorm(*command, "--seed", "9", cwd=tmp_path)
    assert refused(other) == "groupstorm: x: holds a sweep with another --seed: name another folder"
    file.unlink()
    unfinished = refused(groupstorm("sweep", "--read", "x", cwd=tmp_path))
    assert "--read x: 2 of 4 runs are done: give the sweep's own command again, with --out x" in unfinished


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cold-start", "--read", "x"], "--read x: says which sweep it is: expected no PRESET|FILE"),
        (["--read", "x", "--seeds", "3"], "--read x: says which sweep it is: expected no --seeds"),
        (["--read", "x", "--out", "y"], "--read x: says which sweep it is: expected no --out"),
        (["--read", "x", "--master", "local[2]"], "--read x: says which sweep it is: expected no --master"),
        (["--read", "x"], "x: no sweep: expected a folder that `"),
        (["--over", "members=2"], "PRESET|FILE: expected a scenario, or --read DIR"),
        (["cold-start"], "--over: expected a setting and its values"),
        (
            ["cold-start", "--over", "members=2", "--master", "yarn"],
            "--master yarn: expected local[N], local[*] or",
        ),
    ],
)
def test_what_says_no_sweep_is_refused_in_one_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    assert says in refused(groupstorm("sweep", *arguments, cwd=tmp_path))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--over", "members=0,200000"], "--over: every point is refused"),
        (["--over", "members=2", "--over", "members=3"], "--over: members stands twice"),
        (["--over", "members=2", "--set", "members=3"], "--set members: it is swept over"),
        (["--over", "members=2", "--goal", "speed<3"], "--goal 'speed<3': no such figure: 'speed'"),
        (["--over", "members=2", "--figure", "speed"], "--figure: no such figure: 'speed'"),
        (["--over", "members=2", "--variant", "x"], "variant: 'x' is not one of"),
        (["--over", "members=2", "--json", "--csv"], "--json, --csv: one of them at a time"),
    ],
)
def test_what_cannot_be_swept_is_refused_in_one_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    quick = ["--seeds", "1", "--set", "partitions=2"]
    assert says in refused(groupstorm("sweep", "cold-start", *arguments, *quick, cwd=tmp_path))
    assert not (tmp_path / "runs").exists()

"""`groupstorm import` as a user meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command import COMMAND, environment_of_command, groupstorm, refused
from tests.imports.importing import generation, java_line, stabilized
from tests.imports.test_ends_of_members import MODERN_CLIENT, MODERN_SERVER
from tests.imports.test_several_logs import BROKER, FOLLOWER, LEADER, client_log
from tests.processes import run_process

LOGS = {"server.log": BROKER, "a.log": client_log("app-a", LEADER), "b.log": client_log("app-b", FOLLOWER)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in LOGS.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_an_imported_run_is_read_like_any_other(folder: Path) -> None:
    imported = groupstorm("import", *LOGS, "--out", "out", cwd=folder)
    assert imported.returncode == 0, imported.stderr
    assert "group g: 2 rounds" in imported.stdout
    assert {path.name for path in (folder / "out").iterdir()} == {"trace.jsonl", "import.json"}
    summary = json.loads((folder / "out" / "import.json").read_text("utf-8"))
    assert [one["written_by"] for one in summary["logs"]] == [["broker"], ["java"], ["java"]]
    told = groupstorm("trace", "out", cwd=folder)
    assert "Stable -> PreparingRebalance: session-expired (app-b)" in told.stdout
    partition = groupstorm("trace", "out", "--partition", "t-1", cwd=folder)
    assert "t-1: app-b -> app-a, un-owned for 2.050 s over 1 round" in partition.stdout
    analyzed = groupstorm("analyze", "out", "--json", cwd=folder)
    assert json.loads(analyzed.stdout)["out"]["unowned_max_seconds"] == 2.05


def test_a_broker_alone_gives_no_ownership(folder: Path) -> None:
    imported = groupstorm("import", "server.log", "--out", "out", cwd=folder)
    assert "missing: who owned which partition is not known: add the log of" in " ".join(
        imported.stdout.split()
    )
    analyzed = groupstorm("analyze", "out", cwd=folder)
    assert analyzed.returncode == 0, analyzed.stderr
    assert "unowned" not in analyzed.stdout
    assert "add the log of the group's leader" in " ".join(analyzed.stdout.split())


def test_a_consumer_group_has_epochs(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(MODERN_SERVER, "utf-8")
    (tmp_path / "a.log").write_text(MODERN_CLIENT, "utf-8")
    imported = groupstorm("import", "server.log", "a.log", "--out", "out", cwd=tmp_path)
    known = "group g: 2 epochs, the owners are known, by the rows of the members"
    assert known in " ".join(imported.stdout.split())


def test_unknown_counts_the_lines_that_were_understood(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(BROKER + "2024-11-18 10:06:00 INFO kafka: nothing of a group\n")
    done = groupstorm("import", "server.log", "--out", "out", "--unknown", cwd=tmp_path)
    understood = len(BROKER.splitlines())
    expected = f"is understood: {understood} of {understood + 1} lines."
    assert " ".join(done.stdout.split()).endswith(expected)


def test_a_log_in_local_time_in_which_summer_time_ends(tmp_path: Path) -> None:
    """The generations are joined at 02:40 and at 02:10 in Berlin, which is 00:40 and 01:10 in UTC."""
    times = ("00:40:03", "01:10:03")
    server = "".join(stabilized(f"{at},000", number, 1) for number, at in enumerate(times, 1))
    logs = {
        "server.log": server.replace("2024-11-18", "2024-10-27"),
        "a.log": "".join(
            java_line(f"2024-10-27 {at}:00,000", "(Re-)joining group")
            + java_line(f"2024-10-27 {at}:04,000", f"Successfully joined group with generation {joined}")
            for at, joined in (("02:40", generation(1, "a-1")), ("02:10", generation(2, "a-1")))
        ),
    }
    for name, text in logs.items():
        (tmp_path / name).write_text(text, "utf-8")
    zone = ("--time-zone", "a.log=Europe/Berlin")
    for options, is_told in (((), True), (zone, False)):
        done = groupstorm("import", *logs, "--out", "out", *options, cwd=tmp_path)
        text = "its clock was set meanwhile (if summer time ended: give --time-zone)"
        assert (text in " ".join(done.stdout.split())) == is_told
        shutil.rmtree(tmp_path / "out")


@pytest.mark.slow
def test_standard_input_and_unknown_lines(folder: Path) -> None:
    text = BROKER + BROKER.replace("Stabilized", "Steadied")
    done = run_process(
        [*COMMAND, "import", "-", "--out", "out", "--unknown"],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment_of_command(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2  standard input:9: Steadied group g generation 1" in done.stdout


@pytest.mark.slow
def test_parquet(folder: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    assert groupstorm("import", *LOGS, "--out", "out", "--format", "parquet", cwd=folder).returncode == 0
    assert groupstorm("import", *LOGS, "--out", "lines", cwd=folder).returncode == 0
    told = [groupstorm("trace", name, "--all", cwd=folder).stdout for name in ("out", "lines")]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.log"], "nowhere.log: no such file or folder"),
        (["server.log", "--group", "x"], "--group x: no line of the logs names it"),
        (["server.log", "--time-zone", "Mars"], "--time-zone: 'Mars' is no time zone"),
        (["server.log", "--pattern", "("], "--pattern '(': not a regular expression"),
        (["server.log", "--format", "xml"], "format: 'xml' is not one of jsonl, parquet"),
        (["server.log", "server.log"], "a log is named twice"),
        (["empty.log"], "empty.log: none of 0 lines says what a group did"),
    ],
)
def test_what_is_refused_leaves_nothing(folder: Path, arguments: list[str], expected: str) -> None:
    (folder / "empty.log").write_text("")
    assert expected in refused(groupstorm("import", *arguments, "--out", "out", cwd=folder))
    assert not (folder / "out").exists()


def test_a_folder_of_something_else_is_not_touched(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "trace.jsonl").write_text("mine")
    assert "which is no import's" in refused(groupstorm("import", "server.log", "--out", "out", cwd=folder))
    assert (folder / "out" / "trace.jsonl").read_text() == "mine"

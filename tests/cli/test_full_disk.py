"""A disk without space: one line, exit code 3, no leftovers. The disk is a small tmpfs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupstorm.problems import ExitCode
from groupstorm.storms.runs.sweep_runs import SweepStore
from tests.command import groupstorm
from tests.processes import run_process
from tests.soaking import one_in

MEMBERS = ["--set", "members=20", "--set", "partitions=100"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 KB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = run_process(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounts a small file system: run as root")
    yield place
    run_process(["umount", "--lazy", str(place)], check=True)  # a JVM of a command may still end


def only_line(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == ExitCode.OUTPUT, answer.stderr
    (line,) = answer.stderr.splitlines()
    return line


@pytest.mark.parametrize("trace_format", one_in(2, ["jsonl", "parquet"]))
def test_a_run_leaves_nothing(disk: Path, trace_format: str) -> None:
    if trace_format == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    folder = disk / "runs" / "mine"
    line = only_line(
        groupstorm(
            *("run", "cold-start", *MEMBERS, "--format", trace_format, "--out", str(folder)), cwd=disk.parent
        )
    )
    assert line == f"groupstorm: {folder}/trace.{trace_format}: cannot be written: No space left on device"
    assert list(disk.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["compare", "cold-start", *MEMBERS], ["run", "cold-start", *MEMBERS, "--seeds", "2"]]
)
def test_parallel_runs_leave_nothing(disk: Path, command: list[str]) -> None:
    line = only_line(groupstorm(*command, "--out", str(disk / "mine"), cwd=disk.parent))
    assert line.endswith("trace.jsonl: cannot be written: No space left on device")
    assert list(disk.iterdir()) == []


def test_an_older_file_beside_it_stays(disk: Path) -> None:
    (disk / "letter").write_text("dear")
    only_line(groupstorm("run", "cold-start", *MEMBERS, "--out", str(disk / "x"), cwd=disk.parent))
    assert [path.name for path in disk.iterdir()] == ["letter"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.slow)])
def test_the_tables_of_an_analysis(disk: Path, tmp_path: Path, engine: str) -> None:
    """All or none, in a folder that is there or is made."""
    needed = {"local": "pyarrow", "spark": "pyspark"}[engine]
    pytest.importorskip(needed, reason=f"needs {needed}: pip install 'groupstorm[spark]'")
    assert groupstorm("run", "cold-start", "--set", "members=4", "--out", "x", cwd=tmp_path).returncode == 0
    answer = groupstorm("analyze", "x", "--engine", engine, "--out", str(disk / "new" / "t"), cwd=tmp_path)
    assert only_line(answer).endswith("cannot be written: No space left on device")
    assert list(disk.iterdir()) == []


@pytest.mark.slow
def test_a_replay_needs_space_for_its_copy(disk: Path, tmp_path: Path) -> None:
    assert groupstorm("run", "cold-start", *MEMBERS, "--out", "x", cwd=tmp_path).returncode == 0
    answer = groupstorm("replay", "x", cwd=tmp_path, TMPDIR=str(disk))
    assert "No space left on device" in only_line(answer)
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    "command", [["--version"], ["--help"], ["list"], ["list", "--json"], ["assign"], ["script"]]
)
def test_standard_output_on_a_full_disk(command: list[str], tmp_path: Path) -> None:
    case = {
        "assign": '{"id": 1, "assignor": "range", "topics": {}, "members": []}',
        "script": '{"id": 1, "steps": [{"op": "advance", "ms": 1}]}',
    }
    (tmp_path / "cases").write_text(case.get(command[0], "") + "\n")
    arguments = [*command, "cases"] if command[0] in case else command
    with Path("/dev/full").open("w") as full:
        answer = groupstorm(*arguments, cwd=tmp_path, stdout=full)
    assert only_line(answer) == "groupstorm: standard output: cannot be written: No space left on device"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    reader.wait()
    answer = groupstorm("list", "--settings", cwd=tmp_path, stdout=reader.stdin)
    reader.stdin.close()
    assert (answer.returncode, answer.stderr) == (ExitCode.READER_GONE, "")


def test_a_failed_check_is_not_a_full_disk(tmp_path: Path) -> None:
    answer = groupstorm("run", "cold-start", *MEMBERS, "--require", "generations<1", cwd=tmp_path)
    assert answer.returncode == ExitCode.CHECK_FAILED


@pytest.mark.slow
def test_a_sweep_keeps_the_runs_for_which_there_was_space(disk: Path) -> None:
    over = ["--over", "members=2,3", "--set", "partitions=4", "--seeds", "10", "--out", str(disk / "x")]
    line = only_line(groupstorm("sweep", "cold-start", *over, cwd=disk))
    assert line == f"groupstorm: {disk}/x/runs: cannot be written: No space left on device"
    assert not (disk / "x" / "sweep.json").exists()
    assert 0 < len(SweepStore(disk / "x").results()) < 20

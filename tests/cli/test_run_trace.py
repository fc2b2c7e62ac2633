"""`groupstorm run --trace DIR`: the rows of a run in files that can be read while it goes on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from groupstorm.cli.run import run_sinks, with_progress
from groupstorm.trace.events.scenario import ScenarioEnded
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import ROTATION_S
from tests.command import COMMAND, environment_of_command, groupstorm, refused
from tests.processes import outcome_of
from tests.waiting import while_it_runs

SMALL = ("--set", "members=2", "--set", "partitions=4")
DEADLINE_S = 120


def written(folder: Path) -> str:
    return "".join(file.read_text("utf-8") for file in sorted(folder.glob("trace-*.jsonl")))


def test_the_files_have_the_rows_of_the_run(tmp_path: Path) -> None:
    ran = groupstorm("run", "cold-start", *SMALL, "--out", "run", "--trace", "live", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert written(tmp_path / "live") == (tmp_path / "run" / "trace.jsonl").read_text("utf-8")


def test_rows_of_a_quiet_time_can_be_read(tmp_path: Path) -> None:
    now_s = 100.0
    with run_sinks(False, tmp_path / "live", None, lambda: now_s) as sinks:
        assert sinks.sink is not None
        sinks.sink.add(5, Source.WORLD, ScenarioEnded("g"))
        progress = with_progress(sinks.on_progress, None)
        now_s += ROTATION_S / 2
        progress(6, "steps")
        assert written(tmp_path / "live") == ""
        now_s += ROTATION_S / 2
        progress(7, "steps")
        assert '"seq":0' in written(tmp_path / "live")
        now_s += ROTATION_S
        progress(8, "steps")
    assert len([*(tmp_path / "live").iterdir()]) == 1


def test_progress_is_shown_beside_it() -> None:
    shown: list[tuple[int, str]] = []
    with run_sinks(False, None, None) as sinks:
        assert sinks.sink is None
        with_progress(sinks.on_progress, lambda now_us, phase: shown.append((now_us, phase)))(7, "steps")
    assert shown == [(7, "steps")]


def test_after_an_error_the_complete_files_stay(tmp_path: Path) -> None:
    def interrupted() -> None:
        with run_sinks(False, tmp_path / "live", None) as sinks:
            assert sinks.sink is not None
            for _ in range(10_001):
                sinks.sink.add(5, Source.WORLD, ScenarioEnded("g"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.name for file in (tmp_path / "live").iterdir()] == ["trace-000000.jsonl"]


def test_refused(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "trace.jsonl").touch()
    (tmp_path / "file").touch()
    for trace, says in {
        "live": "holds a trace already: name another folder or remove it",
        "run": "--trace run: expected another folder than that of the run",
        "file/folder": "--trace file/folder: cannot be written: Not a directory",
    }.items():
        ran = groupstorm("run", "cold-start", *SMALL, "--out", "run", "--trace", trace, cwd=tmp_path)
        assert says in refused(ran)
    several = groupstorm("run", "cold-start", *SMALL, "--seeds", "2", "--trace", "other", cwd=tmp_path)
    assert "--trace: one run at a time, not --seeds" in refused(several)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_in_real_time_is_read_before_it_ends(tmp_path: Path) -> None:
    options = ("--on", "emulator", "--out", "run", "--trace", "live")
    process = subprocess.Popen(
        [*COMMAND, "run", "cold-start", *SMALL, *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of_command(),
    )
    try:
        while_it_runs(process, (tmp_path / "live" / "trace-000001.jsonl").exists)
        assert process.poll() is None
        _, errors = outcome_of(process, DEADLINE_S)
        assert process.returncode == 0, errors
    finally:
        process.kill()
        process.communicate()
    assert written(tmp_path / "live") == (tmp_path / "run" / "trace.jsonl").read_text("utf-8")

"""`groupstorm watch` in a process of its own: real files, a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from groupstorm.figures import FiguresAccumulator
from tests.command import COMMAND, environment_of_command, groupstorm, refused
from tests.explain.explaining import storm, trace_of
from tests.processes import killed_after, outcome_of
from tests.waiting import while_it_runs
from tests.watch.rolling_rows import GROUP, rows_of

DEADLINE_SECONDS = 120


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a storm, in six files' worth."""
    folder = tmp_path_factory.mktemp("storm")
    return [
        one.line for one in rows_of(storm(folder, "rolling-deploy", "eager", {"members": 4, "partitions": 8}))
    ]


def write(folder: Path, number: int, lines: list[str]) -> None:
    """A file appears when it is complete."""
    size = len(lines) // 6 + 1
    text = "".join(f"{line}\n" for line in lines[number * size : (number + 1) * size])
    partial = folder / ".partial"
    partial.write_text(text, "utf-8")
    partial.rename(folder / f"trace-{number:06d}.jsonl")


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    with (folder.parent / "out").open("a", encoding="utf-8") as out:
        process = subprocess.Popen(
            [*COMMAND, "watch", str(folder), *options],
            cwd=folder.parent,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env=environment_of_command() | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def printed(folder: Path) -> list[dict[str, Any]]:
    """The figures of all complete lines: the last one may be in the middle of being written."""
    text, _, _ = (folder.parent / "out").read_text("utf-8").rpartition("\n")
    return [json.loads(line) for line in text.splitlines()]


def without_progress(errors: str) -> list[str]:
    """A slow machine may have time to say how much it has read."""
    return [line for line in errors.splitlines() if not line.startswith("reading the rows that are there")]


@pytest.mark.slow
def test_after_a_kill_a_watch_goes_on_and_takes_late_files_in(lines: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    write(folder, 0, lines)
    with watching(folder, "--json", "--every", "200ms", "--window", "1d") as process:
        while_it_runs(process, lambda: bool(printed(folder)))
        write(folder, 2, lines)
        while_it_runs(process, lambda: printed(folder)[-1]["missing_rows"] > 0)
        write(folder, 3, lines)
        process.kill()
        outcome_of(process)
    write(folder, 1, lines)
    write(folder, 4, lines)
    write(folder, 5, lines)
    shown = len(printed(folder))
    with watching(folder, "--json", "--every", "200ms", "--window", "1d") as process:
        while_it_runs(process, lambda: len(printed(folder)) > shown)
    first = printed(folder)[shown]
    done = groupstorm("watch", str(folder), "--once", "--json", "--window", "1d", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (last,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (last["missing_rows"], last["rows_too_late"]) == (0, 0)
    assert (
        first["figures"]["generations"] == last["figures"]["generations"]
    )  # none from before it had read on
    whole = FiguresAccumulator()
    whole.count_from(0)
    for line in lines:
        whole.add_row(json.loads(line))
    assert last["figures"] == json.loads(json.dumps(whole.figures().to_json()))


@pytest.mark.slow
def test_an_alert_runs_a_command_and_ends_the_watch(lines: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "trace; rm -rf ~"
    folder.mkdir()
    for number in range(6):
        write(folder, number, lines)
    alert = ("--alert", "generations>3 per 1h", "--alert", "generations>3000 per 1h")
    done = groupstorm(
        "watch",
        str(folder),
        "--once",
        *alert,
        "--on-alert",
        "tee 'an alert'",
        "--exit-on-alert",
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "\nALERT storm: generations>3 per 1h: generations is " in done.stdout
    assert done.stdout.count("ALERT") == 1
    assert done.stderr.splitlines()[-1] == "groupstorm: storm: generations>3 per 1h"
    told = json.loads((tmp_path / "an alert").read_text("utf-8"))
    assert (told["state"], told["group"], told["span_seconds"]) == ("begun", "storm", 3600)


def test_a_check_says_which_figures_it_does_not_know(tmp_path: Path) -> None:
    """The coordinator's rows do not say what members process: exit code 0 would mean that the lag is low."""
    trace_of(tmp_path, GROUP)
    alerts = ("--alert", "lag>100 per 1h", "--alert", "generations>3 per 1h")
    done = groupstorm("watch", str(tmp_path), "--once", *alerts, "--exit-on-alert", cwd=tmp_path)
    told = "--alert 'lag>100 per 1h': lag_peak is not known of g"
    assert (done.returncode, done.stderr.splitlines()) == (0, [told])


@pytest.mark.slow
def test_ctrl_c_ends_a_watch_without_a_traceback(lines: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    write(folder, 0, lines)
    with watching(folder, "--json", "--every", "200ms") as process:
        while_it_runs(process, lambda: bool(printed(folder)))
        process.send_signal(signal.SIGINT)
        _, errors = outcome_of(process, DEADLINE_SECONDS)
        assert process.returncode == 130
    assert without_progress(errors) == ["groupstorm: interrupted, stopping"]


@pytest.mark.slow
def test_a_watch_serves_its_figures_to_prometheus(lines: list[str], tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="pip install 'groupstorm[watch]'")
    folder = tmp_path / "trace"
    folder.mkdir()
    write(folder, 0, lines)
    with watching(folder, "--json", "--every", "200ms", "--prometheus", "0") as process:
        assert process.stderr is not None
        with killed_after(process):
            address = process.stderr.readline().removeprefix("metrics on ").strip()
        while_it_runs(process, lambda: bool(printed(folder)))
        with urllib.request.urlopen(address, timeout=DEADLINE_SECONDS) as answer:
            families = {
                one.name: one for one in parser.text_string_to_metric_families(answer.read().decode())
            }
    (sample,) = families["groupstorm_group_generations"].samples
    assert (sample.labels, sample.value > 0) == ({"group": "storm"}, True)


@pytest.mark.slow
def test_a_line_that_is_no_row_ends_the_watch_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "trace-000000.jsonl").write_text('{"seq":0}\n', "utf-8")
    refusal = refused(groupstorm("watch", str(folder), "--once", cwd=tmp_path))
    assert "trace-000000.jsonl: line 1: not a row of a trace" in refusal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["runs"], "runs: no trace in it, but below: watch reads one, as runs/eager/seed-0"),
        ([".", "--window", "0s"], "--window 0s: expected more than 0"),
        ([".", "--every", "soon"], "--every: 'soon' is no duration"),
        ([".", "--alert", "generations"], "--alert 'generations': expected FIGURE>NUMBER per TIME"),
        ([".", "--exit-on-alert"], "--exit-on-alert: expected an --alert too"),
        ([".", "--on-alert", "mail"], "--on-alert: expected an --alert too"),
        (
            [".", "--alert", "generations>1 per 1h", "--on-alert", "'"],
            '--on-alert "\'": No closing quotation',
        ),
        ([".", "--alert", "generations>1 per 1h", "--on-alert", ""], "--on-alert: expected a command"),
    ],
)
def test_options_that_cannot_be_understood_are_refused(
    options: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "runs" / "eager" / "seed-0").mkdir(parents=True)
    (tmp_path / "runs" / "eager" / "seed-0" / "trace.jsonl").touch()
    assert message in refused(groupstorm("watch", *options, "--once", cwd=tmp_path))

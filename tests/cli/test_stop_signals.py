"""SIGINT, SIGTERM and SIGHUP to real processes: any number of them, one line, nothing is left.

A command runs in a process group of its own. Signals go to the group, as a terminal sends them, or to the
command's process alone, as `kill` does. Each signal waits for what it is to meet: a file, a child process.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from groupstorm.clients.brokers.jars import kafka_jars
from groupstorm.held_signals import STOP_SIGNALS
from groupstorm.problems import ExitCode
from tests.command import COMMAND, environment_of_command
from tests.needs import needed
from tests.processes import killed_after, next_line, outcome_of
from tests.waiting import wait_until, while_it_runs

DEADLINE_S = 240

#: Storms that take long enough to be met in the middle.
MUCH = ["--set", "members=300", "--set", "partitions=3000"]


def heed_stop_signals() -> None:
    """A test run in the background of a shell ignores SIGINT, and its processes would do the same."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class Running:
    """A command in a process group of its own."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        prepare: Callable[[], None] = heed_stop_signals,
    ) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment_of_command() | {"TMPDIR": str(folder)},
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509  # no other thread holds a lock when a test starts one
        )
        self.expected: set[Path] = set()
        self._said = ""

    def wait_for(self, condition: Callable[[], object]) -> None:
        while_it_runs(self.process, condition)

    def processes(self) -> list[int]:
        """The live processes that the command has started, and they in turn, in any session, with its own.

        They have its folder for temporary files in their environment; a process that has ended has none.
        """
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it ends, or is another user's
                if f"TMPDIR={self.folder}".encode() in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
        return found

    def partial_files(self) -> list[Path]:
        return [path for path in self.files() if path.match(".*.partial")]

    def signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            assert self.process.poll() is not None

    def read_line(self) -> None:
        """Wait for a line on its standard error."""
        assert self.process.stderr is not None
        with killed_after(self.process, DEADLINE_S):
            self._said += self.process.stderr.readline()

    def ended(self, code: ExitCode, words: str) -> None:
        """It ends with ``code`` and one line behind its progress; no process and no file of it is left."""
        _, rest = outcome_of(self.process, DEADLINE_S)
        errors = self._said + rest
        assert self.process.returncode == code, errors
        behind = [line for line in errors.splitlines() if not line.startswith("  ")]
        assert behind == [f"groupstorm: {words}, stopping"], errors
        self.gone()
        assert self.files() == self.expected

    def gone(self) -> None:
        """No process of it is left; a JVM whose input is closed takes a moment."""
        wait_until(lambda: not self.processes(), "all processes have gone")

    def files(self) -> set[Path]:
        """All but what Hypothesis, which a library loads if it is there, leaves where it is imported.

        Files come and go meanwhile: os.walk leaves out a folder that is gone, rglob() raises an error.
        """
        return {
            Path(folder, name)
            for folder, folders, names in os.walk(self.folder)
            if ".hypothesis" not in Path(folder).parts
            for name in (*folders, *names)
            if name != ".hypothesis"
        }


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    commands: list[Running] = []

    def begin(*arguments: str, **options: Any) -> Running:
        commands.append(Running(arguments, tmp_path, **options))
        return commands[-1]

    yield begin
    for running in commands:
        for pid in running.processes():  # none is left, as it should be
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        outcome_of(running.process, DEADLINE_S)


PARALLEL = [
    ["compare", "rolling-deploy", "--seeds", "5", *MUCH],
    ["run", "rolling-deploy", "--seeds", "5", *MUCH],
]


@pytest.mark.slow
@pytest.mark.parametrize("command", PARALLEL, ids=["compare", "run"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_interrupts_of_parallel_runs(start: Start, command: list[str], times: int) -> None:
    """The second one meets the first one's work: it is sent when the command says that it stops."""
    running = start(*command)
    running.wait_for(lambda: len(running.partial_files()) >= min(2, os.cpu_count() or 1))
    running.signal_group(signal.SIGINT)
    running.read_line()
    for _ in range(times - 1):
        running.signal_group(signal.SIGINT)
    running.ended(ExitCode.INTERRUPTED, "interrupted")


@pytest.mark.slow
def test_a_sweep_that_is_interrupted_before_its_first_run_is_done_leaves_nothing(start: Start) -> None:
    running = start("sweep", "rolling-deploy", "--over", "members=600,800", *MUCH[2:], "--seeds", "5")
    running.wait_for(lambda: len(running.processes()) > 1)
    running.signal_group(signal.SIGINT)
    running.ended(ExitCode.INTERRUPTED, "interrupted")


SWEEP = ["sweep", "rolling-deploy", "--over", "members=20,21", "--set", "partitions=40", "--seeds", "8"]


def runs_of_sweep(folder: Path) -> list[bytes]:
    """The lines of its finished runs."""
    return [
        line
        for file in folder.glob("runs/*.jsonl")
        for line in file.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_where_it_stopped(start: Start, tmp_path: Path) -> None:
    running = start(*SWEEP, "--out", "x")
    running.wait_for(lambda: len(runs_of_sweep(tmp_path / "x")) >= 3)
    running.process.kill()
    outcome_of(running.process, DEADLINE_S)
    kept = runs_of_sweep(tmp_path / "x")
    assert 3 <= len(kept) < 16
    again, anew = start(*SWEEP, "--out", "x"), start(*SWEEP, "--out", "y")
    _, errors = outcome_of(again.process, DEADLINE_S)
    _, _ = outcome_of(anew.process, DEADLINE_S)
    assert errors.splitlines()[-1] == "  16 of 16 runs"
    lines = runs_of_sweep(tmp_path / "x")
    assert set(kept) < set(lines)
    keys = [(row["point"], row["seed"]) for row in map(json.loads, lines)]
    assert len(keys) == len(set(keys)) == 16, "no run is done twice"
    assert (tmp_path / "x" / "sweep.json").read_bytes() == (tmp_path / "y" / "sweep.json").read_bytes()


@pytest.mark.slow
def test_a_sweep_that_is_interrupted_says_how_to_go_on(start: Start, tmp_path: Path) -> None:
    running = start(*SWEEP)
    folder = tmp_path / "runs" / "rolling-deploy-sweep-partitions=40-seed0-to-7"
    running.wait_for(lambda: len(runs_of_sweep(folder)) >= 3)
    running.signal_group(signal.SIGINT)
    _, errors = outcome_of(running.process, DEADLINE_S)
    assert running.process.returncode == ExitCode.INTERRUPTED, errors
    line = errors.splitlines()[-1]
    done, command = re.fullmatch(r"  (\d+) of 16 runs are done; for the others: (.*)", line).groups()  # type: ignore[union-attr]
    assert int(done) == len(runs_of_sweep(folder))
    assert command.endswith(shlex.join([*SWEEP, "--out", str(folder.relative_to(tmp_path))]))
    assert not (folder / "sweep.json").exists()


@pytest.mark.slow
def test_a_sweep_on_spark_that_is_interrupted_ends_in_the_middle_of_its_tasks(
    start: Start, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[spark]'")
    running = start(*SWEEP, "--out", "x", "--master", "local[2]")
    running.wait_for(lambda: len(runs_of_sweep(tmp_path / "x")) >= 2)
    running.signal_group(signal.SIGINT)
    _, errors = outcome_of(running.process, DEADLINE_S)
    assert running.process.returncode == ExitCode.INTERRUPTED, errors
    assert "not stopped" not in errors
    assert "of 16 runs are done; for the others: " in errors
    running.gone()


@pytest.mark.slow
def test_termination_of_the_first_process_alone(start: Start) -> None:
    running = start(*PARALLEL[0])
    running.wait_for(running.partial_files)
    running.process.terminate()
    running.ended(ExitCode.TERMINATED, "terminated")


@pytest.mark.slow
def test_workers_end_with_a_first_process_that_was_killed(start: Start) -> None:
    running = start(*PARALLEL[0])
    running.wait_for(running.partial_files)
    running.process.kill()
    outcome_of(running.process, DEADLINE_S)
    running.gone()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED, "interrupted"),
        (signal.SIGTERM, ExitCode.TERMINATED, "terminated"),
        (signal.SIGHUP, ExitCode.HUNG_UP, "hung up"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["run", "rolling-deploy", *MUCH], ["run", "rolling-deploy", "--on", "emulator"]],
    ids=["virtual", "real"],
)
def test_one_run(
    start: Start, command: list[str], number: signal.Signals, code: ExitCode, words: str
) -> None:
    running = start(*command)
    running.wait_for(running.partial_files)
    for _ in range(3):
        running.signal_group(number)
    running.ended(code, words)


def test_assign_that_waits_for_a_case(start: Start) -> None:
    running = start("assign")
    assert running.process.stdin is not None
    running.process.stdin.write('{"id": 1, "assignor": "range", "topics": {}, "members": []}\n')
    running.process.stdin.flush()
    assert next_line(running.process).startswith('{"id":')
    running.signal_group(signal.SIGINT)
    running.ended(ExitCode.INTERRUPTED, "interrupted")


def test_check_assignor_and_its_other_processes(start: Start) -> None:
    running = start("check-assignor", "range", "--count", "100000")
    running.wait_for(lambda: len(running.processes()) == 3)
    running.signal_group(signal.SIGINT)
    running.signal_group(signal.SIGINT)
    running.ended(ExitCode.INTERRUPTED, "interrupted")


@pytest.mark.slow
def test_a_replay_takes_its_copy_away(start: Start, tmp_path: Path) -> None:
    first = start("run", "cold-start", "--set", "members=300", "--set", "partitions=3000", "--out", "x")
    _, errors = outcome_of(first.process, DEADLINE_S)
    assert first.process.returncode == 0, errors
    kept = first.files()
    running = start("replay", "x")
    running.expected = kept
    running.wait_for(lambda: list(tmp_path.glob("groupstorm-replay-*")))
    running.signal_group(signal.SIGINT)
    running.ended(ExitCode.INTERRUPTED, "interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_analyze_with_spark(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    """The JVM is met while it starts: its files lie in our temporary folder from then on."""
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[spark]'")
    first = start("run", "cold-start", "--set", "members=4", "--out", "x")
    _, errors = outcome_of(first.process, DEADLINE_S)
    assert first.process.returncode == 0, errors
    running = start("analyze", "x", "--engine", "spark")
    running.wait_for(lambda: len(running.processes()) > 1 and list(tmp_path.glob("groupstorm-spark-*")))
    running.signal_group(number)
    running.signal_group(number)
    _, errors = outcome_of(running.process, DEADLINE_S)
    assert running.process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    running.gone()


#: A service with a process of its own.
SERVICE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(999)"])
time.sleep(999)
"""
SMALL = ["--set", "members=2", "--set", "partitions=4", "--set", "start_ms=100"]
#: Each command that starts processes, and how many of them there are with its own.
STARTERS = {
    "chaos": (["chaos", "cold-start", *SMALL, "--service", shlex.join([sys.executable, "-c", SERVICE])], 5),
    "check-assignor": (["check-assignor", "range", "--count", "100000"], 3),
    "compare": (["compare", "rolling-deploy", "--seeds", "5", *MUCH], 2),
    "sweep": (["sweep", "rolling-deploy", "--over", "members=600,800", *MUCH[2:], "--seeds", "5"], 2),
    "kafka-python": (["run", "cold-start", *SMALL, "--on", "emulator", "--with", "kafka-python"], 3),
    "java": (["run", "cold-start", *SMALL, "--on", "emulator", "--with", "java"], 2),
    "jvm": (["run", "cold-start", *SMALL, "--on", "jvm"], 2),
}
DEAR = {"chaos", "compare", "sweep", "kafka-python", "java", "jvm"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] if one in DEAR else []) for one in STARTERS]
)
def test_a_closed_terminal_ends_all_processes(start: Start, tmp_path: Path, name: str) -> None:
    """The command alone receives SIGHUP: a service or a worker in a session of its own never would."""
    if name in ("java", "jvm"):
        with needed():
            kafka_jars()
    if name == "kafka-python":
        pytest.importorskip("kafka", reason="pip install kafka-python (extra `kafka`)")
    command, count = STARTERS[name]
    running = start(*command)
    running.wait_for(lambda: len(running.processes()) >= count)
    running.process.send_signal(signal.SIGHUP)
    _, errors = outcome_of(running.process, DEADLINE_S)
    assert running.process.returncode == ExitCode.HUNG_UP, errors
    assert errors.splitlines()[-1] == "groupstorm: hung up, stopping"
    running.gone()
    assert running.partial_files() == []


def ignore_hang_ups() -> None:
    """As `nohup` does."""
    heed_stop_signals()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@pytest.mark.parametrize("command", ["assign", pytest.param("serve", marks=pytest.mark.slow)])
def test_nohup_keeps_a_command_running(start: Start, command: str) -> None:
    options = ["--port", "0"] if command == "serve" else []
    running = start(command, *options, prepare=ignore_hang_ups)
    if command == "assign":
        assert running.process.stdin is not None
        running.process.stdin.write('{"id": 1, "assignor": "range", "topics": {}, "members": []}\n')
        running.process.stdin.flush()
    next_line(running.process)
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    ignored = re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)
    assert ignored is not None
    assert int(ignored[1], 16) & 1 << signal.SIGHUP - 1
    running.process.send_signal(signal.SIGHUP)
    running.process.send_signal(signal.SIGTERM)
    _, errors = outcome_of(running.process, DEADLINE_S)
    expected = ExitCode.SUCCESS if command == "serve" else ExitCode.TERMINATED
    assert running.process.returncode == expected, errors


@pytest.mark.slow
def test_a_closed_terminal_ends_serve(start: Start) -> None:
    running = start("serve", "--port", "0")
    next_line(running.process)
    running.process.send_signal(signal.SIGHUP)
    _, errors = outcome_of(running.process, DEADLINE_S)
    assert running.process.returncode == ExitCode.SUCCESS, errors

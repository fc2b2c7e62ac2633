"""`./dev`: sets up what a command needs, once; what goes wrong ends in one line.

The script runs for real, in a scratch checkout that holds it and the lock files. Its Python is a small
script that plays the parts that need a network or minutes (`venv`, `ensurepip`, `pip`), hands the lock to
a real Python, and writes down what it was asked for.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import killed_after, outcome_of, run_process
from tests.soaking import one_in

ROOT = Path(__file__).resolve().parent.parent

FAKE_PYTHON = f"""\
#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
    "-c "*fcntl*) exec {sys.executable} "$@" ;;
    "-c "*version_info[[]:2*) echo "$FAKE_VERSION" ;;
    "-c "*"import ensurepip, venv"*) [ -z "$FAKE_LACKS_PIP" ] ;;
    "-c "*INSTALLER*) [ -f "$here/../with-pip" ] ;;
    "-c "*purelib*) echo "checkout $3" >>"$FAKE_LOG" ;;
    "-m venv")
        for folder; do :; done
        rm -rf "$folder"
        mkdir -p "$folder/bin"
        cp "$0" "$folder/bin/python"
        : >"$folder/pyvenv.cfg"
        echo venv >>"$FAKE_LOG" ;;
    "-Im ensurepip") : >"$here/../with-pip" ;;
    "-m pip")
        for file; do :; done
        echo "pip $(basename "$file" .txt)" >>"$FAKE_LOG"
        eval "$FAKE_PIP" ;;
    "-m groupstorm.pipeline.java") [ -n "$FAKE_JAVA" ] ;;
    *) echo "ran $*" ;;
esac
"""


class Checkout:
    """A scratch checkout with `./dev` in it, and what the fake Python was asked for."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.venv = self.root / ".venv"
        self.root.mkdir()
        shutil.copy(ROOT / "dev", self.root)
        shutil.copytree(ROOT / "requirements", self.root / "requirements")
        (self.root / "benchmarks").mkdir()
        (self.root / "benchmarks" / "codec.py").write_text("")
        images = self.root / "compose" / "images" / "build"
        images.parent.mkdir(parents=True)
        images.write_text('#!/bin/sh\necho "built with $PYTHON: $*"\n')
        images.chmod(0o755)
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "python3").write_text(FAKE_PYTHON)
        (self.bin / "python3").chmod(0o755)
        self._log = folder / "log"

    def environment(self, **fakes: str) -> dict[str, str]:
        defaults = {"FAKE_VERSION": "3.11", "FAKE_LACKS_PIP": "", "FAKE_PIP": ":", "FAKE_JAVA": "yes"}
        path = f"{self.bin}:/usr/bin:/bin"
        return {"PATH": path, "FAKE_LOG": str(self._log), **defaults, **fakes}

    def start(self, *words: str, cwd: Path | None = None, **fakes: str) -> subprocess.Popen[str]:
        """Start `./dev` in a process group of its own."""
        return subprocess.Popen(
            [str(self.root / "dev"), *words],
            cwd=cwd,
            env=self.environment(**fakes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, cwd: Path | None = None, **fakes: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, cwd=cwd, **fakes)
        out, err = outcome_of(process)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def asked(self) -> list[str]:
        """Return what was done since the last call: `venv`, `pip <set>`, `checkout <path>`."""
        done = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return done


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def only_line(answer: subprocess.CompletedProcess[str]) -> str:
    """The last line of standard error, which has no second one but progress."""
    lines = answer.stderr.splitlines()
    progress = ("dev: making", "dev: installing")
    (line,) = [line for line in lines if not line.startswith(progress)]
    assert line.startswith("dev: ")
    return line


def test_the_first_run_sets_up_and_the_second_starts_at_once(checkout: Checkout) -> None:
    first = checkout.run("run", "list", "--json")
    assert first.returncode == 0
    assert first.stdout == "ran -m groupstorm list --json\n"
    assert checkout.asked() == ["venv", "pip base", f"checkout {checkout.root}"]
    second = checkout.run("run", "list")
    assert (second.stdout, second.stderr) == ("ran -m groupstorm list\n", "")
    assert checkout.asked() == []


@pytest.mark.parametrize(
    ("command", "sets"),
    one_in(
        3,
        [
            ("run list", "base"),
            ("run run rolling-deploy --format parquet", "base parquet"),
            ("run run rolling-deploy --format=parquet", "base parquet"),
            ("run trace runs/a --otlp spans.jsonl", "base otel"),
            ("run analyze runs/a", "base"),
            ("run analyze runs/a --out tables", "base parquet"),
            ("run analyze runs/a --engine spark", "base spark-build spark"),
            ("run analyze --master=spark://host:7077 runs/a", "base spark-build spark"),
            ("run sweep cold-start --over members=2,3", "base"),
            ("run sweep cold-start --over members=2,3 --parquet", "base parquet"),
            ("run sweep cold-start --over members=2,3 --master local[2]", "base spark-build spark"),
            ("storm", "base spark-build spark"),
            ("lint", "base lint"),
            ("bench codec", "base kafka parquet speed"),
            ("fuzz --count 3", "base"),
            ("assignor-history kafka-12984", "base"),
            ("wheels", "base test lint spark-build"),
            ("images kafka", "base"),
            ("images spark", "base spark-build spark"),
            ("run watch traces", "base"),
            ("run watch 127.0.0.1:9092 --topic t", "base spark-build spark"),
            ("run watch traces --prometheus 0", "base watch"),
            ("run serve --trace-to host:9092/trace", "base kafka"),
            ("test", "base test kafka otel spark-build spark watch site"),
        ],
    ),
)
def test_a_command_installs_what_it_needs_and_nothing_else(
    checkout: Checkout, command: str, sets: str
) -> None:
    assert checkout.run(*command.split()).returncode == 0
    assert [done.removeprefix("pip ") for done in checkout.asked() if done.startswith("pip ")] == sets.split()


def test_spark_gets_a_java_only_where_there_is_none(checkout: Checkout) -> None:
    checkout.run("run", "analyze", "--engine=spark", "runs/a")
    assert "pip java" not in checkout.asked()
    checkout.run("run", "analyze", "--engine=spark", "runs/a", FAKE_JAVA="")
    assert checkout.asked() == ["pip java"]


def test_commands_pass_their_options_on(checkout: Checkout) -> None:
    storm = checkout.run("storm", "--seed", "7").stdout.splitlines()
    traces = f"{checkout.root}/runs/rolling-deploy"
    assert storm == [
        f"ran -m groupstorm compare rolling-deploy --out {traces} --seed 7",
        "",
        "And Spark, from the traces:",
        f"ran -m groupstorm analyze --engine spark --check {traces}",
    ]
    assert checkout.run("test", "-k", "two words").stdout == "ran -m pytest -m not soak -k two words\n"
    assert checkout.run("test", "-x", "--fast").stdout == "ran -m pytest -m not slow and not soak -x\n"
    (checkout.root / "tests" / "oracle").mkdir(parents=True)
    soak = checkout.run("soak", "oracle", "-n", "2").stdout
    assert soak == "ran -m pytest -m soak --durations=0 --durations-min=1 tests/oracle -n 2\n"
    assert checkout.run("bench").stdout == "ran -m benchmarks.codec\n"
    assert checkout.run("fuzz", "--count", "3").stdout == "ran -m tools.fuzz --count 3\n"
    assert checkout.run("print-log", "runs/a").stdout == "ran -m tools.log_printing runs/a\n"
    listed = checkout.run("assignor-history", "--json").stdout
    assert listed == "ran -m tools.historical_assignors --json\n"
    assert checkout.run("images", "kafka").stdout == f"built with {checkout.venv}/bin/python: kafka\n"


def test_storms_in_the_checkout_have_short_paths(checkout: Checkout) -> None:
    lines = checkout.run("storm", cwd=checkout.root).stdout.splitlines()
    assert lines[-1] == "ran -m groupstorm analyze --engine spark --check runs/rolling-deploy"


def test_any_set_up_leaves_the_groupstorm_command(checkout: Checkout) -> None:
    """It hands its arguments to `main` in the environment's Python, and comes back if it is gone."""
    command = checkout.venv / "bin" / "groupstorm"
    for _ in range(2):
        assert checkout.run("run").returncode == 0
        assert "pip base" in checkout.asked()
        answer = run_process(
            [str(command), "list"],
            env=checkout.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout == f"ran {command} list\n"
        command.unlink()


def test_commands_are_named_as_dev_was_called(checkout: Checkout) -> None:
    checkout.run("run")
    (checkout.venv / "bin" / "python").write_text('#!/bin/sh\necho "$GROUPSTORM_COMMAND"\n')
    assert checkout.run("run", "list").stdout == f"{checkout.root}/dev run\n"


def test_another_lock_file_is_installed_and_nothing_else(checkout: Checkout) -> None:
    checkout.run("lint")
    checkout.asked()
    with (checkout.root / "requirements" / "lint.txt").open("a") as file:
        file.write("# changed\n")
    checkout.run("lint")
    assert checkout.asked() == ["pip lint"]


def test_a_checkout_that_was_moved_is_set_up_for_its_new_place(checkout: Checkout) -> None:
    checkout.run("run")
    checkout.asked()
    checkout.root = checkout.root.rename(checkout.root.with_name("elsewhere"))
    checkout.run("run")
    assert checkout.asked() == ["pip base", f"checkout {checkout.root}"]


def test_an_environment_whose_python_is_gone_is_made_anew(checkout: Checkout) -> None:
    checkout.run("run")
    checkout.asked()
    (checkout.venv / "bin" / "python").unlink()
    checkout.run("run")
    assert checkout.asked()[:2] == ["venv", "pip base"]


def test_the_environment_can_stand_elsewhere(checkout: Checkout, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "er" / "venv"
    assert checkout.run("run", GROUPSTORM_VENV=str(place)).returncode == 0
    assert (place / "pyvenv.cfg").exists()
    assert not checkout.venv.exists()


def test_a_folder_that_is_no_environment_is_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "letter").write_text("dear")
    answer = checkout.run("run", GROUPSTORM_VENV=str(place))
    assert answer.returncode == 1
    assert "is no virtual environment" in only_line(answer)
    assert (place / "letter").read_text() == "dear"


# --- several at once, broken off -------------------------------------------------------------------


def test_two_at_once_set_up_once(checkout: Checkout, tmp_path: Path) -> None:
    """The first one's pip waits for a file, which comes when the second says that it waits for the first."""
    gate, reached = tmp_path / "gate", tmp_path / "reached"
    pip = f"touch {reached}; while [ ! -e {gate} ]; do sleep 0.02; done"
    with checkout.start("run", "list", FAKE_PIP=pip) as first, killed_after(first):
        while not reached.exists():
            assert first.poll() is None, outcome_of(first)
            time.sleep(0.02)
        with checkout.start("run", "list", FAKE_PIP="false") as second, killed_after(second):
            assert second.stderr is not None
            assert "another ./dev is setting up" in second.stderr.readline()
            gate.touch()
            for process in (first, second):
                _, errors = outcome_of(process)
                assert process.returncode == 0, errors
    assert checkout.asked() == ["venv", "pip base", f"checkout {checkout.root}"]


def test_an_interrupted_set_up_is_mended_by_the_next(checkout: Checkout, tmp_path: Path) -> None:
    """Killed while pip unpacks: what has no INSTALLER counts as absent, what is whole stays."""
    gate, reached = tmp_path / "gate", tmp_path / "reached"
    os.mkfifo(gate)
    os.mkfifo(reached)
    packages = checkout.venv / "lib" / "python3.11" / "site-packages"
    whole, half = packages / "whole-1.dist-info", packages / "half-1.dist-info"
    pip = (
        f"mkdir -p {whole} {half}; : >{whole}/INSTALLER; : >{half}/METADATA; echo here >{reached}; cat {gate}"
    )
    with checkout.start("run", FAKE_PIP=pip) as process:
        assert reached.read_text() == "here\n"
        os.killpg(process.pid, signal.SIGKILL)
    assert half.exists()
    checkout.asked()
    assert checkout.run("run").returncode == 0
    assert checkout.asked() == ["pip base", f"checkout {checkout.root}"]
    assert whole.exists()
    assert not half.exists()


# --- what goes wrong -------------------------------------------------------------------------------


def test_an_old_python_is_named(checkout: Checkout) -> None:
    answer = checkout.run("run", FAKE_VERSION="3.9", PYTHON=str(checkout.bin / "python3"))
    assert answer.returncode == 1
    assert "Python 3.11 or newer is needed" in only_line(answer)
    assert "is 3.9" in only_line(answer)
    assert not checkout.venv.exists()


def test_no_python_at_all_is_said(checkout: Checkout) -> None:
    answer = checkout.run("run", PYTHON="no-such-python")
    assert answer.returncode == 1
    assert "none was found" in only_line(answer)


def test_a_python_without_venv_and_pip_says_what_to_install(checkout: Checkout) -> None:
    answer = checkout.run("run", FAKE_LACKS_PIP="yes")
    assert answer.returncode == 1
    assert "apt install python3.11-venv" in only_line(answer)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "the disk is full",
        ),
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(': [Errno 111]')'",
            "no network",
        ),
        ("Retrying after connection broken by 'NameResolutionError(resolving failed)'", "no network"),
    ],
)
def test_a_full_disk_and_a_missing_network_end_in_one_line(
    checkout: Checkout, printed: str, said: str
) -> None:
    answer = checkout.run("run", FAKE_PIP=f'echo "{printed}" >&2; false')
    assert answer.returncode == 1
    assert said in only_line(answer)
    assert answer.stdout == ""
    assert checkout.run("run").returncode == 0, "the next run tries again"


def test_what_pip_says_is_shown_where_the_reason_is_not_known(checkout: Checkout) -> None:
    answer = checkout.run("run", FAKE_PIP="echo ERROR: hashes do not match >&2; false")
    assert answer.returncode == 1
    assert "ERROR: hashes do not match\ndev: could not install base" in answer.stderr


@pytest.mark.slow
def test_a_real_pip_without_a_network_ends_in_one_line(checkout: Checkout, tmp_path: Path) -> None:
    """A package index on a port where nobody listens."""
    answer = checkout.run(
        "run",
        PYTHON=sys.executable,
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_RETRIES="0",
        HOME=str(tmp_path),
    )
    assert answer.returncode == 1
    assert "no network" in only_line(answer)


@pytest.mark.parametrize("words", [["sotrm"], ["lint", "--quick"], ["soak", "attic"], ["bench", "nothing"]])
def test_a_misused_command_exits_2_and_installs_nothing(checkout: Checkout, words: list[str]) -> None:
    answer = checkout.run(*words)
    assert answer.returncode == 2
    assert words[-1] in only_line(answer)
    assert checkout.asked() == []


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_the_commands_and_installs_nothing(checkout: Checkout, words: list[str]) -> None:
    answer = checkout.run(*words)
    assert answer.returncode == 0
    for command in ("storm", "test", "soak", "lint", "bench", "oracle", "images", "run", "lock"):
        assert f"  ./dev {command} " in answer.stdout
    assert checkout.asked() == []

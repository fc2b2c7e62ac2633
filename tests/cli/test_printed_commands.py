"""Every command that a command prints can be run as it stands, from the same folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from groupstorm.cli.printing import invoked_as
from tests.command import COMMAND, environment_of_command, groupstorm, refused
from tests.processes import run_process

SMALL = ["--set", "members=4", "--set", "partitions=8"]
PLUG_IN = "def nothing(topics, members):\n    return {}\n"
STUCK = ["--set", "assign_ms=50000", "--set", "settle_timeout_ms=60000"]

#: As `write_command` of ./dev makes it.
SCRIPT = f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''
from groupstorm.cli.app import main

if __name__ == "__main__":
    main()
"""


@pytest.fixture(params=["module", "script on the path", "script beside", "dev"])
def called(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """The words that the user types before the command's own, and the environment."""
    environment = environment_of_command()
    folder = tmp_path / "with space" / "bin"
    script = folder / "groupstorm"
    folder.mkdir(parents=True)
    script.write_text(SCRIPT)
    script.chmod(0o755)
    if request.param == "script on the path":
        return ["groupstorm"], environment | {"PATH": f"{folder}{os.pathsep}{environment['PATH']}"}
    if request.param == "script beside":
        return [str(script)], environment
    if request.param == "dev":
        words = f"{sys.executable} -m groupstorm"
        return list(COMMAND), environment | {"GROUPSTORM_COMMAND": words}
    return list(COMMAND), environment


def command_after(label: str, printed: str) -> str:
    """The command behind ``label``, which goes on behind a backslash at the end of a line."""
    (line,) = re.findall(rf"^{label} ((?:.*\\\n)*.+)$", printed, re.MULTILINE)
    return str(line)


def shell(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run_process(
        line, shell=True, capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


@pytest.mark.slow
def test_what_run_and_compare_say_comes_next(
    called: tuple[list[str], dict[str, str]], tmp_path: Path
) -> None:
    words, environment = called
    out = ["--out", "my runs"]
    answer = run_process(
        [*words, "run", "cold-start", *SMALL, *out],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    line = command_after("The story of it:", answer.stdout)
    story = shell(line, tmp_path, environment)
    assert story.returncode == 0, story.stderr
    assert "CompletingRebalance" in story.stdout


@pytest.mark.slow
def test_the_tables_of_a_comparison(tmp_path: Path) -> None:
    answer = groupstorm("compare", "cold-start", *SMALL, "--out", "c", cwd=tmp_path)
    line = command_after("Their tables:", answer.stdout)
    helped = shell(line.replace("analyze c", "analyze --help"), tmp_path, environment_of_command())
    assert line.endswith(" analyze c")
    assert helped.returncode == 0, helped.stderr


@pytest.mark.slow
def test_the_story_of_the_longest_gap(tmp_path: Path) -> None:
    answer = groupstorm("compare", "cold-start", *SMALL, "--out", "my c", cwd=tmp_path)
    line = command_after("Its story:", answer.stdout)
    story = shell(line, tmp_path, environment_of_command())
    assert story.returncode == 0, story.stderr
    named = re.search(r"Longest gap, under \S+: (\S+),", " ".join(answer.stdout.split()))
    assert named is not None
    assert re.search(rf"{named[1]}: .* un-owned for", story.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("plug_in", [False, True])
def test_a_failed_run_can_be_seen_again(tmp_path: Path, plug_in: bool) -> None:
    """With code of the user's, too, which the scenario file must not name."""
    (tmp_path / "mine.py").write_text(PLUG_IN)
    own = ["--set", "partition.assignment.strategy=mine:nothing"] if plug_in else STUCK
    first = groupstorm("run", "cold-start", *SMALL, *own, "--out", "x", cwd=tmp_path)
    assert first.returncode == 1, first.stderr
    line = command_after("  again:", first.stderr)
    again = shell(line, tmp_path, environment_of_command())
    assert again.returncode == 1, again.stderr
    assert verdicts(again.stderr) == verdicts(first.stderr) != []


def verdicts(said: str) -> list[str]:
    return [line for line in said.splitlines() if not line.startswith(("  again:", "  with"))]


@pytest.mark.slow
def test_a_failed_run_names_what_the_command_line_changed_and_nothing_else(tmp_path: Path) -> None:
    first = groupstorm("run", "cold-start", *SMALL, *STUCK, "--out", "x", cwd=tmp_path)
    (line,) = re.findall(r"^  with (.+)$", first.stderr, re.MULTILINE)
    named = dict(part.split("=", 1) for part in re.split(r", (?=[a-z_.]+=)", line))
    assert named == {
        "members": "4",
        "partitions": "8",
        "assign_ms": "50000",
        "settle_timeout_ms": "60000",
    }


def test_a_message_names_a_command_that_can_be_run(tmp_path: Path) -> None:
    message = refused(groupstorm("run", "cold-start", "--set", "nonsense=1", cwd=tmp_path))
    (line,) = re.findall(r"`([^`]+ list --settings)`", message)
    assert shell(line, tmp_path, environment_of_command()).returncode == 0


#: Examples that need nothing but themselves do what they say: in a smaller group here.
_SMALLER = dict.fromkeys(("run", "compare", "sweep", "advise"), " " + " ".join(SMALL))


@pytest.mark.slow
def test_the_examples_of_the_help_can_be_parsed(tmp_path: Path) -> None:
    """They name a run's folder or a service that is not there, which is all that is wrong with them."""
    from groupstorm.cli.commands import COMMANDS, load_command

    examples = [
        (name, line.partition("Example: ")[2])
        for name in COMMANDS
        for line in load_command(name).help.splitlines()
        if line.strip().startswith("Example: ")
    ]
    assert len(examples) >= 2
    for name, example in examples:
        words = example.partition(f" {name} ")[2] + _SMALLER.get(name, "")
        answer = shell(f"{sys.executable} -m groupstorm {name} {words}", tmp_path, environment_of_command())
        assert "Usage" not in answer.stderr
        without_service = name == "chaos" and "the service did not pass" in answer.stderr
        assert answer.returncode in ((1,) if without_service else (0, 2)), answer.stderr


def test_the_python_of_another_environment_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment's Python is a link to the one that stands on the path."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    (theirs / "python").symlink_to(sys.executable)
    (ours / "python").symlink_to(theirs / "python")
    monkeypatch.delenv("GROUPSTORM_COMMAND", raising=False)
    monkeypatch.setattr(sys, "argv", ["groupstorm/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(ours / "python"))
    monkeypatch.setenv("PATH", str(theirs))
    assert invoked_as() == f"{ours / 'python'} -m groupstorm"
    monkeypatch.setenv("PATH", str(ours))
    assert invoked_as() == "python -m groupstorm"

"""The tool itself, on a sample: it changes rules, runs the room's tests, and prints what survives."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.command import environment_of_command
from tests.mutation.rooms import ROOT


def mutate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.mutation", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment_of_command(),
        timeout=1800,
        check=False,
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_sample_is_noticed_but_for_what_changes_nothing() -> None:
    done = mutate("checks", "--count", "24", "--seed", "1")
    found = re.search(r"^(\d+) of 24 survived$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout + done.stderr
    survived = int(found[1])
    assert survived <= 3, done.stdout
    assert done.stdout.count("survived: ") == survived
    assert done.returncode == bool(survived)


@pytest.mark.soak
def test_a_test_that_notices_nothing_lets_everything_survive() -> None:
    """These tests do not import the module."""
    module = "groupstorm/verdicts/ranking.py"
    tests = ("--count", "2", "--tests", "tests/mutation/test_mutations.py")
    done = mutate("verdicts", "--only", module, *tests)
    assert done.stdout.endswith("2 of 2 survived\n"), done.stdout + done.stderr
    assert done.returncode == 1

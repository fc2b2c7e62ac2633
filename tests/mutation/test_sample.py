"""The tool itself, on a sample: it changes rules, runs the tests that execute them, and counts."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.command import environment_of_command
from tests.mutation.rooms import ROOT

#: The seed picks two of the mutations that `equivalent.txt` has: of these the tests must notice nothing.
SAMPLE = ("checks", "--count", "24", "--seed", "28", "--jobs", "1")
ROW = re.compile(r"^checks +(\d+) +(\d+) +[\d.]+ +(\d+)$", re.MULTILINE)


@pytest.mark.slow
def test_a_sample_is_noticed_but_for_what_changes_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", *SAMPLE],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment_of_command(),
        timeout=1800,
        check=False,
    )
    row = ROW.search(done.stdout)
    assert row is not None, done.stdout + done.stderr
    tried, survived, equivalent = map(int, row.groups())
    assert tried == 24
    assert equivalent > 0, "take a seed whose sample has one of equivalent.txt"
    assert survived <= 2, done.stdout
    assert done.returncode == (1 if survived else 0)
    assert done.stdout.count("survived: ") == survived


@pytest.mark.slow
def test_what_is_not_there_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", "attic"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment_of_command(),
        timeout=600,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no room 'attic': the rooms are coordinator, members, " in done.stderr

"""The tool itself, on a sample: it changes rules, runs the tests that execute them, and counts."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys

import pytest

from tests.command import environment_of_command
from tests.mutation.__main__ import equivalent, named
from tests.mutation.mutations import mutations
from tests.mutation.rooms import ROOMS, ROOT

COUNT = 24
ROW = re.compile(r"^checks +(\d+) +(\d+) +[\d.]+ +(\d+)$", re.MULTILINE)


def seed_with_equivalents() -> int:
    """The first seed whose sample has two of the mutations of `equivalent.txt`: of these the tests must
    notice nothing."""
    every = [
        (path, mutation)
        for path in ROOMS["checks"].files()
        for mutation in mutations(path.read_text("utf-8"))
    ]
    known = equivalent()
    return next(
        seed
        for seed in itertools.count()
        if sum(named(*one) in known for one in random.Random(seed).sample(every, COUNT)) >= 2
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_sample_is_noticed_but_for_what_changes_nothing() -> None:
    sample = ("checks", "--count", str(COUNT), "--seed", str(seed_with_equivalents()), "--jobs", "1")
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", *sample],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment_of_command(),
        timeout=1800,
        check=False,
    )
    row = ROW.search(done.stdout)
    assert row is not None, done.stdout + done.stderr
    tried, survived, excused = map(int, row.groups())
    assert tried == COUNT
    assert excused >= 2
    assert survived <= 2, done.stdout
    assert done.returncode == (1 if survived else 0)
    assert done.stdout.count("survived: ") == survived


@pytest.mark.soak
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
    assert "there is no room 'attic': the rooms are coordinator, " in done.stderr

"""The transcripts beside this file show what steps of scenarios do to a group, one behaviour each.

`tests.storms.transcript` explains the format. A new one is a comment that derives the times, steps, and a
line of ``----``; to get its rows, or after a change of the rows that is meant, run

    GROUPSTORM_REWRITE=1 pytest tests/storms/test_transcripts.py

The rewritten files fail in that run, so nothing is rewritten silently. Inspect the difference, and commit it
only if the comment explains every time of it.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from tests.soaking import one_in
from tests.storms.transcript import DIVIDER, play, rows, run, shown
from tests.transcript_files import check_transcript, transcripts_beside

_FILES = transcripts_beside(__file__)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_transcript(file: Path) -> None:
    check_transcript(file, play)


@pytest.mark.parametrize("file", one_in(4, _FILES), ids=lambda file: file.stem)
def test_the_exact_simulation_gives_the_same_rows(file: Path) -> None:
    """Here all ways take one millisecond: heartbeats of several members arrive in the same microsecond, in
    another order. The rows of one instant are compared as a set."""
    written = file.read_text(encoding="utf-8")
    exact, computed = (rows(run(written, exact), 0, shown(written)).splitlines() for exact in (True, False))
    assert sorted(exact) == sorted(computed)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_each_transcript_derives_its_times_first(file: Path) -> None:
    comment, divider, _ = file.read_text(encoding="utf-8").partition(DIVIDER)
    assert divider
    assert comment.startswith("# ")
    assert sum(line.startswith("#") for line in comment.splitlines()) >= 2


@pytest.mark.slow
def test_each_seed_draws_an_order_of_its_own() -> None:
    """`order: random`: all six orders of three members come, none of them much more often than another."""
    world = (Path(__file__).parent / "transcripts" / "rolling_restart_random.txt").read_text("utf-8")
    orders: Counter[tuple[str, ...]] = Counter()
    for seed in range(120):
        ran = run(world.replace("seed: 2\n", f"seed: {seed}\n"))
        orders[tuple(step.member for _, step in ran.events("step_taken", detail="SIGTERM"))] += 1
    assert set(orders) == set(permutations(("member-0", "member-1", "member-2")))
    assert min(orders.values()) >= 10, "20 are expected"

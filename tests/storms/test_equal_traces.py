"""The same seed gives the same trace: in any process, and whether or not heartbeats are simulated."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from groupstorm.storms.scenario import load
from tests.command import groupstorm
from tests.storms.storming import FIXED, START, scenario, storm

ALL_STEPS = Path(__file__).parent / "all-steps.yaml"


def cases(seeds: int) -> list[tuple[str, str, int]]:
    names = ["rolling-deploy", "cold-start", "slow-member-hostage", "client-profiles", str(ALL_STEPS)]
    return [
        (name, variant, seed) for name in names for variant in load(name).variants for seed in range(seeds)
    ]


def assert_equal_traces(name: str, variant: str, seed: int) -> None:
    analytic, exact = storm(name, seed, variant), storm(name, seed, variant, exact=True)
    for number, (computed, simulated) in enumerate(zip(analytic.rows, exact.rows, strict=False)):
        assert computed == simulated, f"row {number}"
    assert len(analytic.rows) == len(exact.rows)
    assert analytic.figures == exact.figures


@pytest.mark.parametrize(("name", "variant", "seed"), cases(1))
def test_exact_and_analytic_traces_are_equal(name: str, variant: str, seed: int) -> None:
    assert_equal_traces(name, variant, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant", "seed"), cases(10))
def test_exact_and_analytic_traces_are_equal_on_ten_seeds(name: str, variant: str, seed: int) -> None:
    assert_equal_traces(name, variant, seed)


def test_who_owns_nothing_commits_nothing() -> None:
    """Three members and one partition: one of them commits, in either way of simulating."""
    alone = scenario([START], members=3, partitions=1, least_duration_ms=100_000, **FIXED)
    found = [storm(alone, exact=exact).figures for exact in (False, True)]
    assert found[0] == found[1]
    committed = (found[0].requests or {})["OffsetCommit"]
    assert 18 <= committed <= 20, "one member, every five seconds"


def test_seeds_differ() -> None:
    assert storm("cold-start", 1).rows != storm("cold-start", 2).rows


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_files_are_the_same_in_another_process(tmp_path: Path, hash_seed: str) -> None:
    def run(folder: Path, hash_seed: str) -> dict[str, str]:
        command = ("run", "cold-start", "--seed", "7", "--out", str(folder))
        assert groupstorm(*command, cwd=tmp_path, PYTHONHASHSEED=hash_seed).returncode == 0
        files = ("trace.jsonl", "scenario.yaml", "figures.json")
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}

    assert run(tmp_path / "a", "1") == run(tmp_path / "b", hash_seed)

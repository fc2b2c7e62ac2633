"""A seed gives one trace: in any process, and whether or not heartbeats are simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path

import pytest

from groupstorm.storms.scenario.files import load
from tests.command import groupstorm
from tests.storms.seed_pool import check_seeds
from tests.storms.storms_in_memory import FIXED, START, scenario, storm

ALL_STEPS = Path(__file__).parent / "all-steps.yaml"


def cases() -> list[tuple[str, str]]:
    names = ["rolling-deploy", "cold-start", "slow-member-hostage", "client-profiles", str(ALL_STEPS)]
    return [(name, variant) for name in names for variant in load(name).variants]


_FLEET = {"members": 10, "partitions": 50}
#: With many seeds, a fleet of this size: an exact storm makes every poll() of every member an event.
SMALLER = dict.fromkeys(("rolling-deploy", "cold-start", "slow-member-hostage", "client-profiles"), _FLEET)


def assert_equal_traces(
    name: str, variant: str, seed: int, settings: Mapping[str, object] | None = None
) -> None:
    analytic, exact = (storm(name, seed, variant, exact, settings) for exact in (False, True))
    for number, (computed, simulated) in enumerate(zip(analytic.rows, exact.rows, strict=False)):
        assert computed == simulated, f"row {number}"
    assert len(analytic.rows) == len(exact.rows)
    assert analytic.figures == exact.figures


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), cases())
def test_exact_and_computed_traces_are_equal(name: str, variant: str) -> None:
    assert_equal_traces(name, variant, 0, SMALLER.get(name))


@pytest.mark.soak
@pytest.mark.parametrize(("name", "variant"), cases())
def test_exact_and_computed_traces_are_equal_on_ten_seeds(
    name: str, variant: str, seed_processes: Executor
) -> None:
    settings = SMALLER.get(name)
    check_seeds(seed_processes, assert_equal_traces, range(10), name=name, variant=variant, settings=settings)


def test_a_member_without_partitions_commits_nothing() -> None:
    """Three members and one partition: one of them commits, in either way of simulating."""
    alone = scenario([START], members=3, partitions=1, least_duration_ms=100_000, **FIXED)
    found = [storm(alone, exact=exact).figures for exact in (False, True)]
    assert found[0] == found[1]
    committed = (found[0].requests or {})["OffsetCommit"]
    assert 18 <= committed <= 20, "one member, every five seconds"


def test_a_member_without_positions_commits_nothing() -> None:
    """The committed offsets come after up to 1.8 s: commits every second begin before."""
    settings = {"auto.commit.interval.ms": 1_000, "net_latency_ms": {"uniform": [1, 900]}}
    early = scenario([START], members=3, partitions=3, **settings)
    found = [[storm(early, seed, exact=exact).figures for seed in range(8)] for exact in (False, True)]
    assert found[0] == found[1]


def test_seeds_differ() -> None:
    assert storm("cold-start", 1).rows != storm("cold-start", 2).rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cold-start", str(ALL_STEPS.parent / "streams" / "all-steps.yaml")])
def test_files_are_the_same_in_another_process(tmp_path: Path, name: str) -> None:
    def run(folder: Path, hash_seed: str) -> dict[str, str]:
        command = ("run", name, "--seed", "7", "--out", str(folder))
        assert groupstorm(*command, cwd=tmp_path, PYTHONHASHSEED=hash_seed).returncode == 0
        files = ("trace.jsonl", "scenario.yaml", "figures.json")
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}

    assert run(tmp_path / "a", "1") == run(tmp_path / "b", "4711")

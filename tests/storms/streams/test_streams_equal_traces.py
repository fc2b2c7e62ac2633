"""The same seed gives the same trace: whether or not heartbeats are simulated, and in any process."""

from __future__ import annotations

import hashlib
from concurrent.futures import Executor
from pathlib import Path

import pytest

from groupstorm.storms.scenario.files import load
from tests.command import groupstorm
from tests.storms.seed_pool import check_seeds
from tests.storms.storms_in_memory import storm

ALL_STEPS = str(Path(__file__).parent / "all-steps.yaml")
VARIANTS = tuple(load(ALL_STEPS).variants)


def assert_equal_traces(variant: str, seed: int) -> None:
    analytic, exact = storm(ALL_STEPS, seed, variant), storm(ALL_STEPS, seed, variant, exact=True)
    for number, (computed, simulated) in enumerate(zip(analytic.rows, exact.rows, strict=False)):
        assert computed == simulated, f"row {number}"
    assert len(analytic.rows) == len(exact.rows)
    assert analytic.figures == exact.figures


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, marks=pytest.mark.slow if variant in VARIANTS[:2] else pytest.mark.soak)
        for variant in VARIANTS
    ],
)
def test_exact_and_computed_traces_are_equal(variant: str) -> None:
    assert_equal_traces(variant, 0)


@pytest.mark.soak
@pytest.mark.parametrize("variant", VARIANTS)
def test_exact_and_computed_traces_are_equal_on_more_seeds(variant: str, seed_processes: Executor) -> None:
    check_seeds(seed_processes, assert_equal_traces, range(1, 4), variant=variant)


@pytest.mark.slow
def test_files_are_the_same_in_another_process(tmp_path: Path) -> None:
    def run(folder: Path, hash_seed: str) -> dict[str, str]:
        command = ("run", ALL_STEPS, "--seed", "7", "--out", str(folder))
        assert groupstorm(*command, cwd=tmp_path, PYTHONHASHSEED=hash_seed).returncode == 0
        files = ("trace.jsonl", "scenario.yaml", "figures.json")
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}

    assert run(tmp_path / "a", "1") == run(tmp_path / "b", "4711")

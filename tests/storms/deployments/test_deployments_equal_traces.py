"""Every way to replace pods gives the same trace whether or not heartbeats are simulated one by one."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

import pytest

from groupstorm.storms.scenario.files import load
from tests.storms.seed_pool import check_seeds
from tests.storms.test_equal_traces import assert_equal_traces

ALL = str(Path(__file__).parent / "all-deployments.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("variant", load(ALL).variants)
def test_exact_and_computed_traces_are_equal(variant: str) -> None:
    assert_equal_traces(ALL, variant, 0)


@pytest.mark.soak
@pytest.mark.parametrize("variant", load(ALL).variants)
def test_exact_and_computed_traces_are_equal_on_ten_seeds(variant: str, seed_processes: Executor) -> None:
    check_seeds(seed_processes, assert_equal_traces, range(1, 10), name=ALL, variant=variant)

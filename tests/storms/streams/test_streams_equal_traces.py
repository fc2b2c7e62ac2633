"""A seed of a Kafka Streams storm gives one trace, whether or not heartbeats are simulated."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

import pytest

from groupstorm.storms.scenario.files import load
from tests.storms.seed_pool import check_seeds
from tests.storms.test_equal_traces import assert_equal_traces

ALL_STEPS = str(Path(__file__).parent / "all-steps.yaml")
VARIANTS = tuple(load(ALL_STEPS).variants)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, marks=pytest.mark.slow if variant in VARIANTS[:2] else pytest.mark.soak)
        for variant in VARIANTS
    ],
)
def test_exact_and_computed_traces_are_equal(variant: str) -> None:
    assert_equal_traces(ALL_STEPS, variant, 0)


@pytest.mark.soak
@pytest.mark.parametrize("variant", VARIANTS)
def test_exact_and_computed_traces_are_equal_on_more_seeds(variant: str, seed_processes: Executor) -> None:
    check_seeds(seed_processes, assert_equal_traces, range(1, 4), name=ALL_STEPS, variant=variant)

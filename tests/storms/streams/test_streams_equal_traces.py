"""A seed of a Kafka Streams storm gives one trace, whether or not heartbeats are simulated."""

from __future__ import annotations

import random
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.steps import CONSUMER_STEPS
from tests.soaking import in_soak
from tests.storms.seed_pool import check_seeds
from tests.storms.test_equal_small_worlds import FAULTS, THEN, WORLD, check
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


#: Settings of classic members, and those of consumers that Kafka Streams makes up itself.
_OTHERS = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
    "group.initial.rebalance.delay.ms",
    "process_ms",
    "auto.commit.interval.ms",
)
#: What happens to the group, its hosts and its instances.
_FAULTS = [
    *(step for step in FAULTS.values() if step["do"] not in {*CONSUMER_STEPS, "add-partitions"}),
    {"do": "lose-host", "members": [0]},
    {"do": "rolling-restart"},
    {"do": "add", "count": 2},
]


def drawn(seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Steps and settings of a small streams group."""
    draw = random.Random(seed)
    settings: dict[str, Any] = {name: value for name, value in WORLD.items() if name not in _OTHERS}
    members = draw.choice([2, 3, 5])
    settings |= {
        "application": "streams",
        "group.protocol": "streams",
        "members": members,
        "num.stream.threads": draw.choice([1, 2]),
        "topics": draw.choice([1, 2]),
        "partitions": draw.choice([2, 5, 8]),
        "state_bytes": draw.choice([0, 10_000_000, 1_000_000_000]),
        "restore_mb_s": draw.choice([5, 50]),
        "num.standby.replicas": draw.choice([0, 1, 2]),
        "leave_on_close": draw.choice([True, False]),
        "group.streams.heartbeat.interval.ms": 3_000,
        "group.streams.session.timeout.ms": 10_000,
        "group.streams.assignment.interval.ms": draw.choice([0, 1_000, 4_000]),
        "group.streams.initial.rebalance.delay.ms": draw.choice([0, 3_000]),
    }
    if draw.random() < 0.8:
        settings["net_latency_ms"] = draw.choice([0, 1, 2, 5, 100])
    if draw.random() < 0.3:
        settings["group.instance.id"] = "ordinal"
    steps: list[dict[str, Any]] = []
    for _ in range(draw.choice([1, 1, 2])):
        step: dict[str, Any] = {
            "at_ms": draw.choice([30_000, 33_000, 30_000 + draw.randrange(3_000), 40_000])
        }
        step |= draw.choice(_FAULTS)
        if "members" in step:
            step["members"] = sorted(draw.sample(range(members), draw.choice([1, 1, 2])))
        steps.append(step)
    steps += THEN if draw.random() < 0.5 else ()
    return sorted(steps, key=lambda step: int(step["at_ms"])), settings


@pytest.mark.parametrize("seed", [*range(4), *in_soak(*range(4, 200))])
def test_exact_and_computed_rows_of_drawn_groups_are_equal(seed: int) -> None:
    steps, settings = drawn(seed)
    check(steps, settings, seed)

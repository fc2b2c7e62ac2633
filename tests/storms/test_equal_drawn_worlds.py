"""Small worlds that are drawn give the same rows whether what is periodic is computed or simulated.

Four in five have one latency for all, so that very many things happen at the same instant as others.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from groupstorm.storms.scenario.steps import CONSUMER_STEPS
from tests.soaking import in_soak
from tests.storms.storms_in_memory import FIXED
from tests.storms.test_equal_small_worlds import FAULTS, THEN, VARIANTS, WORLD, check, of_variant


def drawn(seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Steps and settings."""
    draw = random.Random(seed)
    settings = of_variant(draw.choice([*VARIANTS, "cooperative", "consumer"]))
    members = draw.choice([2, 3, 5, 12])
    settings |= {"members": members, "partitions": draw.choice([3, 5, 12, 24])}
    for share, own in (
        (0.8, {"net_latency_ms": draw.choice([0, 1, 1, 2, 5, 100])}),
        (0.5, FIXED),
        (0.5, {"process_ms": draw.choice([0.5, 1, 3]), "poll_interval_ms": draw.choice([0, 100, 200])}),
        (0.5, {"commits": ("batch", "record", "never", "interval")[seed % 4]}),
        (0.5, {"auto.commit.interval.ms": draw.choice([1_000, 3_000])}),
        (0.5, {"start_ms": draw.choice([0, 100, 1_000])}),
        (0.3, {"append_latency_ms": draw.choice([0, 2, 500])}),
        (0.2, {"session.timeout.ms": 9_000} if "session.timeout.ms" in settings else {}),
    ):
        if draw.random() < share:
            settings |= own
    steps: list[dict[str, Any]] = []
    for _ in range(draw.choice([1, 1, 2])):
        step: dict[str, Any] = {
            "at_ms": draw.choice([30_000, 33_000, 36_000, 30_000 + draw.randrange(3_000), 40_000])
        }
        step |= FAULTS[draw.choice([*FAULTS])]
        if "members" in step:
            step["members"] = sorted(draw.sample(range(members), min(members, draw.choice([1, 1, 2]))))
        steps.append(step)
    steps += THEN if draw.random() < 0.5 else ()
    return sorted(steps, key=lambda step: int(step["at_ms"])), settings


#: Worlds that take a second or more. In that of seed 250 a heartbeat is due when its series ends.
SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in (5, 6, 7, 250)]


@pytest.mark.parametrize("seed", [*range(5), *SLOW, *in_soak(*range(8, 250), *range(251, 1_000))])
def test_exact_and_computed_rows_of_drawn_worlds_are_equal(seed: int) -> None:
    steps, settings = drawn(seed)
    check(steps, settings, seed)


#: Settings of classic members, and those of consumers that Kafka Streams makes up itself.
_OF_CONSUMERS = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
    "group.initial.rebalance.delay.ms",
    "process_ms",
    "auto.commit.interval.ms",
)
#: What happens to the group, its hosts and its instances.
STREAMS_FAULTS = [
    *(step for step in FAULTS.values() if step["do"] not in {*CONSUMER_STEPS, "add-partitions"}),
    {"do": "lose-host", "members": [0]},
    {"do": "rolling-restart"},
    {"do": "add", "count": 2},
]


def drawn_streams(seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Steps and settings of a small streams group."""
    draw = random.Random(seed)
    settings: dict[str, Any] = {name: value for name, value in WORLD.items() if name not in _OF_CONSUMERS}
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
        step |= draw.choice(STREAMS_FAULTS)
        if "members" in step:
            step["members"] = sorted(draw.sample(range(members), draw.choice([1, 1, 2])))
        steps.append(step)
    steps += THEN if draw.random() < 0.5 else ()
    return sorted(steps, key=lambda step: int(step["at_ms"])), settings


#: Its latencies are so long that the thread polls several times while a heartbeat is under way.
LONG_LATENCIES = 900_194


@pytest.mark.parametrize("seed", [*range(4), LONG_LATENCIES, *in_soak(*range(4, 200))])
def test_exact_and_computed_rows_of_drawn_streams_groups_are_equal(seed: int) -> None:
    steps, settings = drawn_streams(seed)
    check(steps, settings, seed)

"""A seed gives one trace: in any process, and whether or not heartbeats are simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from groupstorm.clients.profiles import PROFILES
from groupstorm.storms.scenario.files import load
from tests.command import groupstorm
from tests.storms.seed_pool import check_seeds
from tests.storms.storms_in_memory import storm

HERE = Path(__file__).parent
ALL_STEPS = str(HERE / "all-steps.yaml")
ALL_DEPLOYMENTS = str(HERE / "deployments" / "all-deployments.yaml")
ALL_OF_THE_WORLD = str(HERE / "all-of-the-world.yaml")
STREAMS = str(HERE / "streams" / "all-steps.yaml")
CONSUMER = {"group.protocol": "consumer"}
#: An exact storm makes every poll() of every member an event.
SMALLER = {"members": 10, "partitions": 50}

#: The scenario, the variant, a seed and settings.
Case = tuple[str, str, int, Mapping[str, Any]]


def cases() -> Iterator[Case]:
    for name in ("rolling-deploy", "cold-start", "slow-member-hostage", "client-profiles"):
        yield from ((name, variant, 0, SMALLER) for variant in load(name).variants)
    for name in (ALL_STEPS, ALL_DEPLOYMENTS, "stream-join", "kafka-12464"):
        yield from ((name, variant, 0, {}) for variant in load(name).variants)
    yield from ((STREAMS, variant, 0, {}) for variant in [*load(STREAMS).variants][:2])
    yield "new-protocol", "consumer", 0, {}
    for profiles in (*(one for one in PROFILES if one != "librdkafka"), "java,librdkafka"):
        yield ALL_STEPS, "eager" if profiles == "aiokafka" else "surge", 0, {"client_profile": profiles}
    yield ALL_OF_THE_WORLD, "cooperative", 3, {}
    yield ALL_OF_THE_WORLD, "cooperative", 3, CONSUMER  # a commit of an earlier epoch is refused


def rarer_cases() -> Iterator[Case]:
    yield from ((STREAMS, variant, 0, {}) for variant in [*load(STREAMS).variants][2:])
    yield "static-trap", next(iter(load("static-trap").variants)), 0, CONSUMER
    yield ALL_STEPS, next(iter(load(ALL_STEPS).variants)), 0, CONSUMER
    yield ALL_STEPS, "surge", 0, {"client_profile": "librdkafka"}
    yield ALL_OF_THE_WORLD, "eager-clients", 3, {}
    yield ALL_OF_THE_WORLD, "cooperative", 4, CONSUMER  # heartbeat due in the millisecond of a late poll


def assert_equal_traces(name: str, variant: str, seed: int, settings: Mapping[str, object]) -> None:
    analytic, exact = (storm(name, seed, variant, exact, settings) for exact in (False, True))
    for number, (computed, simulated) in enumerate(zip(analytic.rows, exact.rows, strict=False)):
        assert computed == simulated, f"row {number}"
    assert len(analytic.rows) == len(exact.rows)
    assert analytic.figures == exact.figures


@pytest.mark.parametrize(
    ("name", "variant", "seed", "settings"),
    [
        pytest.param(*case, marks=mark)
        for mark, some in ((pytest.mark.slow, cases()), (pytest.mark.soak, rarer_cases()))
        for case in some
    ],
)
def test_exact_and_computed_traces_are_equal(
    name: str, variant: str, seed: int, settings: Mapping[str, Any]
) -> None:
    assert_equal_traces(name, variant, seed, settings)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "variant", "seed", "settings"), [*cases(), *rarer_cases()])
def test_exact_and_computed_traces_are_equal_on_more_seeds(
    name: str, variant: str, seed: int, settings: Mapping[str, Any], seed_processes: Executor
) -> None:
    """Kafka Streams gets fewer seeds: its storms take long."""
    seeds = range(seed + 1, seed + (4 if name == STREAMS else 10))
    check_seeds(seed_processes, assert_equal_traces, seeds, name=name, variant=variant, settings=settings)


def test_seeds_differ() -> None:
    assert storm("cold-start", 1).rows != storm("cold-start", 2).rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cold-start", STREAMS])
def test_files_are_the_same_in_another_process(tmp_path: Path, name: str) -> None:
    def run(folder: Path, hash_seed: str) -> dict[str, str]:
        command = ("run", name, "--seed", "7", "--out", str(folder))
        assert groupstorm(*command, cwd=tmp_path, PYTHONHASHSEED=hash_seed).returncode == 0
        files = ("trace.jsonl", "scenario.yaml", "figures.json")
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}

    assert run(tmp_path / "a", "1") == run(tmp_path / "b", "4711")

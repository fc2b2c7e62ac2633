"""The generator of scripts of streams groups: repeatable, within its time, and able to reach the rules."""

from __future__ import annotations

import json

import pytest

from groupstorm.coordinator.config import Compatibility
from tests.oracle.coverage import Coverage
from tests.oracle.differential import our_answer
from tests.oracle.scripts.groups import TIME_MAX_MS
from tests.oracle.scripts.streams_scripts import Script, random_streams_script
from tests.oracle.tables import RULES_BY_KIND


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    return [random_streams_script(7, number) for number in range(150)]


@pytest.fixture(scope="module")
def coverage(scripts: list[Script]) -> Coverage:
    """The answers of our coordinator."""
    coverage = Coverage()
    for script in scripts:
        coverage.count_answer(
            len(script["steps"]), our_answer(script, coverage.watch, Compatibility.KAFKA_4_4_0)
        )
    return coverage


def test_a_script_depends_on_its_seed_and_number_alone() -> None:
    assert random_streams_script(3, 14) == random_streams_script(3, 14)
    different = {json.dumps(random_streams_script(seed, number)) for seed in range(4) for number in range(10)}
    assert len(different) == 40


def test_scripts_end_before_kafka_looks_for_expired_offsets(scripts: list[Script]) -> None:
    for script in scripts:
        assert sum(step["ms"] for step in script["steps"] if step["op"] == "advance") <= TIME_MAX_MS


def test_every_step_is_drawn(scripts: list[Script]) -> None:
    drawn = {step["op"] for script in scripts for step in script["steps"]}
    assert drawn >= {
        "streams",
        "describe_streams",
        "topics",
        "group_config",
        "reload",
        "delete_groups",
        "commit",
    }
    fields = {
        name for script in scripts for step in script["steps"] if step["op"] == "streams" for name in step
    }
    assert fields >= {"task_offsets", "task_end_offsets", "instance", "endpoint", "shutdown", "tags", "rack"}


@pytest.mark.slow
def test_scripts_reach_every_rule_and_every_state(coverage: Coverage) -> None:
    rules = RULES_BY_KIND["streams"]
    reached = set(coverage.answers)
    assert {(kind, error) for kind, errors in rules.items() for error in errors} - reached == set()
    states = {state for kind, state in coverage.requests if kind == "StreamsGroupHeartbeat"}
    kinds = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable")
    assert states >= {f"streams {state}" for state in kinds}
    assert len(coverage.reconciliations) >= 9

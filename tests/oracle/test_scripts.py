"""The generators of scripts: repeatable, within their time, and able to reach what the tables say."""

from __future__ import annotations

import json

import pytest

from groupstorm.coordinator.config import Compatibility
from tests.oracle.coordinator import SCRIPTS
from tests.oracle.coverage import Coverage
from tests.oracle.differential import our_answer
from tests.oracle.scripts.generator import Script, random_script
from tests.oracle.scripts.moves import MOVES
from tests.oracle.scripts.steps import TIME_MAX_MS
from tests.oracle.scripts.workloads import WORKLOADS
from tests.oracle.tables import (
    ALL_ERRORS,
    ALL_TRANSITIONS,
    RULES,
    RULES_BY_KIND,
    UNREACHABLE_ERRORS,
    UNREACHABLE_TRANSITIONS,
)

_COUNT = 900


@pytest.fixture(scope="module")
def streams() -> list[Script]:
    return [SCRIPTS["streams"](7, number) for number in range(150)]


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    return [random_script(7, number) for number in range(_COUNT)]


@pytest.fixture(scope="module")
def coverage(scripts: list[Script]) -> Coverage:
    """Return what our coordinator answers to them."""
    coverage = Coverage()
    for script in scripts:
        coverage.count_answer(len(script["steps"]), our_answer(script, coverage.watch))
    return coverage


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_script_depends_on_its_seed_and_number_alone(kind: str) -> None:
    generate = SCRIPTS[kind]
    assert generate(3, 14) == generate(3, 14)
    different = {json.dumps(generate(seed, number)) for seed in range(4) for number in range(10)}
    assert len(different) == 40


def _elapsed_ms(script: Script) -> int:
    return sum(step["ms"] for step in script["steps"] if step["op"] == "advance")


def test_scripts_of_streams_groups_end_before_kafka_looks_for_expired_offsets(streams: list[Script]) -> None:
    assert max(map(_elapsed_ms, streams)) <= TIME_MAX_MS


@pytest.mark.slow
def test_scripts_end_before_kafka_looks_for_expired_offsets(scripts: list[Script]) -> None:
    elapsed = [_elapsed_ms(script) for script in scripts]
    assert max(elapsed) <= TIME_MAX_MS < 600_000
    assert sum(ms > 300_000 for ms in elapsed) > 20, "some outlast a new member's five minutes"


def test_every_move_is_made_in_some_workload() -> None:
    assert {name for workload in WORKLOADS for name in workload.moves} == set(MOVES)


@pytest.mark.slow
def test_every_version_of_a_join_is_sent(scripts: list[Script]) -> None:
    joins = [step for script in scripts for step in script["steps"] if step["op"] == "join"]
    assert {step.get("version") for step in joins} >= set(range(10)) - {6, 7}
    assert {bool(step.get("instance")) for step in joins} == {True, False}
    assert any("when" in step for step in joins)


@pytest.mark.slow
def test_scripts_reach_every_rule(coverage: Coverage) -> None:
    reached = set(coverage.answers)
    assert {(kind, error) for kind, errors in RULES.items() for error in errors} - reached == set()


@pytest.mark.slow
def test_scripts_take_every_transition(coverage: Coverage) -> None:
    assert set(ALL_TRANSITIONS) - set(coverage.transitions) == set(UNREACHABLE_TRANSITIONS)


@pytest.mark.slow
def test_what_the_table_calls_unreachable_is_not_reached(coverage: Coverage) -> None:
    assert {error for _, error in coverage.answers} & set(UNREACHABLE_ERRORS) == set()
    assert set(UNREACHABLE_ERRORS) < set(ALL_ERRORS)
    assert coverage.failed > 0, "some configurations are refused"


@pytest.mark.slow
def test_every_request_meets_every_state(coverage: Coverage) -> None:
    states = {state for _, state in coverage.requests}
    assert states == {"no group", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}
    kinds = {kind for kind, _ in coverage.requests}
    assert len(kinds) == 7
    assert {(kind, state) for kind in kinds for state in states} == set(coverage.requests)


def test_every_step_of_streams_groups_is_drawn(streams: list[Script]) -> None:
    drawn = {step["op"] for script in streams for step in script["steps"]}
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
        name for script in streams for step in script["steps"] if step["op"] == "streams" for name in step
    }
    assert fields >= {"task_offsets", "task_end_offsets", "instance", "endpoint", "shutdown", "tags", "rack"}


@pytest.mark.slow
def test_scripts_of_streams_groups_reach_every_rule_and_every_state(streams: list[Script]) -> None:
    coverage = Coverage()
    for script in streams:
        answer = our_answer(script, coverage.watch, Compatibility.KAFKA_4_4_0)
        coverage.count_answer(len(script["steps"]), answer)
    rules = RULES_BY_KIND["streams"]
    reached = set(coverage.answers)
    assert {(kind, error) for kind, errors in rules.items() for error in errors} - reached == set()
    states = {state for kind, state in coverage.requests if kind == "StreamsGroupHeartbeat"}
    kinds = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable")
    assert states >= {f"streams {state}" for state in kinds}
    assert len(coverage.reconciliations) >= 9

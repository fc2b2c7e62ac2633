"""What simulating a scenario builds: the first rows, and which steps and heartbeats its world has."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.world import simulation
from groupstorm.trace.rows import event_name
from tests.storms.storms_in_memory import FIXED, START, MemorySink, Storm, scenario, storm

QUIET: dict[str, Any] = {
    **FIXED,
    "members": 1,
    "partitions": 2,
    "record_rate": 0,
    "metadata.max.age.ms": 1_000,
}


def first(ran: Storm, count: int) -> list[str]:
    return [event_name(event.__class__) for _, _, event in ran.rows[:count]]


def test_a_run_of_plain_consumers_has_steps_of_topics_and_the_network() -> None:
    create = {"at_ms": 2_000, "do": "create-topic", "topic": "topic-0", "partitions": 3}
    ran = storm(scenario([START, create], **QUIET))
    assert first(ran, 2) == ["scenario_started", "step_taken"]
    assert event_name(ran.rows[-1][2].__class__) == "scenario_ended"
    assert [event.partitions for _, event in ran.events("partitions_created")] == [("topic-0-2",)]
    assert not ran.events("tasks_created")


def test_a_run_returns_the_figures_of_its_rows() -> None:
    """Its member joins in one round."""
    assert storm(scenario([START], **QUIET)).figures.generations == 1


def test_a_run_of_an_application_names_its_tasks_first_and_has_steps_of_its_instances() -> None:
    """A task for each of two partitions. The host's instance is killed at 2 s."""
    steps = [START, {"at_ms": 2_000, "do": "lose-host", "members": [0]}]
    ran = storm(scenario(steps, **QUIET, application="streams", state_bytes=0))
    assert first(ran, 3) == ["scenario_started", "tasks_created", "step_taken"]
    [(_, created)] = ran.events("tasks_created")
    assert len(created.tasks) == 2
    [(lost_us, lost)] = ran.events("step_taken", cause="lose-host")
    assert (lost_us, lost.member) == (2_000_000, "instance-0")


def test_a_step_of_real_brokers_is_refused_before_anything_happens() -> None:
    steps = [START, {"at_ms": 2_000, "do": "pause-brokers", "for_ms": 1}]
    resolved = scenario(steps, **QUIET).resolve(None, 1, {})
    sink = MemorySink()
    with pytest.raises(InputError, match="2: do: pause-brokers: a step of groupstorm chaos only"):
        simulation.simulate(resolved, (), sink)
    assert sink.rows == []


def test_heartbeats_are_simulated_one_by_one_only_if_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin, exact = simulation._begin, []

    def begun(environment: Any, assignors: Any) -> Any:
        exact.append(environment.exact)
        return begin(environment, assignors)

    monkeypatch.setattr(simulation, "_begin", begun)
    resolved = scenario([START], **QUIET).resolve(None, 1, {})
    simulation.simulate(resolved, chosen_assignors(resolved), MemorySink())
    simulation.simulate(resolved, chosen_assignors(resolved), MemorySink(), exact=True)
    assert exact == [False, True]

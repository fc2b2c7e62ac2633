"""Scenarios for a service of one's own: which steps and settings it can be put through."""

from __future__ import annotations

import pytest

from groupstorm.chaos.run import check_scenario, needs_proxy
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import run_in_memory
from groupstorm.storms.scenario.files import ResolvedScenario, parse
from groupstorm.storms.scenario.steps import CHAOS_STEPS, KINDS_BY_NAME


def scenario(steps: str, settings: str = "members: 2") -> ResolvedScenario:
    text = f"settings: {{{settings}}}\nsteps:\n  - {{at_ms: 0, do: start}}\n  - {{at_ms: 1s, {steps}}}\n"
    return parse(text, "yaml", "f").resolve(None, 0, {})


@pytest.mark.parametrize(
    "steps",
    [
        "do: rolling-restart",
        "do: pause, members: [0], for_ms: 1s",
        "do: pause-brokers, for_ms: 1s",
        "do: slow-requests, for_ms: 1s, delay_ms: 10, api: Fetch",
        "do: fail-requests, api: Heartbeat, error: NOT_COORDINATOR",
    ],
)
def test_what_processes_and_brokers_can_do(steps: str) -> None:
    check_scenario(scenario(steps), on_emulator=False)


@pytest.mark.parametrize(
    ("steps", "settings", "said"),
    [
        ("do: busy, members: [0], for_ms: 1s", "members: 2", "steps: 2: do: busy: not for a service"),
        ("do: add-partitions, topic: topic-0, partitions: 9", "members: 2", "do: add-partitions: not for"),
        ("do: rolling-restart, settings: {session.timeout.ms: 9000}", "members: 2", "has its own settings"),
        ("do: add", "members: 51", "members: 51: expected at most 50 processes"),
        ("do: add", "drain_ms: 5", "drain_ms: expected 0"),
    ],
)
def test_what_only_emulated_members_can_do(steps: str, settings: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_scenario(scenario(steps, settings), on_emulator=True)


def test_a_coordinator_moves_on_the_emulator_alone() -> None:
    moving = scenario("do: coordinator-failover, for_ms: 1s")
    check_scenario(moving, on_emulator=True)
    with pytest.raises(InputError, match="steps: 2: do: coordinator-failover: expected --on emulator"):
        check_scenario(moving, on_emulator=False)


@pytest.mark.parametrize(
    ("steps", "needed"),
    [
        ("do: pause, members: [0], for_ms: 1s", False),
        ("do: disconnect, members: [0], for_ms: 1s", True),
        ("do: pause-brokers, for_ms: 1s", True),
    ],
)
def test_real_brokers_get_a_proxy_for_faults_of_connections_and_brokers(steps: str, needed: bool) -> None:
    assert needs_proxy(scenario(steps)) == needed


@pytest.mark.parametrize("do", sorted(CHAOS_STEPS))
def test_faults_of_brokers_are_refused_in_virtual_time(do: str) -> None:
    fields = {"for_ms": "1s", "delay_ms": "10", "api": "Fetch", "error": "NOT_COORDINATOR"}
    named = ", ".join(f"{name}: {fields[name]}" for name in sorted(KINDS_BY_NAME[do].required))
    with pytest.raises(InputError, match=f"steps: 2: do: {do}: a step of groupstorm chaos only"):
        run_in_memory(scenario(f"do: {do}, {named}"))

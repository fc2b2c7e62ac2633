"""The steps that replace processes: which ones, in which order, under which names, how many at once.

A pod polls 10 s after its start, is available 5 s later, and is gone 2 s after SIGTERM.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.deployments.deployment_steps import DeploymentSteps
from groupstorm.storms.scenario.steps import Step
from tests.storms.deployments.test_autoscaler_by_hand import Fleet

PODS: dict[str, Any] = {"deployment": "deployment"}
STATEFUL: dict[str, Any] = {"deployment": "statefulset"}


class Steps:
    """A fleet and the handlers of its steps."""

    def __init__(self, count: int, **settings: Any) -> None:
        self.fleet = Fleet(count, **settings)
        self._handlers = DeploymentSteps(self.fleet).handlers

    def take(self, do: str, second: float, **fields: Any) -> list[str]:
        """What happens from the step until ``second``."""
        self._handlers[do](Step(0, do, **fields))
        return self.fleet.until(second)

    def pods(self) -> list[str]:
        return sorted(self.fleet.pods)


def test_every_kind_of_step_has_a_handler() -> None:
    kinds = {"rolling-restart", "canary", "recreate", "blue-green", "drain-node", "autoscale"}
    assert set(DeploymentSteps(Fleet(1)).handlers) == kinds


# --- rolling updates


def test_a_deployment_gives_the_pods_of_every_revision_new_names() -> None:
    steps = Steps(2, max_unavailable=2, **PODS)
    assert steps.take("rolling-restart", 14) == [
        "0 rolling-restart 2 processes are replaced, ordinal",
        "0 stop p0",
        "0 stop p1",
        "0 start p0-v2",
        "0 start p1-v2",
    ]
    assert steps.fleet.until(60) == ["15 rollout-complete rolling-restart: after 15.0 s"]
    assert steps.pods() == ["p0-v2", "p1-v2"]
    steps.take("rolling-restart", 120)
    assert steps.pods() == ["p0-v3", "p1-v3"]


def test_processes_keep_their_names_and_go_in_the_chosen_order() -> None:
    steps = Steps(2, order="reverse")
    assert steps.take("rolling-restart", 60) == [
        "0 rolling-restart 2 processes are replaced, reverse",
        "0 stop p1",
        "2 start p1",
        "17 stop p0",
        "19 start p0",
        "34 rollout-complete rolling-restart: after 34.0 s",
    ]


def test_a_stateful_set_replaces_the_ordinals_from_its_partition_on_highest_first() -> None:
    steps = Steps(4, order="ordinal", update_partition=2, **STATEFUL)
    assert steps.take("rolling-restart", 60) == [
        "0 rolling-restart 2 processes are replaced, reverse",
        "0 stop p3",
        "2 start p3",
        "17 stop p2",
        "19 start p2",
        "34 rollout-complete rolling-restart: after 34.0 s",
    ]


def test_the_limits_of_a_deployment_are_shares_of_all_pods() -> None:
    """30 % of 4: two may run beside them (rounded up), one may be missing (rounded down)."""
    steps = Steps(4, max_surge="30%", max_unavailable="30%", **PODS)
    assert steps.take("rolling-restart", 9)[1:] == [
        "0 start p0-v2",
        "0 start p1-v2",
        "0 stop p0",
        "0 start p2-v2",
    ]


def test_the_limit_of_a_stateful_set_is_a_share_of_all_pods_rounded_up() -> None:
    """30 % of 4 are two, although the partition leaves only three to replace."""
    steps = Steps(4, max_unavailable="30%", update_partition=1, **STATEFUL)
    assert steps.take("rolling-restart", 1)[1:] == ["0 stop p3", "0 stop p2"]


@pytest.mark.parametrize(
    ("settings", "started_s", "lines"),
    [
        (PODS, 0, ["0 stop p0", "0 start p0-v2", "3 stop p1", "3 start p1-v2"]),
        ({}, 2, ["0 stop p0", "2 start p0", "5 stop p1", "7 start p1"]),
    ],
)
def test_a_step_gives_the_durations_of_the_first_successors(
    settings: dict[str, Any], started_s: int, lines: list[str]
) -> None:
    """p0's successor polls after 1 s and is available 2 s later, p1's as drawn: 15 s."""
    steps = Steps(2, **settings)
    ended_s = 2 * (started_s + 15) - 12
    assert steps.take("rolling-restart", 60, start_ms=(1_000,), ready_ms=(2_000,))[1:] == [
        *lines,
        f"{ended_s} rollout-complete rolling-restart: after {ended_s}.0 s",
    ]


# --- canaries


def test_a_canary_of_a_deployment_replaces_its_count_and_the_others_after_its_pause() -> None:
    steps = Steps(3, **PODS)
    assert steps.take("canary", 15, count=1, for_ms=100_000) == [
        "0 canary 3 processes are replaced, ordinal",
        "0 stop p0",
        "0 start p0-v2",
        "15 canary 1 pods are replaced; pause",
    ]
    assert steps.fleet.until(114) == []
    assert steps.fleet.until(115) == ["115 stop p1", "115 start p1-v2"]


def test_a_canary_in_place_replaces_its_count_and_the_others_after_its_pause() -> None:
    steps = Steps(3)
    assert steps.take("canary", 36, count=2, for_ms=100_000)[-2:] == [
        "19 start p1",
        "34 canary 1 processes are still to be replaced; pause",
    ]
    assert steps.fleet.until(133) == []
    assert steps.fleet.until(134) == ["134 stop p2"]


# --- all at once


@pytest.mark.parametrize(
    ("settings", "names"), [(PODS, ["p0-v2", "p1-v2"]), (STATEFUL, ["p0", "p1"]), ({}, ["p0", "p1"])]
)
def test_recreate_gives_new_names_to_a_deployments_pods_only(
    settings: dict[str, Any], names: list[str]
) -> None:
    steps = Steps(2, **settings)
    assert steps.take("recreate", 60) == [
        "0 recreate 2 processes are replaced",
        "0 stop p0",
        "0 stop p1",
        *(f"2 start {name}" for name in names),
        "17 rollout-complete recreate: after 17.0 s",
    ]
    assert steps.pods() == names


@pytest.mark.parametrize("settings", [PODS, {}])
def test_blue_green_starts_pods_under_new_names_in_the_chosen_order(settings: dict[str, Any]) -> None:
    steps = Steps(2, order="reverse", **settings)
    assert steps.take("blue-green", 60) == [
        "0 blue-green 2 processes are replaced",
        "0 start p1-v2",
        "0 start p0-v2",
        "15 stop p1",
        "15 stop p0",
        "17 rollout-complete blue-green: after 17.0 s",
    ]
    steps.take("blue-green", 120)
    assert steps.pods() == ["p0-v3", "p1-v3"]


# --- nodes


def test_a_node_is_drained_of_the_named_pods() -> None:
    steps = Steps(3, **PODS)
    assert steps.take("drain-node", 60, members=(1,)) == [
        "0 drain-node 1 pods are evicted, 1 at once",
        "0 stop p1",
        "0 start p1-v2",
        "15 rollout-complete drain-node: after 15.0 s",
    ]


def test_a_drain_that_names_no_pods_takes_all_within_a_share_of_all_rounded_up() -> None:
    """30 % of 4 are two."""
    steps = Steps(4, disruption_budget="30%", **PODS)
    assert steps.take("drain-node", 1) == [
        "0 drain-node 4 pods are evicted, 2 at once",
        "0 stop p0",
        "0 start p0-v2",
        "0 stop p1",
        "0 start p1-v2",
    ]


@pytest.mark.parametrize("settings", [STATEFUL, {}])
def test_an_evicted_pod_keeps_its_name_outside_of_a_deployment(settings: dict[str, Any]) -> None:
    steps = Steps(2, **settings)
    assert steps.take("drain-node", 4, members=(0,))[1:] == ["0 stop p0", "2 start p0"]


# --- autoscalers


def test_an_autoscaler_works_for_the_time_of_its_step() -> None:
    steps = Steps(1, autoscaler="none")
    assert steps.take("autoscale", 29, for_ms=30_000) == []
    assert steps.fleet.pending == 1
    steps.fleet.until(30)
    assert steps.fleet.pending == 0

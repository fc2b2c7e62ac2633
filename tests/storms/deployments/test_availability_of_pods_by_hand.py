"""When a pod is available, and what begins or ends at that very moment.

A pod polls 10 s after its start, is available 5 s later, and is gone 2 s after SIGTERM.
"""

from __future__ import annotations

import pytest

from groupstorm.storms.deployments.deployment import DeploymentRollout
from groupstorm.storms.deployments.in_place import InPlaceRollout
from groupstorm.storms.deployments.limits import Limits
from groupstorm.storms.deployments.node_drain import NodeDrain
from groupstorm.storms.deployments.readiness import await_available
from groupstorm.storms.deployments.rollout import Rollout, new_pod_name
from tests.storms.deployments.test_autoscaler_by_hand import SECOND, Fleet


def test_a_pod_is_available_when_its_probe_and_its_least_time_are_over() -> None:
    """5 s and minReadySeconds, not a microsecond later."""
    fleet = Fleet(1, min_ready_ms=3_000)
    found: list[int] = []
    await_available(fleet, fleet.pods["p0"], lambda: found.append(fleet.clock.now_us))
    fleet.until(100)
    assert found == [8 * SECOND]


def test_a_pod_without_a_probe_is_available_before_it_polls() -> None:
    """It runs at once, and is available 5 s later; each polls 10 s after its start."""
    fleet = Fleet(2, ready_when="runs")
    old = list(fleet.pods.values())
    DeploymentRollout(fleet, "rolling-restart", old, Limits(1, 0), 2).advance()
    assert fleet.until(9) == ["0 start p0-v2", "5 stop p0", "5 start p1-v2"]
    assert list(fleet.pods) == ["p1"]
    assert fleet.until(60) == ["10 stop p1", "10 rollout-complete rolling-restart: after 10.0 s"]
    assert sorted(fleet.pods) == ["p0-v2", "p1-v2"]


@pytest.mark.parametrize("ready_when", ["polls", "runs"])
def test_a_rollout_hears_once_of_a_pod_that_is_available(ready_when: str) -> None:
    fleet = Fleet(0, ready_when=ready_when)
    found: list[int] = []
    Rollout(fleet, "rolling-restart").start_pod(0, "p0", lambda: found.append(fleet.clock.now_us))
    fleet.until(100)
    assert found == [(15 if ready_when == "polls" else 5) * SECOND]


def test_a_deployment_whose_old_pods_are_gone_is_complete_with_its_last_new_pod() -> None:
    """Both old pods may be missing at once; of the new ones p1-v2 takes 40 s longer."""
    fleet = Fleet(2)
    given = {0: (10_000, 5_000), 1: (10_000, 45_000)}
    old = list(fleet.pods.values())
    DeploymentRollout(fleet, "rolling-restart", old, Limits(0, 2), 2, given=given).advance()
    assert fleet.until(54)[2:] == ["0 start p0-v2", "0 start p1-v2"]
    assert fleet.pending == 1
    assert fleet.until(60) == ["55 rollout-complete rolling-restart: after 55.0 s"]


def test_a_canary_of_a_deployment_without_a_pause_goes_on_in_the_same_moment() -> None:
    fleet = Fleet(2)
    DeploymentRollout(fleet, "canary", list(fleet.pods.values()), Limits(0, 1), 2, canary=1).advance()
    fleet.until(14)
    assert fleet.until(15) == [
        "15 canary 1 pods are replaced; pause",
        "15 stop p1",
        "15 start p1-v2",
    ]


def test_a_canary_in_place_without_a_pause_goes_on_in_the_same_moment() -> None:
    fleet = Fleet(2)
    InPlaceRollout(fleet, "canary", list(fleet.pods.values()), Limits(0, 1), canary=1).advance()
    fleet.until(16)
    assert fleet.until(17) == [
        "17 canary 1 processes are still to be replaced; pause",
        "17 stop p1",
    ]


def test_a_drain_asks_every_five_seconds_for_an_eviction_that_is_refused() -> None:
    """p0-v2 is available at 12 s: the next time to ask is 15 s, not a microsecond later."""
    fleet = Fleet(2)
    fleet.takes_s["ready_ms"] = 2
    pods = list(fleet.pods.values())
    NodeDrain(fleet, "drain-node", pods, 1, lambda name: new_pod_name(name, 2)).advance()
    assert fleet.until(14) == ["0 stop p0", "0 start p0-v2"]
    assert fleet.until(15) == ["15 stop p1", "15 start p1-v2"]

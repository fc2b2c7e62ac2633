"""What counts as progress of a rollout whose deadline is 60 s, so that it is not reported as stuck.

A pod polls 10 s after its start and is available 5 s later. How long it takes from SIGTERM until it is gone
each test says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupstorm.storms.deployments.deployment import DeploymentRollout
from groupstorm.storms.deployments.in_place import InPlaceRollout
from groupstorm.storms.deployments.limits import Limits
from groupstorm.storms.deployments.node_drain import NodeDrain
from groupstorm.storms.deployments.whole_fleet import WholeFleetRollout
from tests.storms.deployments.test_autoscaler_by_hand import SECOND, Fleet

ONE_MISSING, ONE_MORE = Limits(0, 1), Limits(1, 0)


class Slow(Fleet):
    """A fleet whose pods are gone so many seconds after SIGTERM."""

    def __init__(self, *gone_s: int, **settings: Any) -> None:
        super().__init__(len(gone_s), progress_deadline_ms=60_000, **settings)
        self.old = list(self.pods.values())
        self._gone_s = {pod.name: seconds for pod, seconds in zip(self.old, gone_s, strict=True)}

    def terminate(self, process: Any, do: str, then: Callable[[], None] | None) -> None:
        self.note(f"stop {process.name}")

        def gone() -> None:
            process.crash()
            if then is not None:
                then()

        self.clock.after(self._gone_s[process.name] * SECOND, gone)


def named(name: str) -> str:
    return f"{name}-v2"


# --- pods that are gone


def test_recreate_makes_progress_with_each_pod_that_is_gone() -> None:
    """p0 is gone at 50 s, p1 at 100 s: before 50 + 60 s."""
    fleet = Slow(50, 100)
    WholeFleetRollout(fleet, "recreate", fleet.old, named).recreate()
    assert fleet.until(200)[2:] == [
        "100 start p0-v2",
        "100 start p1-v2",
        "115 rollout-complete recreate: after 115.0 s",
    ]


def test_a_rollout_in_place_makes_progress_when_the_process_is_gone_that_it_replaces() -> None:
    """At 50 s; its successor is available at 65 s."""
    fleet = Slow(50)
    InPlaceRollout(fleet, "rolling-restart", fleet.old, ONE_MISSING).advance()
    assert fleet.until(200) == [
        "0 stop p0",
        "50 start p0",
        "65 rollout-complete rolling-restart: after 65.0 s",
    ]


def test_a_rollout_in_place_makes_progress_when_the_process_is_gone_whose_successor_runs() -> None:
    """p0-next is available at 15 s, p0 gone at 65 s, p1-next available at 80 s: more than 15 + 60 s."""
    fleet = Slow(50, 50)
    InPlaceRollout(fleet, "rolling-restart", fleet.old, ONE_MORE).advance()
    assert fleet.until(200) == [
        "0 start p0-next",
        "15 stop p0",
        "65 start p1-next",
        "80 stop p1",
        "130 rollout-complete rolling-restart: after 130.0 s",
    ]


def test_a_rollout_of_a_deployment_makes_progress_when_an_old_pod_is_gone() -> None:
    """p0 is gone at 55 s, p0-v2 available at 100 s: before 55 + 60 s."""
    fleet = Slow(55)
    fleet.takes_s["ready_ms"] = 90
    DeploymentRollout(fleet, "rolling-restart", fleet.old, ONE_MISSING, 2).advance()
    assert fleet.until(200)[2:] == ["100 rollout-complete rolling-restart: after 100.0 s"]


def test_a_drain_makes_progress_when_an_evicted_pod_is_gone() -> None:
    fleet = Slow(50)
    NodeDrain(fleet, "drain-node", fleet.old, 1, None).advance()
    assert fleet.until(200) == [
        "0 stop p0",
        "50 start p0",
        "65 rollout-complete drain-node: after 65.0 s",
    ]


def test_a_drain_makes_progress_with_each_eviction() -> None:
    """p0-v2 is available at 12 s and p1-v2 at 73 s, more than a minute later; p1 was evicted at 15 s."""
    fleet = Slow(200, 200)
    fleet.takes_s["ready_ms"] = 2
    NodeDrain(fleet, "drain-node", fleet.old, 1, named).advance()
    assert fleet.until(14) == ["0 stop p0", "0 start p0-v2"]
    fleet.takes_s["ready_ms"] = 48
    assert fleet.until(150) == [
        "15 stop p1",
        "15 start p1-v2",
        "73 rollout-complete drain-node: after 73.0 s",
    ]


# --- pauses


def canary(fleet: Slow, in_place: bool) -> None:
    """Replaces one pod, and waits for 100 s before it replaces the others."""
    pause_us = 100 * SECOND
    if in_place:
        InPlaceRollout(fleet, "canary", fleet.old, ONE_MISSING, 1, pause_us).advance()
    else:
        DeploymentRollout(fleet, "canary", fleet.old, ONE_MISSING, 2, 1, pause_us).advance()


@pytest.mark.parametrize("in_place", [False, True])
def test_a_pause_that_is_longer_than_the_deadline_is_no_lack_of_progress(in_place: bool) -> None:
    """The first pod is available at 15 s, in place at 17 s, since the old one is gone before it starts."""
    fleet = Slow(2, 2)
    canary(fleet, in_place)
    begun_s = 17 if in_place else 15
    fleet.until(begun_s)
    assert fleet.until(begun_s + 99) == []
    assert fleet.pending == 1, "the run waits for the pause"
    ended_s = 2 * begun_s + 100
    assert fleet.until(500)[-1] == f"{ended_s} rollout-complete canary: after {ended_s}.0 s"
    assert fleet.pending == 0


def test_an_old_pod_that_is_gone_during_a_pause_does_not_end_the_pause() -> None:
    """p0-v2 is available at 15 s, and p0 gone at 17 s: more than a minute before the pause is over."""
    fleet = Slow(2, 2)
    DeploymentRollout(fleet, "canary", fleet.old, ONE_MORE, 2, 1, 100 * SECOND).advance()
    assert fleet.until(500) == [
        "0 start p0-v2",
        "15 stop p0",
        "15 canary 1 pods are replaced; pause",
        "115 start p1-v2",
        "130 stop p1",
        "130 rollout-complete canary: after 130.0 s",
    ]


@pytest.mark.parametrize("in_place", [False, True])
def test_the_deadline_counts_anew_when_a_pause_is_over(in_place: bool) -> None:
    """A minute after the pause nothing has happened but that p1 got SIGTERM."""
    fleet = Slow(2, 200)
    canary(fleet, in_place)
    over_s = 117 if in_place else 115
    fleet.until(over_s - 1)
    fleet.takes_s["start_ms"] = 500
    assert fleet.until(over_s)[:1] == [f"{over_s} stop p1"]
    assert fleet.until(over_s + 59) == []
    assert fleet.until(over_s + 60) == [f"{over_s + 60} rollout-stuck canary: no progress for 60 s"]

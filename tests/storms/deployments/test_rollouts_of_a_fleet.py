"""Rollouts over a fleet without a group, whose pods are available 15 s after their start.

A pod polls 10 s after its start, is available 5 s later, and is gone 2 s after SIGTERM. The run waits for a
rollout until it is complete or stuck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from groupstorm.storms.deployments.deployment import DeploymentRollout
from groupstorm.storms.deployments.in_place import InPlaceRollout
from groupstorm.storms.deployments.limits import Limits
from groupstorm.storms.deployments.node_drain import NodeDrain
from groupstorm.storms.deployments.readiness import await_available, consumers_of
from groupstorm.storms.deployments.rollout import given_durations, new_pod_name, processes_in_order
from groupstorm.storms.deployments.whole_fleet import WholeFleetRollout
from groupstorm.storms.scenario.steps import Step
from tests.storms.deployments.test_autoscaler_by_hand import SECOND, Fleet

ONE_MISSING = Limits(0, 1)


def pods(fleet: Fleet) -> list[Any]:
    return list(fleet.pods.values())


def second(name: str) -> str:
    return new_pod_name(name, 2)


# --- all at once


def lines(second: int, what: str, names: str) -> list[str]:
    return [f"{second} {what} {name}" for name in names.split()]


def test_recreate_starts_the_new_pods_when_the_last_old_one_is_gone() -> None:
    fleet = Fleet(3)
    WholeFleetRollout(fleet, "recreate", pods(fleet), second).recreate()
    assert fleet.until(16) == [*lines(0, "stop", "p0 p1 p2"), *lines(2, "start", "p0-v2 p1-v2 p2-v2")]
    assert fleet.pending == 1
    assert fleet.until(1_000) == ["17 rollout-complete recreate: after 17.0 s"]
    assert fleet.pending == 0
    assert sorted(fleet.pods) == ["p0-v2", "p1-v2", "p2-v2"]


def test_blue_green_stops_the_old_pods_when_the_last_new_one_is_available() -> None:
    fleet = Fleet(3)
    WholeFleetRollout(fleet, "blue-green", pods(fleet), second).blue_green()
    assert fleet.until(14) == lines(0, "start", "p0-v2 p1-v2 p2-v2")
    assert fleet.until(60) == [
        *lines(15, "stop", "p0 p1 p2"),
        "17 rollout-complete blue-green: after 17.0 s",
    ]


@pytest.mark.parametrize("do", ["recreate", "blue_green"])
def test_nobody_is_replaced_at_once(do: str) -> None:
    fleet = Fleet(0)
    getattr(WholeFleetRollout(fleet, do, [], second), do)()
    assert fleet.until(2_000) == [f"0 rollout-complete {do}: after 0.0 s"]
    assert fleet.pending == 0


# --- one by one


def test_a_canary_of_a_deployment_pauses_when_its_pods_are_available() -> None:
    fleet = Fleet(3)
    rollout = DeploymentRollout(
        fleet, "canary", pods(fleet), Limits(1, 0), 2, canary=1, pause_us=100 * SECOND
    )
    rollout.advance()
    assert fleet.until(114) == ["0 start p0-v2", "15 stop p0", "15 canary 1 pods are replaced; pause"]
    assert fleet.until(131) == ["115 start p1-v2", "130 stop p1", "130 start p2-v2"]
    assert fleet.until(200) == ["145 stop p2", "145 rollout-complete canary: after 145.0 s"]


def test_a_canary_of_all_pods_does_not_pause() -> None:
    for canary in (3, 4):
        fleet = Fleet(3)
        DeploymentRollout(fleet, "canary", pods(fleet), Limits(3, 0), 2, canary, 100 * SECOND).advance()
        assert fleet.until(16)[-1] == "15 rollout-complete canary: after 15.0 s"


def test_of_old_pods_those_that_are_gone_count_as_stopped_first() -> None:
    fleet = Fleet(3)
    old = pods(fleet)
    DeploymentRollout(fleet, "rolling-restart", old, ONE_MISSING, 2).advance()
    assert fleet.until(9) == ["0 stop p0", "0 start p0-v2"]
    old[2].crash()
    assert fleet.until(16)[0] == "15 stop p2"


def test_a_process_that_keeps_its_name_starts_when_the_old_one_is_gone() -> None:
    fleet = Fleet(2)
    InPlaceRollout(fleet, "rolling-restart", pods(fleet), ONE_MISSING).advance()
    assert fleet.until(60) == [
        "0 stop p0",
        "2 start p0",
        "17 stop p1",
        "19 start p1",
        "34 rollout-complete rolling-restart: after 34.0 s",
    ]


def test_a_successor_of_a_name_of_its_own_starts_first() -> None:
    fleet = Fleet(2)
    InPlaceRollout(fleet, "rolling-restart", pods(fleet), Limits(1, 0)).advance()
    assert fleet.until(60) == [
        "0 start p0-next",
        "15 stop p0",
        "17 start p1-next",
        "32 stop p1",
        "34 rollout-complete rolling-restart: after 34.0 s",
    ]


def test_a_canary_in_place_pauses_when_its_successors_are_available() -> None:
    fleet = Fleet(3)
    InPlaceRollout(fleet, "canary", pods(fleet), ONE_MISSING, canary=1, pause_us=100 * SECOND).advance()
    assert fleet.until(116) == [
        "0 stop p0",
        "2 start p0",
        "17 canary 2 processes are still to be replaced; pause",
    ]
    assert fleet.until(118) == ["117 stop p1"]
    assert fleet.until(300)[-1] == "151 rollout-complete canary: after 151.0 s"


def test_a_step_may_give_the_durations_of_the_first_processes() -> None:
    """p0 takes 1 s and 2 s; p1 takes 200 s and what is drawn; p2 both as drawn."""
    fleet = Fleet(3)
    step = Step(0, "rolling-restart", start_ms=(1_000, 200_000), ready_ms=(2_000,))
    old = pods(fleet)
    given = given_durations(step, old)
    assert given == {0: (1_000, 2_000), 1: (200_000, None)}
    InPlaceRollout(fleet, "rolling-restart", old, ONE_MISSING, given=given).advance()
    assert fleet.until(300)[2:] == [
        "5 stop p1",
        "7 start p1",
        "212 stop p2",
        "214 start p2",
        "229 rollout-complete rolling-restart: after 229.0 s",
    ]


# --- a node


def test_a_node_is_drained_within_the_budget_and_asks_again_every_five_seconds() -> None:
    fleet = Fleet(3)
    NodeDrain(fleet, "drain-node", pods(fleet)[:2], 1, second).advance()
    assert fleet.until(14) == ["0 stop p0", "0 start p0-v2"]
    assert fleet.until(60) == [
        "15 stop p1",
        "15 start p1-v2",
        "30 rollout-complete drain-node: after 30.0 s",
    ]


def test_a_stateful_sets_pod_starts_again_when_the_evicted_one_is_gone() -> None:
    fleet = Fleet(2)
    NodeDrain(fleet, "drain-node", pods(fleet), 2, None).advance()
    assert fleet.until(60) == [
        "0 stop p0",
        "0 stop p1",
        "2 start p0",
        "2 start p1",
        "17 rollout-complete drain-node: after 17.0 s",
    ]


def test_a_node_without_pods_is_drained_at_once() -> None:
    fleet = Fleet(2)
    NodeDrain(fleet, "drain-node", [], 1, second).advance()
    assert fleet.until(60) == ["0 rollout-complete drain-node: after 0.0 s"]
    assert fleet.pending == 0


# --- progress

SLOW: dict[str, Any] = {"progress_deadline_ms": 60_000}


def stuck(fleet: Fleet, old: Sequence[Any] | None = None) -> list[str]:
    """What a rollout says whose new pod gets available 75 s after its start."""
    fleet.takes_s["ready_ms"] = 65
    chosen = pods(fleet) if old is None else old
    DeploymentRollout(fleet, "rolling-restart", chosen, Limits(1, 0), 2).advance()
    return [line for line in fleet.until(74) if "rollout" in line]


def test_a_rollout_is_stuck_when_nothing_has_happened_until_its_deadline() -> None:
    """A deadline is 60 s from the last progress; what happens later goes on, and can be stuck again."""
    fleet = Fleet(2, **SLOW)
    assert stuck(fleet) == ["60 rollout-stuck rolling-restart: no progress for 60 s: p0-v2 is not ready"]
    assert fleet.pending == 0
    assert fleet.until(80) == ["75 stop p0", "75 start p1-v2"]
    assert fleet.pending == 1, "the run waits for it again"
    # p0 is gone at 77 s
    assert fleet.until(137) == ["137 rollout-stuck rolling-restart: no progress for 60 s: p1-v2 is not ready"]
    assert fleet.until(300) == ["150 stop p1", "150 rollout-complete rolling-restart: after 150.0 s"]
    assert fleet.pending == 0


def test_progress_within_the_deadline_puts_it_off() -> None:
    """The pods get available at 45 s and 90 s, the old ones are gone at 47 s and 92 s."""
    fleet = Fleet(2, **SLOW)
    fleet.takes_s["ready_ms"] = 35
    DeploymentRollout(fleet, "rolling-restart", pods(fleet), Limits(1, 0), 2).advance()
    assert fleet.until(200)[-1] == "90 rollout-complete rolling-restart: after 90.0 s"
    assert fleet.pending == 0


def test_a_pod_that_gets_available_is_progress() -> None:
    """Nothing starts or stops between 2 s and the end: p0 is available at 47 s, p1 at 92 s."""
    fleet = Fleet(2, **SLOW)
    given = {0: (10_000, 35_000), 1: (10_000, 80_000)}
    InPlaceRollout(fleet, "rolling-restart", pods(fleet), Limits(0, 2), given=given).advance()
    assert fleet.until(200)[4:] == ["92 rollout-complete rolling-restart: after 92.0 s"]


def test_several_pods_that_are_not_ready_are_counted() -> None:
    fleet = Fleet(2, **SLOW)
    fleet.takes_s["ready_ms"] = 100
    DeploymentRollout(fleet, "rolling-restart", pods(fleet), Limits(2, 0), 2).advance()
    assert fleet.until(60)[-1] == (
        "60 rollout-stuck rolling-restart: no progress for 60 s: each of 2 new pods (p0-v2, ...) is not ready"
    )


def test_a_pod_that_has_not_polled_is_not_blamed() -> None:
    fleet = Fleet(1, **SLOW)
    fleet.takes_s["start_ms"] = 100
    DeploymentRollout(fleet, "rolling-restart", pods(fleet), Limits(1, 0), 2).advance()
    assert fleet.until(60)[-1] == "60 rollout-stuck rolling-restart: no progress for 60 s"


@pytest.mark.parametrize(
    ("count", "partitions", "said"),
    [
        (1, ("t-0",), "p0-v2 gets no partition while the old pod runs (1 partition in all)"),
        (3, ("t-0", "t-1"), "p0-v2 gets no partition while 3 others run (2 partitions in all)"),
    ],
)
def test_a_pod_that_is_ready_with_its_first_partition_may_never_be(
    count: int, partitions: tuple[str, ...], said: str
) -> None:
    fleet = Fleet(count, ready_when="assigned", **SLOW)
    fleet.host.partitions = partitions
    DeploymentRollout(fleet, "rolling-restart", pods(fleet), Limits(1, 0), 2).advance()
    assert fleet.until(61)[-1] == (
        f"60 rollout-stuck rolling-restart: no progress for 60 s: {said}, and so never gets ready"
    )
    fleet.owned["p0-v2"] = 1
    # a probe looks every second, from the first poll() at 10 s on
    assert fleet.until(67)[0] == "67 stop p0"


def test_a_pod_that_owns_something_and_is_not_ready_does_not_wait_for_a_partition() -> None:
    fleet = Fleet(2, ready_when="assigned", **SLOW)
    fleet.takes_s["ready_ms"] = 100
    fleet.owned["p0-v2"] = 1
    DeploymentRollout(fleet, "rolling-restart", pods(fleet), Limits(1, 0), 2).advance()
    assert fleet.until(61)[-1] == "60 rollout-stuck rolling-restart: no progress for 60 s: p0-v2 is not ready"


# --- names, orders, readiness


@pytest.mark.parametrize(
    ("order", "names"), [("ordinal", "p0 p1 p2"), ("reverse", "p2 p1 p0"), ("random", "p1 p2 p0")]
)
def test_the_order_in_which_processes_are_replaced(order: str, names: str) -> None:
    fleet = Fleet(3, order=order)
    fleet.host.processes = {name: fleet.pods[name] for name in ("p2", "p0", "p1")}
    assert [pod.name for pod in processes_in_order(fleet)] == names.split()


def test_a_pods_name_ends_with_its_revision() -> None:
    assert new_pod_name("member-07", 2) == "member-07-v2"
    assert new_pod_name("member-07-v2", 13) == "member-07-v13"


def test_the_consumers_of_an_instance_are_those_of_its_threads() -> None:
    fleet = Fleet(0)
    for name in ("p1", "p1-StreamThread-1", "p1-StreamThread-2", "p10-StreamThread-1", "p10"):
        fleet.pods[name] = Any
    found = [len(consumers_of(fleet.host, _named(name))) for name in ("p1", "p10", "p2")]
    assert found == [3, 2, 0]


def _named(name: str) -> Any:
    pod: Any = type("Named", (), {"name": name})
    return pod


@pytest.mark.parametrize("ready_when", ["polls", "assigned"])
def test_a_pod_that_is_gone_is_never_available(ready_when: str) -> None:
    fleet = Fleet(1, ready_when=ready_when, min_ready_ms=3_000)
    found: list[int] = []
    await_available(fleet, fleet.pods["p0"], lambda: found.append(fleet.clock.now_us // SECOND))
    fleet.owned["p0"] = 1
    fleet.until(20)
    assert found == ([8] if ready_when == "polls" else [9]), "5 s, minReadySeconds, and the next probe"
    await_available(fleet, fleet.pods["p0"], lambda: found.append(-1))
    fleet.until(21)
    fleet.pods["p0"].crash()
    fleet.until(100)
    assert -1 not in found

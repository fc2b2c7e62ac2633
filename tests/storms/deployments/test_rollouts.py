"""Rollouts worked out by hand: who polls for the first time, who gets SIGTERM, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.deployments.pods_over_time import pods_over_time, starts_and_stops
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

BEGIN_US = 60_000_000
BY_HAND = {
    **FIXED, "partition.assignment.strategy": "cooperative-sticky", "poll_interval_ms": 100,
    "start_ms": {"exactly": 10_000}, "ready_ms": {"exactly": 5_000}, "stop_grace_ms": {"exactly": 1_000},
}  # fmt: skip


def rollout(do: str = "rolling-restart", step: dict[str, Any] | None = None, **settings: Any) -> Storm:
    steps = [START, {"at_ms": 60_000, "do": do, **(step or {})}]
    members = {"members": 4, "partitions": 12, **BY_HAND, **settings}
    result = storm(scenario(steps, **members))
    assert result.broken == {}
    return result


def ended(result: Storm) -> tuple[str, int]:
    """Return how the rollout ended, and after how many milliseconds."""
    [(time_us, event)] = [
        found
        for found in result.events("step_taken")
        if found[1].cause in ("rollout-complete", "rollout-stuck")
    ]
    return event.cause, (time_us - BEGIN_US) // 1000


def test_a_stateful_sets_partition_keeps_the_lower_ordinals() -> None:
    result = rollout(deployment="statefulset", update_partition=3)
    assert {pod for _, _, pod in starts_and_stops(result, BEGIN_US)} == {"member-3"}


def test_blue_green_doubles_the_fleet_before_the_old_one_stops() -> None:
    result = rollout("blue-green")
    assert starts_and_stops(result, BEGIN_US) == [
        *((10_000, "polls", f"member-{number}-v2") for number in range(4)),
        *((15_000, "SIGTERM", f"member-{number}") for number in range(4)),
    ]
    assert max(pods.running for pods in pods_over_time(result, BEGIN_US)) == 8


@pytest.mark.parametrize(("kind", "name"), [("deployment", "member-0-v2"), ("processes", "member-0")])
def test_a_canary_pauses_after_its_first_pods(kind: str, name: str) -> None:
    result = rollout("canary", {"count": 1, "for_ms": 700_000}, deployment=kind, max_surge=0)
    moments = starts_and_stops(result, BEGIN_US)
    polls = [(time_ms, pod) for time_ms, what, pod in moments if what == "polls"]
    assert polls[0][1] == name
    assert polls[1][0] - polls[0][0] >= 700_000 + 5_000, "available after 5 s, then the pause"
    assert len(polls) == 4
    assert ended(result)[0] == "rollout-complete", "a pause is not a lack of progress"


@pytest.mark.parametrize(
    ("drain_ms", "crashes", "cause", "removed_ms"),
    [
        # SIGKILL, and no LeaveGroup: 45 s after its last heartbeat
        (40_000, [30_000], "session-expired", None),
        # noticed, drained, commit, LeaveGroup
        (10_000, [], "left", 1_000 + 10_000 + 3),
    ],
)
def test_a_drain_beyond_its_grace_period_ends_with_sigkill(
    drain_ms: int, crashes: list[int], cause: str, removed_ms: int | None
) -> None:
    one: dict[str, Any] = {"deployment": "statefulset", "update_partition": 3}
    result = rollout(drain_ms={"exactly": drain_ms}, termination_grace_ms=30_000, **one)
    assert [(at_us - BEGIN_US) // 1000 for at_us, _ in result.events("member_crashed")] == crashes
    [(removed_us, removed)] = result.events("member_removed")
    assert removed.cause == cause
    assert removed_ms in (None, (removed_us - BEGIN_US) // 1000)


@pytest.mark.parametrize(
    ("hook_ms", "grace_ms", "left_ms"),
    [(8_000, 12_000, 4_000), (11_000, 12_000, 2_000), (15_000, 12_000, 2_000)],
)
def test_a_hook_lasts_no_longer_than_the_grace_and_leaves_two_seconds(
    hook_ms: int, grace_ms: int, left_ms: int
) -> None:
    """The kubelet's minimumGracePeriodInSeconds. The consumer closes 1 s after SIGTERM, or works on."""
    one: dict[str, Any] = {"deployment": "statefulset", "update_partition": 3, "pre_stop_ms": hook_ms}
    one["termination_grace_ms"] = grace_ms
    ended_ms = min(hook_ms, grace_ms)
    [(closed_us, _)] = rollout(**one).events("member_closed")
    assert (closed_us - BEGIN_US) // 1_000 == ended_ms + 1_004
    [(killed_us, _)] = rollout(drain_ms={"exactly": 9_000}, **one).events("member_crashed")
    assert (killed_us - BEGIN_US) // 1_000 == ended_ms + left_ms


def test_static_consumers_of_a_pod_have_ids_of_their_own() -> None:
    """Spring numbers client ids from 0 on, and the ids of static members from 1 on."""
    own: dict[str, Any] = {"members_per_pod": 2, "group.instance.id": "podname", "drain_ms": 2_000}
    result = rollout(deployment="deployment", **own)
    started = {event.member: event.instance for _, event in result.events("member_started")}
    assert started["pod-1-0"] == "pod-1-1"
    assert started["pod-1-v2-1"] == "pod-1-v2-2"
    assert len([one for one in started if one.startswith("pod-1")]) == 4
    paused = {event.member for _, event in result.events("member_paused")}
    assert {"pod-0-0", "pod-0-1"} <= paused


def test_all_threads_of_a_streams_instance_drain() -> None:
    stop = {"at_ms": 300_000, "do": "stop", "members": [1]}
    streams = {"application": "streams", "num.stream.threads": 2, "members": 2, "partitions": 4}
    result = storm(
        scenario(
            [START, stop], **FIXED, **streams, drain_ms={"exactly": 4_000}, stop_grace_ms={"exactly": 500}
        )
    )
    threads = ["instance-1-StreamThread-1", "instance-1-StreamThread-2"]
    paused = [(at_us, event.member, event.duration_us) for at_us, event in result.events("member_paused")]
    assert paused == [(300_500_000, thread, 4_000_000) for thread in threads]
    assert [event.member for _, event in result.events("member_closed")] == threads


def test_a_disruption_budget_in_per_cent_is_rounded_up() -> None:
    """30 % of 4 pods are 2, as Kubernetes rounds a PodDisruptionBudget."""
    result = rollout("drain-node", {"members": [0, 1, 2]}, deployment="deployment", disruption_budget="30%")
    stops = [(time_ms, pod) for time_ms, what, pod in starts_and_stops(result, BEGIN_US) if what == "SIGTERM"]
    assert stops[:2] == [(0, "member-0"), (0, "member-1")]
    assert stops[2][0] > 0


SENTRY: dict[str, Any] = {
    "members": 1, "partitions": 1, "deployment": "deployment", "max_surge": "25%", "max_unavailable": "25%",
    "ready_when": "assigned", "progress_deadline_ms": 600_000,
}  # fmt: skip


def test_a_pod_that_waits_for_the_only_partition_is_stuck_for_ever() -> None:
    """sentry-kubernetes/charts#2238: 25 % of one pod, rounded down, is no pod that may be missing."""
    result = rollout(**SENTRY)
    assert ended(result) == ("rollout-stuck", 600_000)
    [(_, stuck)] = result.events("step_taken", cause="rollout-stuck")
    assert "member-0-v2 gets no partition while the old pod runs (1 partition in all)" in stuck.detail
    assert not result.events("member_closed")


@pytest.mark.parametrize("cure", [{"max_unavailable": 1}, {"max_surge": 0}, {"ready_when": "polls"}])
def test_what_ends_that_deadlock(cure: dict[str, Any]) -> None:
    assert ended(rollout(**{**SENTRY, **cure}))[0] == "rollout-complete"


@pytest.mark.parametrize(
    ("do", "settings", "took_ms"),
    [
        # gone after 50 s, and available after 65 s
        ("recreate", {"deployment": "deployment"}, 65_000),
        ("rolling-restart", {"deployment": "statefulset"}, 65_000),
        ("drain-node", {"deployment": "statefulset"}, 65_000),
        # the successor is available after 90 s, and no other one is needed
        (
            "rolling-restart",
            {"deployment": "deployment", "max_unavailable": 1, "ready_ms": {"exactly": 80_000}},
            90_000,
        ),
        # available at 15 s, gone at 65 s; the second one at 80 s and 130 s
        ("rolling-restart", {"members": 2, "max_surge": 1, "max_unavailable": 0}, 130_000),
    ],
)
def test_an_old_pod_that_is_gone_is_progress(do: str, settings: dict[str, Any], took_ms: int) -> None:
    """It is gone 50 s after SIGTERM. Nothing else happens within the deadline of 60 s."""
    drained = {"members": [0]} if do == "drain-node" else {}
    slow = {"members": 1, "stop_grace_ms": {"exactly": 50_000}, "progress_deadline_ms": 60_000, **settings}
    how, after_ms = ended(rollout(do, drained, **slow))
    assert how == "rollout-complete"
    assert took_ms <= after_ms < took_ms + 10

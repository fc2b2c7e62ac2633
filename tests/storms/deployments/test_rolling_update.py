"""Rounding and decisions of the Deployment controller, against Kubernetes' documented examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.deployments.rolling_update import (
    Limits,
    Replicas,
    deployment_limits,
    pods_to_start,
    pods_to_stop,
    stateful_set_limits,
)
from groupstorm.storms.scenario.quantities import PodCount, parse_pod_count


@pytest.mark.parametrize(
    ("surge", "unavailable", "wanted", "limits"),
    [
        # TestResolveFenceposts in pkg/controller/deployment/util/deployment_util_test.go
        ("0%", "0%", 0, (0, 1)),
        ("39%", "39%", 10, (4, 3)),
        # the documented defaults: 25 % each, surge rounded up, unavailable down
        ("25%", "25%", 1, (1, 0)),
        ("25%", "25%", 3, (1, 0)),
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 60, (15, 15)),
        ("100%", "0", 7, (7, 0)),
        # both come out as nothing: one pod may be missing
        ("0", "25%", 3, (0, 1)),
        (3, 2, 10, (3, 2)),
    ],
)
def test_percentages_of_a_deployment(
    surge: object, unavailable: object, wanted: int, limits: tuple[int, int]
) -> None:
    more, fewer = parse_pod_count(surge), parse_pod_count(unavailable)
    assert more is not None
    assert fewer is not None
    assert deployment_limits(more, fewer, wanted) == limits


@pytest.mark.parametrize(
    ("unavailable", "wanted", "most"), [("25%", 3, 1), ("25%", 10, 2), ("50%", 5, 2), ("0%", 5, 1), (2, 5, 2)]
)
def test_percentages_of_a_stateful_set_are_rounded_down(unavailable: object, wanted: int, most: int) -> None:
    count = parse_pod_count(unavailable)
    assert count is not None
    assert stateful_set_limits(count, wanted) == (0, most)


@pytest.mark.parametrize(
    "written", ["", "%", "-1", "-5%", "25 %", "1.5", "12345%", True, None, -1, 2.5, [], "²"]
)
def test_what_is_no_number_of_pods(written: object) -> None:
    assert parse_pod_count(written) is None


def test_the_example_in_the_controllers_source() -> None:
    """10 replicas, 2 unavailable, 3 surge: 3 new pods, 2 old ones stop, 2 more new ones, then it waits."""
    limits = Limits(3, 2)
    begin = Replicas(10, 10, 10, 10, 0, 0)
    assert pods_to_start(begin, limits) == 3
    surged = begin._replace(new=3)
    assert pods_to_start(surged, limits) == 0
    assert pods_to_stop(surged, limits) == 2
    after = surged._replace(old=8, old_available=8)
    assert pods_to_start(after, limits) == 2
    crashing = after._replace(new=5)
    assert pods_to_stop(crashing, limits) == 0, "13 - 8 - 5 = 0: nothing stops for pods that never get ready"
    assert pods_to_stop(crashing._replace(old_available=7), limits) == 0
    assert pods_to_stop(crashing._replace(new_available=5), limits) == 5


def test_unavailable_old_pods_stop_first_and_do_not_count_as_capacity() -> None:
    now = Replicas(4, 4, old=4, old_available=2, new=1, new_available=0)
    assert pods_to_stop(now, Limits(1, 1)) == 1, "5 - 3 - 1: one of the two that are down anyway"


@given(st.integers(1, 40), st.integers(0, 120), st.integers(0, 120), st.lists(st.booleans(), max_size=200))
def test_a_rollout_keeps_its_limits_and_ends(
    wanted: int, surge: int, unavailable: int, ready: list[bool]
) -> None:
    """Whatever the order in which new pods get available, both limits hold after every decision."""
    limits = deployment_limits(PodCount(surge, True), PodCount(unavailable, True), wanted)
    now = Replicas(wanted, wanted, wanted, wanted, 0, 0)
    turns = iter(ready)
    for _ in range(10 * wanted + 10):
        if start := pods_to_start(now, limits):
            now = now._replace(new=now.new + start)
        elif stop := pods_to_stop(now, limits):
            now = now._replace(old=now.old - stop, old_available=now.old_available - stop)
        elif now.new_available < now.new:
            step = 1 if next(turns, True) else now.new - now.new_available
            now = now._replace(new_available=now.new_available + step)
        else:
            break
        assert now.old + now.new <= wanted + limits.surge
        assert now.old_available + now.new_available >= wanted - limits.unavailable
    assert (now.old, now.new, now.new_available) == (0, wanted, wanted)

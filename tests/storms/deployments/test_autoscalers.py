"""Decisions of the HorizontalPodAutoscaler and KEDA's Kafka scaler, worked out by hand from their rules."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.deployments.autoscaler import (
    HorizontalAutoscaler,
    KafkaTrigger,
    ScalingGains,
    ScalingRules,
    partition_lag,
    recommended,
    scaler_metric,
)
from groupstorm.storms.scenario.quantities import ScalingBehavior, ScalingPolicy
from tests.storms.storms_in_memory import START, scenario, storm


def pods(value: int, period_s: int = 15) -> ScalingPolicy:
    return ScalingPolicy(False, value, period_s * 1000)


def percent(value: int, period_s: int = 15) -> ScalingPolicy:
    return ScalingPolicy(True, value, period_s * 1000)


def behavior(*policies: ScalingPolicy, select: str = "Max") -> ScalingBehavior:
    return ScalingBehavior(policies, select)


DEFAULTS = ScalingRules(
    least=1, most=100, target=100, tolerance_percent=10, up_window_ms=0, down_window_ms=300_000,
    up=behavior(pods(4), percent(100)), down=behavior(percent(100)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "replicas", "wanted"),
    [
        (1000, 10, 10), (1100, 10, 10), (1101, 10, 12), (900, 10, 10), (899, 10, 9), (1, 1, 1), (0, 3, 0),
        (250, 1, 3),
    ],
)  # fmt: skip
def test_the_tolerance_of_ten_per_cent(metric: int, replicas: int, wanted: int) -> None:
    assert recommended(metric, replicas, DEFAULTS) == wanted


def test_scaling_up_at_most_doubles_or_adds_four_in_fifteen_seconds() -> None:
    scaler = HorizontalAutoscaler(DEFAULTS)
    replicas = 1
    found = []
    for second in range(0, 75, 15):
        replicas = scaler.decide(second * 1000, replicas, 100_000)
        found.append(replicas)
    assert found == [5, 10, 20, 40, 80], "1 + 4, then twice as many each time"


def test_scaling_down_waits_for_the_highest_number_of_five_minutes() -> None:
    scaler = HorizontalAutoscaler(DEFAULTS)
    assert scaler.decide(0, 10, 1_000) == 10
    assert scaler.decide(150_000, 10, 500) == 10
    assert scaler.decide(299_000, 10, 200) == 10
    assert scaler.decide(301_000, 10, 200) == 5, "the ten of the beginning have left the window; five is next"
    assert scaler.decide(451_000, 5, 200) == 2


def test_the_number_at_the_beginning_counts_as_a_recommendation() -> None:
    """recordInitialRecommendation: a window is not empty when the autoscaler starts."""
    scaler = HorizontalAutoscaler(DEFAULTS._replace(up_window_ms=60_000))
    assert scaler.decide(0, 2, 1_000) == 2
    assert scaler.decide(60_000, 2, 1_000) == 6
    assert HorizontalAutoscaler(DEFAULTS).decide(0, 10, 100) == 10


@pytest.mark.parametrize(
    ("rules", "metric", "decided"),
    [
        # TestScalingWithRules in pkg/controller/podautoscaler/horizontal_test.go has such cases
        (behavior(pods(4), percent(50)), 100_000, 15),
        (behavior(pods(4), percent(50), select="Min"), 100_000, 14),
        (behavior(pods(4), select="Disabled"), 100_000, 10),
        (behavior(pods(3), percent(50)), 0, 5),
        (behavior(pods(3), percent(50), select="Min"), 0, 7),
        (behavior(percent(15)), 0, 8),
        (behavior(pods(4), select="Disabled"), 0, 10),
    ],
)
def test_the_policies_and_which_of_them_counts(rules: ScalingBehavior, metric: int, decided: int) -> None:
    scaler = HorizontalAutoscaler(DEFAULTS._replace(up=rules, down=rules, down_window_ms=0))
    assert scaler.decide(0, 10, metric) == decided


def test_each_policy_has_its_own_period() -> None:
    rules = behavior(pods(2, 60), pods(5, 600), select="Min")
    scaler = HorizontalAutoscaler(DEFAULTS._replace(down=rules, down_window_ms=0))
    found, replicas = [], 20
    for second in range(0, 660, 30):
        replicas = scaler.decide(second * 1000, replicas, 0)
        found.append(replicas)
    assert found[:6] == [18, 18, 16, 16, 15, 15]
    assert found[19:21] == [15, 13], "two of the five are ten minutes old, and so may go again"


def test_pods_that_came_meanwhile_count_against_those_that_may_go() -> None:
    """Both kinds of events lie between the present and the begin of the period."""
    scaler = HorizontalAutoscaler(DEFAULTS._replace(down=behavior(pods(1, 60)), down_window_ms=0))
    assert scaler.decide(0, 4, 1_000) == 8
    assert scaler.decide(15_000, 8, 0) == 3, "one less than the four of the beginning"


def test_single_pods_count_towards_the_allowance_of_a_period() -> None:
    scaler = HorizontalAutoscaler(DEFAULTS)
    assert scaler.decide(0, 1, 200) == 2
    assert scaler.decide(5_000, 2, 100_000) == 5, "one, and four more"
    down = HorizontalAutoscaler(DEFAULTS._replace(down_window_ms=0, down=behavior(percent(50))))
    assert down.decide(0, 9, 800) == 8
    assert down.decide(5_000, 8, 100) == 4, "half of nine"
    assert down.decide(19_000, 4, 100) == 4
    assert down.decide(20_000, 4, 100) == 2


@pytest.mark.parametrize(
    ("share", "of_a_hundred", "of_nine"), [(100, 200, 18), (50, 150, 14), (33, 133, 13), (3, 104, 13)]
)
def test_a_percentage_is_added_rounded_up_unless_four_pods_are_more(
    share: int, of_a_hundred: int, of_nine: int
) -> None:
    rules = DEFAULTS._replace(up=behavior(pods(4), percent(share)), most=1_000)
    assert HorizontalAutoscaler(rules).decide(0, 100, 100_000) == of_a_hundred
    assert HorizontalAutoscaler(rules).decide(0, 9, 100_000) == of_nine


@pytest.mark.parametrize("metric", [0, 100, 1_000_000])
@pytest.mark.parametrize(("replicas", "decided"), [(1, 2), (202, 200), (500, 200), (0, 0)])
def test_a_fleet_outside_of_its_bounds_goes_to_the_nearest_at_once(
    replicas: int, decided: int, metric: int
) -> None:
    """reconcileAutoscaler: "Current number of replicas above Spec.MaxReplicas", or below MinReplicas. A
    fleet without replicas is left alone."""
    assert HorizontalAutoscaler(DEFAULTS._replace(least=2, most=200)).decide(0, replicas, metric) == decided


@given(st.lists(st.tuples(st.integers(1, 60_000), st.integers(0, 50_000)), max_size=40))
def test_it_stays_within_its_bounds(readings: list[tuple[int, int]]) -> None:
    rules = DEFAULTS._replace(least=2, most=30)
    scaler, replicas, now_ms = HorizontalAutoscaler(rules), 2, 0
    for delay_ms, metric in readings:
        now_ms += delay_ms
        decided = scaler.decide(now_ms, replicas, metric)
        assert 2 <= decided <= 30
        assert decided <= max(2 * replicas, replicas + 4)
        replicas = decided


PLAIN = KafkaTrigger(threshold=10, allow_idle=False, only_with_lag=False, even=False)


@pytest.mark.parametrize(
    ("lags", "trigger", "metric"),
    [
        ([5, 5, 5, 5], PLAIN, 20),
        ([1000, 0, 0, 0], PLAIN, 40),
        ([1000, 0, 0, 0], PLAIN._replace(only_with_lag=True), 10),
        ([1000, 0, 0, 0], PLAIN._replace(allow_idle=True), 1000),
        ([0, 0, 0, 0], PLAIN, 0),
        # six partitions: 1, 2, 3 or 6 consumers share them evenly
        ([7] * 6, PLAIN._replace(even=True), 60),
        ([4] * 6, PLAIN._replace(even=True), 30),
        ([5, 5, 10, 0, 0, 0], PLAIN._replace(even=True), 20),
        ([5, 5, 10, 1, 0, 0], PLAIN._replace(even=True), 30),
        ([20, 19], PLAIN, 20),
        ([10, 19], PLAIN, 29),
        ([1000] * 6, PLAIN._replace(even=True), 60),
        ([0] * 6, PLAIN._replace(even=True), 0),
    ],
)
def test_the_metric_of_the_kafka_scaler(lags: list[int], trigger: KafkaTrigger, metric: int) -> None:
    assert scaler_metric(lags, trigger) == metric


def test_a_partition_without_a_committed_offset_counts_as_one_record() -> None:
    assert (partition_lag(500, -1), partition_lag(500, 480)) == (1, 20)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30), st.integers(1, 500), st.booleans())
def test_never_more_replicas_than_partitions(lags: list[int], threshold: int, only_with_lag: bool) -> None:
    metric = scaler_metric(lags, KafkaTrigger(threshold, False, only_with_lag, False))
    # the cap compares whole quotients, as KEDA does: a remainder rounds up to one replica more
    assert math.ceil(metric / threshold) <= len(lags) + 1
    assert metric // threshold <= (sum(lag > 0 for lag in lags) if only_with_lag else len(lags))


STEPS: list[dict[str, Any]] = [START, {"at_ms": 60_000, "do": "autoscale", "for_ms": 900_000}]
SCALED: dict[str, Any] = {
    "poll_interval_ms": 500, "partition.assignment.strategy": "cooperative-sticky",
    "deployment": "deployment", "phases": "aligned",
    "start_ms": {"exactly": 10_000}, "ready_ms": {"exactly": 1_000}, "members": 2, "partitions": 8,
    "min_replicas": 2, "max_replicas": 20,
}  # fmt: skip


#: Factors of the rate of records from a minute on.
RATES = [(0, 1), (2, 8), (5, 0)]


def test_a_fixed_fleet_is_not_scaled_and_its_run_ends_with_the_autoscaler() -> None:
    settings = {**SCALED, "autoscaler": "none", "lag_threshold": 1, "record_rate": 20, "tail_ms": 0}
    result = storm(scenario(STEPS, **settings))
    assert {event.cause for _, event in result.events("step_taken")} == {"start"}
    [(ended_us, _)] = result.events("scenario_ended")
    assert ended_us == 60_000_000 + 900_000_000


def test_exact_and_computed_traces_of_autoscaling_are_equal() -> None:
    settings = {
        **SCALED, "autoscaler": "keda", "lag_threshold": 300, "record_rate": 20, "process_ms": 10,
        "record_rate_over_time": [{"at": f"{minute}m", "factor": factor} for minute, factor in RATES],
        "scale_down_stabilization_ms": 60_000,
    }  # fmt: skip
    found = [storm(scenario(STEPS, **settings), exact=exact).rows for exact in (False, True)]
    assert found[0] == found[1]


def test_the_gain_of_a_scale_up_counts_against_the_rate_before_it() -> None:
    gains = ScalingGains()
    assert gains.read(0, 0) is None
    assert gains.read(30_000_000, 3_000) is None
    assert gains.scaled(4, 8) is None
    # 100 records a second before; 120 s later 9,000 more than the 12,000 of the old rate
    assert gains.read(90_000_000, 5_500) is None
    assert gains.read(150_000_000, 24_000) == "from 4 to 8 processes: +9,000 records in 120 s"
    assert gains.read(165_000_000, 26_500) is None


def test_a_scale_up_before_which_no_rate_is_known_has_no_gain() -> None:
    gains = ScalingGains()
    gains.read(15_000_000, 1_000)
    gains.scaled(2, 6)
    assert gains.read(150_000_000, 100_000) is None


def test_the_rate_before_a_scale_up_is_that_of_a_minute_as_commits_come_in_steps() -> None:
    gains = ScalingGains()
    for second in (0, 15, 30, 45, 60):
        gains.read(second * 1_000_000, second * 100)
    gains.read(64_000_000, 6_000)  # nobody has committed since
    gains.scaled(4, 8)
    assert gains.read(184_000_000, 18_000) == "from 4 to 8 processes: +840 records in 120 s"


def test_scale_ups_in_succession_count_as_one_and_a_scale_down_ends_them() -> None:
    gains = ScalingGains()
    gains.read(0, 0)
    gains.read(30_000_000, 3_000)
    gains.scaled(2, 4)
    gains.read(40_000_000, 3_500)
    gains.scaled(4, 6)
    gains.read(60_000_000, 5_000)
    assert gains.scaled(6, 3) == "from 2 to 6 processes: -1,000 records in 30 s"
    assert gains.scaled(3, 2) is None

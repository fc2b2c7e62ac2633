"""What an autoscaler decides from at the edges: recommendations of a window, lags, rates of records."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.deployments.horizontal import HorizontalAutoscaler, rules_of
from groupstorm.storms.deployments.kafka_scaler import partition_lag, scaler_metric, trigger_of
from groupstorm.storms.deployments.scaling_gains import Gain, ScalingGains
from groupstorm.storms.scenario.settings import Settings

SECOND = 1_000_000


@pytest.mark.parametrize(("up_ms", "decided"), [(60_000, 2), (60_001, 6)])
def test_a_recommendation_counts_for_less_than_the_scale_up_window(up_ms: int, decided: int) -> None:
    """Two were enough; of the ten that are wanted now four may be added."""
    settings = {"lag_threshold": 100, "scale_up_stabilization_ms": 60_000, "max_replicas": 20}
    autoscaler = HorizontalAutoscaler(rules_of(Settings(("", settings))))
    assert autoscaler.decide(1, 2, 200) == 2
    assert autoscaler.decide(up_ms, 2, 1_000) == decided


@pytest.mark.parametrize(("committed", "lag"), [(-1, 1), (0, 500), (1, 499), (500, 0)])
def test_a_partition_lacks_what_lies_behind_its_committed_offset(committed: int, lag: int) -> None:
    assert partition_lag(500, committed) == lag


@pytest.mark.parametrize(
    ("lags", "settings", "metric"),
    [
        # one consumer is enough for ten records
        ([5, 5], {"even_distribution": True}, 10),
        ([5, 6], {"even_distribution": True}, 20),
        # two of the partitions have lag
        ([1_000, 1, 0], {"limit_to_partitions_with_lag": True}, 20),
        ([1_000, 1, 0], {}, 30),
    ],
)
def test_the_metric_of_ten_records_a_consumer(lags: list[int], settings: dict[str, Any], metric: int) -> None:
    trigger = trigger_of(Settings(("", {"lag_threshold": 10, **settings})))
    assert scaler_metric(lags, trigger) == metric


def test_the_rate_before_a_scale_up_is_that_between_the_last_two_readings() -> None:
    """100 records a second, after 10 s without any: 12,000 in the next 120 s."""
    gains = ScalingGains()
    for second, committed in ((0, 0), (10, 0), (20, 1_000)):
        gains.read(second * SECOND, committed)
    gains.scaled(1, 2)
    assert gains.read(140 * SECOND, 13_000) == Gain(1, 2, 0, 120 * SECOND)


def test_the_rate_before_a_scale_up_is_exact_for_a_million_records_a_second() -> None:
    gains = ScalingGains()
    gains.read(0, 0)
    gains.read(SECOND, 1_000_000)
    gains.scaled(1, 2)
    assert gains.read(121 * SECOND, 121_000_007) == Gain(1, 2, 7, 120 * SECOND)

"""The metric of KEDA's Kafka scaler: the group's lag, capped so that no consumer is idle.

Source: pkg/scalers/kafka_scaler.go: `getTotalLag`, `getLagForPartition`. KEDA hands the metric to a
HorizontalPodAutoscaler, which decides; only between zero and one KEDA decides itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupstorm.storms.scenario.settings import Settings

#: The lag of a partition without a committed offset (offsetResetPolicy: latest).
LAG_WITHOUT_OFFSET = 1


class KafkaTrigger(NamedTuple):
    """The trigger's metadata."""

    threshold: int
    allow_idle: bool
    only_with_lag: bool
    even: bool


def trigger_of(settings: Settings) -> KafkaTrigger:
    return KafkaTrigger(
        settings.integer("lag_threshold"),
        settings.flag("allow_idle_consumers"),
        settings.flag("limit_to_partitions_with_lag"),
        settings.flag("even_distribution"),
    )


def partition_lag(end: int, committed: int) -> int:
    """The lag of a partition whose log ends at ``end``; ``committed`` -1: no offset is committed."""
    return LAG_WITHOUT_OFFSET if committed < 0 else end - committed


def scaler_metric(lags: Sequence[int], trigger: KafkaTrigger) -> int:
    """The metric for the HorizontalPodAutoscaler from the lag of every partition."""
    total = sum(lags)
    partitions = len(lags)
    if trigger.even:
        fitting = (
            n for n in range(1, partitions + 1) if partitions % n == 0 and n * trigger.threshold >= total
        )
        return next(fitting, partitions) * trigger.threshold if total else 0
    most = sum(lag > 0 for lag in lags) if trigger.only_with_lag else partitions
    if (not trigger.allow_idle or trigger.only_with_lag) and total // trigger.threshold > most:
        return most * trigger.threshold
    return total

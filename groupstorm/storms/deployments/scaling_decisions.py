"""The decisions of autoscalers: of a HorizontalPodAutoscaler, on the metric of KEDA's Kafka scaler.

KEDA hands its metric to a HorizontalPodAutoscaler, which decides; only between zero and one KEDA decides
itself. Sources: pkg/controller/podautoscaler in Kubernetes (`reconcileAutoscaler`,
`GetExternalPerPodMetricReplicas`, `stabilizeRecommendationWithBehaviors`,
`convertDesiredReplicasWithBehaviorRate`, `calculateScaleUpLimitWithScalingRules`),
pkg/scalers/kafka_scaler.go in KEDA (`getTotalLag`, `getLagForPartition`). Times in milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupstorm.storms.scenario.scaling_behavior import DISABLED, MIN, ScalingBehavior, ScalingPolicy
from groupstorm.storms.scenario.settings import Settings


class ScalingRules(NamedTuple):
    """`behavior`: windows, and how much may change within a period."""

    least: int
    most: int
    target: int
    tolerance_percent: int
    up_window_ms: int
    down_window_ms: int
    up: ScalingBehavior
    down: ScalingBehavior


def rules_of(settings: Settings) -> ScalingRules:
    """The rules of a scenario. A HorizontalPodAutoscaler never scales to zero."""
    period_ms = settings.integer("scale_period_ms")
    up = (
        ScalingPolicy(False, settings.integer("scale_up_pods"), period_ms),
        ScalingPolicy(True, settings.integer("scale_up_percent"), period_ms),
    )
    down = (ScalingPolicy(True, settings.integer("scale_down_percent"), period_ms),)
    return ScalingRules(
        least=max(1, settings.integer("min_replicas")),
        most=settings.integer("max_replicas"),
        target=settings.integer("lag_threshold"),
        tolerance_percent=settings.integer("tolerance_percent"),
        up_window_ms=settings.integer("scale_up_stabilization_ms"),
        down_window_ms=settings.integer("scale_down_stabilization_ms"),
        up=settings.optional("scale_up_behavior", ScalingBehavior) or ScalingBehavior(up),
        down=settings.optional("scale_down_behavior", ScalingBehavior) or ScalingBehavior(down),
    )


def recommended(metric: int, replicas: int, rules: ScalingRules) -> int:
    """The number of pods that ``metric`` asks for: ``replicas`` within the tolerance."""
    wanted = rules.target * replicas
    if abs(metric - wanted) * 100 <= rules.tolerance_percent * wanted:
        return replicas
    return -(-metric // rules.target)


class HorizontalAutoscaler:
    """Remembers recommendations and changes as far as the windows and periods reach back."""

    def __init__(self, rules: ScalingRules) -> None:
        self._rules = rules
        self._recommendations: list[tuple[int, int]] = []
        #: When pods were added (positive) or removed (negative), and how many.
        self._changes: list[tuple[int, int]] = []

    def decide(self, now_ms: int, replicas: int, metric: int) -> int:
        """The number of pods from now on. A decision counts as carried out."""
        rules = self._rules
        if replicas == 0:
            return 0  # scaling is switched off until something else starts a pod
        decided = min(max(replicas, rules.least), rules.most)
        if decided == replicas:  # else neither the metric nor the policies count
            stabilized = self._stabilized(now_ms, replicas, recommended(metric, replicas, rules))
            decided = self._limited(now_ms, replicas, stabilized)
        if decided != replicas:
            self._changes.append((now_ms, decided - replicas))
        return decided

    def _stabilized(self, now_ms: int, replicas: int, desired: int) -> int:
        """The lowest of the recent recommendations above ``replicas``, or the highest of those below."""
        rules = self._rules
        if not self._recommendations:  # recordInitialRecommendation
            self._recommendations.append((now_ms, replicas))
        up = min([n for at_ms, n in self._recommendations if at_ms > now_ms - rules.up_window_ms] + [desired])
        down = max(
            [n for at_ms, n in self._recommendations if at_ms > now_ms - rules.down_window_ms] + [desired]
        )
        kept_ms = max(rules.up_window_ms, rules.down_window_ms)
        self._recommendations = [one for one in self._recommendations if one[0] > now_ms - kept_ms]
        self._recommendations.append((now_ms, desired))
        return min(max(replicas, up), max(down, up))

    def _limited(self, now_ms: int, replicas: int, desired: int) -> int:
        """``desired`` within the least and most, as far as the policies allow in their periods."""
        rules = self._rules
        if desired > replicas:
            return min(desired, rules.most, replicas + self._allowed(now_ms, replicas, rules.up, 1))
        if desired < replicas:
            return max(desired, rules.least, replicas - self._allowed(now_ms, replicas, rules.down, -1))
        return replicas

    def _allowed(self, now_ms: int, replicas: int, behavior: ScalingBehavior, sign: int) -> int:
        """The number of pods that may come (``sign`` 1) or go (-1) now."""
        if behavior.select == DISABLED:
            return 0
        allowed = []
        for policy in behavior.policies:
            recent = sum(change for at_ms, change in self._changes if at_ms > now_ms - policy.period_ms)
            change = policy.value
            if policy.is_percentage:
                change = -(-(replicas - recent) * policy.value // 100)
            allowed.append(change - sign * recent)
        return max(0, min(allowed) if behavior.select == MIN else max(allowed))


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

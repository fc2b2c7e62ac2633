"""The decisions of Kubernetes' HorizontalPodAutoscaler on an external metric with a target per pod.

Source: pkg/controller/podautoscaler: `reconcileAutoscaler`, `GetExternalPerPodMetricReplicas`,
`stabilizeRecommendationWithBehaviors`, `convertDesiredReplicasWithBehaviorRate`. Times in milliseconds.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.storms.scenario.settings import Settings


class ScalingRules(NamedTuple):
    """`behavior`: windows, and how much may change within a period (selectPolicy Max)."""

    least: int
    most: int
    target: int
    tolerance_percent: int
    up_window_ms: int
    down_window_ms: int
    up_pods: int
    up_percent: int
    down_percent: int
    period_ms: int


def rules_of(settings: Settings) -> ScalingRules:
    """The rules of a scenario. A HorizontalPodAutoscaler never scales to zero."""
    return ScalingRules(
        least=max(1, settings.integer("min_replicas")),
        most=settings.integer("max_replicas"),
        target=settings.integer("lag_threshold"),
        tolerance_percent=settings.integer("tolerance_percent"),
        up_window_ms=settings.integer("scale_up_stabilization_ms"),
        down_window_ms=settings.integer("scale_down_stabilization_ms"),
        up_pods=settings.integer("scale_up_pods"),
        up_percent=settings.integer("scale_up_percent"),
        down_percent=settings.integer("scale_down_percent"),
        period_ms=settings.integer("scale_period_ms"),
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
        up = min([n for at_ms, n in self._recommendations if at_ms > now_ms - rules.up_window_ms] + [desired])
        down = max(
            [n for at_ms, n in self._recommendations if at_ms > now_ms - rules.down_window_ms] + [desired]
        )
        kept_ms = max(rules.up_window_ms, rules.down_window_ms)
        self._recommendations = [one for one in self._recommendations if one[0] > now_ms - kept_ms]
        self._recommendations.append((now_ms, desired))
        return min(max(replicas, up), max(down, up))

    def _limited(self, now_ms: int, replicas: int, desired: int) -> int:
        """``desired`` within the least and most, as far as the policies allow in one period."""
        rules = self._rules
        recent = [change for at_ms, change in self._changes if at_ms > now_ms - rules.period_ms]
        if desired > replicas:
            before = replicas - sum(change for change in recent if change > 0)
            allowed = max(before + rules.up_pods, -(-before * (100 + rules.up_percent) // 100), replicas)
            return min(desired, rules.most, allowed)
        if desired < replicas:
            before = replicas - sum(change for change in recent if change < 0)
            allowed = min(before * (100 - rules.down_percent) // 100, replicas)
            return max(desired, rules.least, allowed)
        return replicas

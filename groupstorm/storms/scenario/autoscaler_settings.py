"""The settings of autoscalers: a HorizontalPodAutoscaler on the group's lag, alone or under KEDA."""

from __future__ import annotations

from groupstorm.storms.scenario.setting_types import MAX_MEMBERS, Setting

#: Values of `autoscaler`.
NO_AUTOSCALER, HPA, KEDA = "none", "hpa", "keda"

AUTOSCALER_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "autoscaler",
        "choice",
        NO_AUTOSCALER,
        "what the step autoscale runs: none (a fixed number), hpa (on the lag), or keda (Kafka scaler)",
        allowed=(NO_AUTOSCALER, HPA, KEDA),
    ),
    Setting("min_replicas", "integer", 1, "fewest processes (minReplicas, minReplicaCount)", 0, MAX_MEMBERS),
    Setting("max_replicas", "integer", 100, "most processes (maxReplicas, maxReplicaCount)", 1, MAX_MEMBERS),
    Setting("lag_threshold", "integer", 10, "lagThreshold: records of lag that a process should have", 1),
    Setting(
        "activation_lag_threshold", "integer", 0, "keda: lag above which a group without processes gets one"
    ),
    Setting("polling_interval_ms", "integer", 30_000, "keda: pollingInterval, between two checks of zero", 1),
    Setting(
        "cooldown_ms", "integer", 300_000, "keda: cooldownPeriod, from the last lag until zero processes"
    ),
    Setting("allow_idle_consumers", "flag", False, "keda: allow more processes than partitions"),
    Setting(
        "limit_to_partitions_with_lag", "flag", False, "keda: never more processes than partitions with lag"
    ),
    Setting(
        "even_distribution",
        "flag",
        False,
        "keda: ensureEvenDistributionOfPartitions, only numbers of processes that divide the partitions",
    ),
    Setting("autoscaler_sync_ms", "integer", 15_000, "between two decisions of the HPA", 1),
    Setting("tolerance_percent", "integer", 10, "HPA: deviation from the threshold that it ignores", 0, 100),
    Setting("scale_up_stabilization_ms", "integer", 0, "HPA: window of which the lowest number counts"),
    Setting("scale_down_stabilization_ms", "integer", 300_000, "HPA: window of which the highest counts"),
    Setting("scale_up_pods", "integer", 4, "HPA: processes that may be added within scale_period_ms"),
    Setting("scale_up_percent", "integer", 100, "HPA: or this percentage of them, if that is more"),
    Setting("scale_down_percent", "integer", 100, "HPA: percentage that may be removed within it", 0, 100),
    Setting("scale_period_ms", "integer", 15_000, "HPA: periodSeconds of these policies", 1),
)

"""The settings of deployments and their autoscalers: who replaces processes and how many run.

The autoscaler is a HorizontalPodAutoscaler on the group's lag, alone or under KEDA.
"""

from __future__ import annotations

from groupstorm.storms.scenario.setting_types import INT_MAX, MAX_MEMBERS, Setting

#: Values of `deployment`.
PROCESSES, DEPLOYMENT, STATEFUL_SET = "processes", "deployment", "statefulset"
#: Values of `ready_when`.
POLLS, ASSIGNED, RUNS = "polls", "assigned", "runs"

DEPLOYMENT_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "max_surge",
        "pods",
        0,
        "processes that may run beside the wanted number while deploying; a percentage is rounded up",
    ),
    Setting(
        "max_unavailable",
        "pods",
        1,
        "processes that may be missing while deploying; a percentage is rounded down (statefulset: up)",
    ),
    Setting("stop_grace_ms", "varying duration", 500, "from SIGTERM until the consumer is closed"),
    Setting(
        "start_ms",
        "varying duration",
        {"p50": 20_000, "p95": 35_000},
        "from a process's start to its first poll()",
    ),
    Setting(
        "ready_ms",
        "varying duration",
        10_000,
        "from its first poll() (ready_when) until it counts as ready: its probe's delay and periods",
    ),
    Setting(
        "order",
        "choice",
        "ordinal",
        "order in which processes are replaced",
        allowed=("ordinal", "reverse", "random"),
    ),
    Setting(
        "deployment",
        "choice",
        PROCESSES,
        "who replaces processes: processes (each under its name), or Kubernetes' deployment (pods with new "
        "names, terminating pods not counted) or statefulset (highest ordinal first, no surge)",
        allowed=(PROCESSES, DEPLOYMENT, STATEFUL_SET),
    ),
    Setting(
        "ready_when",
        "choice",
        POLLS,
        "what starts ready_ms: polls (the first poll()), assigned (the first partition it owns), or runs "
        "(the container's start, before start_ms: a pod without a readiness probe)",
        allowed=(POLLS, ASSIGNED, RUNS),
    ),
    Setting("min_ready_ms", "integer", 0, "minReadySeconds: from ready until a process counts as available"),
    Setting(
        "drain_ms",
        "varying duration",
        0,
        "after stop_grace_ms: the process finishes its batch without poll(), then commits and closes",
    ),
    Setting(
        "termination_grace_ms",
        "optional integer",
        None,
        "terminationGracePeriodSeconds: from SIGTERM until SIGKILL, without LeaveGroup; null: never",
        0,
        INT_MAX,
    ),
    Setting(
        "progress_deadline_ms",
        "integer",
        600_000,
        "progressDeadlineSeconds: how long a rollout may make no progress until it is reported as stuck",
        1,
    ),
    Setting("update_partition", "integer", 0, "statefulset: ordinals below this one are not replaced"),
    Setting(
        "disruption_budget",
        "pods",
        1,
        "maxUnavailable of the PodDisruptionBudget, for drain-node; a percentage is rounded up",
    ),
)


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
    Setting(
        "scale_up_behavior",
        "optional scaling behavior",
        None,
        "HPA: in the place of the policies upwards, as Kubernetes writes them: {policies: [{type: Pods, "
        "value: 4, periodSeconds: 60}], selectPolicy: Max}",
        in_files=False,
    ),
    Setting(
        "scale_down_behavior",
        "optional scaling behavior",
        None,
        "HPA: in the place of the policies downwards, in the same form",
        in_files=False,
    ),
)

"""The settings of deployments: who replaces processes, how many at once, and when one counts as ready."""

from __future__ import annotations

from groupstorm.storms.scenario.setting_types import INT_MAX, Setting

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
    Setting("stop_grace_ms", "distribution", 500, "from SIGTERM until the consumer is closed"),
    Setting(
        "start_ms",
        "distribution",
        {"p50": 20_000, "p95": 35_000},
        "from a process's start to its first poll()",
    ),
    Setting(
        "ready_ms",
        "distribution",
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
        "distribution",
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

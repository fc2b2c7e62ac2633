"""The values of the settings of deployments and their autoscalers: who replaces processes and how many run.

The autoscaler is a HorizontalPodAutoscaler on the group's lag, alone or under KEDA.
"""

from __future__ import annotations

#: Values of `deployment`.
PROCESSES, DEPLOYMENT, STATEFUL_SET = "processes", "deployment", "statefulset"
#: Values of `ready_when`.
POLLS, ASSIGNED, RUNS = "polls", "assigned", "runs"
#: Values of `autoscaler`.
NO_AUTOSCALER, HPA, KEDA = "none", "hpa", "keda"

"""The two limits of a rolling update as counts of pods, rounded as Kubernetes rounds them.

Source: `ResolveFenceposts` in pkg/controller/deployment/util/deployment_util.go; for a StatefulSet
`getStatefulSetMaxUnavailable` in pkg/controller/statefulset/stateful_set_utils.go.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.storms.scenario.deployment_settings import STATEFUL_SET
from groupstorm.storms.scenario.pod_counts import PodCount
from groupstorm.storms.scenario.settings import Settings


class Limits(NamedTuple):
    """How many pods may run beside the wanted number, and how many may be missing."""

    surge: int
    unavailable: int


def deployment_limits(surge: PodCount, unavailable: PodCount, wanted: int) -> Limits:
    """Surge is rounded up, unavailable down; if both come out as 0, one pod may be missing."""
    limits = Limits(surge.of(wanted, round_up=True), unavailable.of(wanted, round_up=False))
    return limits if any(limits) else Limits(0, 1)


def stateful_set_limits(unavailable: PodCount, wanted: int) -> Limits:
    """No surge; unavailable is rounded up and at least one."""
    return Limits(0, max(1, unavailable.of(wanted, round_up=True)))


def limits_of(settings: Settings, wanted: int) -> Limits:
    """The limits of a scenario's deployment with ``wanted`` pods."""
    unavailable = settings.pods("max_unavailable")
    if settings.choice("deployment") == STATEFUL_SET:
        return stateful_set_limits(unavailable, wanted)
    return deployment_limits(settings.pods("max_surge"), unavailable, wanted)

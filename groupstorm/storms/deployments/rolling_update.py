"""The limits of a rolling update, and how many pods Kubernetes' Deployment controller starts and stops in it.

Sources: `reconcileNewReplicaSet` and `reconcileOldReplicaSets` in pkg/controller/deployment/rolling.go,
`ResolveFenceposts` in pkg/controller/deployment/util/deployment_util.go; for a StatefulSet
`getStatefulSetMaxUnavailable` in pkg/controller/statefulset/stateful_set_utils.go. A pod that terminates
belongs to no replica set any more: it counts neither against the surge nor as available.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.storms.scenario.deployment_settings import STATEFUL_SET
from groupstorm.storms.scenario.pod_counts import PodCount
from groupstorm.storms.scenario.settings import Settings


class Limits(NamedTuple):
    """The most pods that may run beside the wanted number, and the most that may be missing."""

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


class Replicas(NamedTuple):
    """The pods of a Deployment: of its old replica set and of its new one, without those that terminate.

    ``replaced`` are the pods of the new set when the rollout is complete: fewer than ``wanted`` for a canary.
    """

    wanted: int
    replaced: int
    old: int
    old_available: int
    new: int
    new_available: int


def pods_to_start(now: Replicas, limits: Limits) -> int:
    """The number of new pods that start now: as many as the surge allows."""
    room = now.wanted + limits.surge - (now.old + now.new)
    return max(0, min(room, now.replaced - now.new))


def pods_to_stop(now: Replicas, limits: Limits) -> int:
    """The number of old pods that stop now: unavailable ones first, others as far as enough stay available.

    New pods that are not available yet count as missing, so that they cannot make old pods stop.
    """
    least_available = now.wanted - limits.unavailable
    most = now.old + now.new - least_available - (now.new - now.new_available)
    if most <= 0:
        return 0
    unhealthy = min(most, now.old - now.old_available)
    healthy = max(0, now.old_available + now.new_available - least_available)
    keep = now.wanted - now.replaced
    return max(0, min(unhealthy + healthy, now.old - keep))

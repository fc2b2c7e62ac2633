"""The decisions of Kubernetes' Deployment controller in a rolling update: how many pods to start and to stop.

Source: `reconcileNewReplicaSet` and `reconcileOldReplicaSets` in pkg/controller/deployment/rolling.go. A pod
that terminates belongs to no replica set any more: it counts neither against the surge nor as available.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.storms.deployments.limits import Limits


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
    """How many new pods start now: as many as the surge allows."""
    room = now.wanted + limits.surge - (now.old + now.new)
    return max(0, min(room, now.replaced - now.new))


def pods_to_stop(now: Replicas, limits: Limits) -> int:
    """How many old pods stop now: unavailable ones first, others as far as enough stay available.

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

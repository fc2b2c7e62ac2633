"""Rolling updates: of a Deployment by pods under new names, of other workloads process by process.

Sources: `reconcileNewReplicaSet` and `reconcileOldReplicaSets` in pkg/controller/deployment/rolling.go,
`ResolveFenceposts` in pkg/controller/deployment/util/deployment_util.go; for a StatefulSet
`getStatefulSetMaxUnavailable` in pkg/controller/statefulset/stateful_set_utils.go. A pod that terminates
belongs to no replica set any more: it counts neither against the surge nor as available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupstorm.storms.deployments.rollout import Durations, Rollout, new_pod_name
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.steps_of_run import StepsOfRun
from groupstorm.storms.scenario.deployment_settings import STATEFUL_SET
from groupstorm.storms.scenario.quantities import PodCount
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


class Replacement(NamedTuple):
    """The processes ``old`` that a step of the kind ``do`` replaces in their order.

    A canary replaces the first ``canary`` of them, waits for ``pause_us`` once these are available, and goes
    on. ``given``: as for `Rollout`.
    """

    do: str
    old: Sequence[Process]
    limits: Limits
    canary: int | None
    pause_us: int
    given: Mapping[int, Durations]


class DeploymentRollout(Rollout):
    """Replaces pods in their order by pods of ``revision``."""

    def __init__(self, steps: StepsOfRun, replacement: Replacement, revision: int) -> None:
        super().__init__(steps, replacement.do, replacement.given)
        old, canary = replacement.old, replacement.canary
        self._wanted = len(old)
        self._replaced = len(old) if canary is None else min(canary, len(old))
        self._pause_us = replacement.pause_us
        self._limits = replacement.limits
        self._revision = revision
        #: The places of pods that are still to be started, and the old pods that are still to be stopped.
        self._places = [(process.index, process.name) for process in old]
        self._old = list(old)
        self._started = 0
        self._available = 0

    def replicas(self) -> Replicas:
        """The pods now, without those that terminate."""
        alive = sum(process.alive for process in self._old)
        return Replicas(self._wanted, self._replaced, len(self._old), alive, self._started, self._available)

    def advance(self) -> None:
        """Start and stop as many pods as the controller does now."""
        while True:
            if start := pods_to_start(self.replicas(), self._limits):
                for _ in range(start):
                    self._start()
            elif stop := pods_to_stop(self.replicas(), self._limits):
                for _ in range(stop):
                    self._stop()
            else:
                break
        if self._available == self._replaced and len(self._old) == self._wanted - self._replaced:
            self._replaced_all()

    def _replaced_all(self) -> None:
        if self._replaced == self._wanted:
            self.complete()
            return
        self.pause(self._pause_us, f"{self._replaced} pods are replaced; pause", self._go_on)

    def _go_on(self) -> None:
        self._replaced = self._wanted
        self.advance()

    def _start(self) -> None:
        index, name = self._places[self._started]
        self._started += 1
        self.start_pod(index, new_pod_name(name, self._revision), self._pod_available)

    def _stop(self) -> None:
        """Stop the next old pod; one that is gone already goes first."""
        gone = [process for process in self._old if not process.alive]
        process = gone[0] if gone else self._old[0]
        self._old.remove(process)
        self.stop_pod(process, self.progressed)

    def _pod_available(self) -> None:
        self._available += 1
        self.advance()


class InPlaceRollout(Rollout):
    """Replaces processes in their order: never more than the limits missing or too many."""

    def __init__(self, steps: StepsOfRun, replacement: Replacement) -> None:
        super().__init__(steps, replacement.do, replacement.given)
        self._waiting = list(replacement.old[: replacement.canary])
        self._after_pause = list(replacement.old[len(self._waiting) :])
        self._pause_us = replacement.pause_us
        self._limits = replacement.limits
        self._missing = 0
        self._extra = 0
        self._to_stop: list[Process] = []

    def advance(self) -> None:
        """Start and stop as many processes as the two limits allow now."""
        while self._extra < self._limits.surge and self._waiting:
            self._extra += 1
            old = self._waiting.pop(0)
            self.start_pod(old.index, f"{old.name}-next", self._successor_of(old))
        while self._to_stop:
            self.stop_pod(self._to_stop.pop(0), self._old_gone)
        while self._missing < self._limits.unavailable and self._waiting:
            self._missing += 1
            old = self._waiting.pop(0)
            self.stop_pod(old, self._replace(old))
        if not (self._waiting or self._missing or self._extra or self._to_stop):
            self._replaced_all()

    def _replaced_all(self) -> None:
        if not self._after_pause:
            self.complete()
            return
        self._waiting, self._after_pause = self._after_pause, []
        detail = f"{len(self._waiting)} processes are still to be replaced; pause"
        self.pause(self._pause_us, detail, self.advance)

    def _successor_of(self, old: Process) -> Callable[[], None]:
        def available() -> None:
            self._to_stop.append(old)
            self.advance()

        return available

    def _old_gone(self) -> None:
        self._extra -= 1
        self.progressed()
        self.advance()

    def _replace(self, old: Process) -> Callable[[], None]:
        def available() -> None:
            self._missing -= 1
            self.advance()

        def gone() -> None:
            self.progressed()
            self.start_pod(old.index, old.name, available)

        return gone

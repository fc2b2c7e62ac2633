"""Rolling updates: of a Deployment by pods under new names, of other workloads process by process.

Sources: `reconcileNewReplicaSet` and `reconcileOldReplicaSets` in pkg/controller/deployment/rolling.go,
`ResolveFenceposts` in pkg/controller/deployment/util/deployment_util.go; for a StatefulSet
`getStatefulSetMaxUnavailable` in pkg/controller/statefulset/stateful_set_utils.go. A pod that terminates
belongs to no replica set any more: it counts neither against the surge nor as available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupstorm.storms.deployments.rollout import Durations, Rollout, new_pod_name
from groupstorm.storms.runs.steps_of_run import Process, StepsOfRun
from groupstorm.storms.scenario.quantities import PodCount
from groupstorm.storms.scenario.setting_names import STATEFUL_SET
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
    """No surge; unavailable is rounded down, whatever the API's reference says, and at least one."""
    return Limits(0, max(1, unavailable.of(wanted, round_up=False)))


def limits_of(settings: Settings, wanted: int) -> Limits:
    """The limits of a scenario's deployment with ``wanted`` pods."""
    unavailable = settings.pods("max_unavailable")
    if settings.choice("deployment") == STATEFUL_SET:
        return stateful_set_limits(unavailable, wanted)
    return deployment_limits(settings.pods("max_surge"), unavailable, wanted)


class Replicas(NamedTuple):
    """The pods of a Deployment: of its old replica sets and of its new one, without those that terminate.

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


@dataclass(slots=True, eq=False)
class Pod:
    """A pod of a Deployment; ``was_available``: it has been available at least once."""

    index: int
    name: str
    was_available: bool


class DeploymentRollout(Rollout):
    """Replaces pods in their order by pods of ``revision``."""

    def __init__(self, steps: StepsOfRun, replacement: Replacement, revision: int) -> None:
        super().__init__(steps, replacement.do, replacement.given)
        self._limits = replacement.limits
        #: The pods of the older replica sets, those of the oldest first, and of the newest one.
        self._old = [Pod(process.index, process.name, was_available=True) for process in replacement.old]
        self._new: list[Pod] = []
        self._places = [(pod.index, pod.name) for pod in self._old]
        self._wanted = len(self._old)
        self._take(replacement, revision)

    def _take(self, replacement: Replacement, revision: int) -> None:
        canary = replacement.canary
        self._replaced = self._wanted if canary is None else min(canary, self._wanted)
        self._pause_us = replacement.pause_us
        self._revision = revision

    def roll_over(self, replacement: Replacement, revision: int) -> None:
        """A newer revision comes before this one is complete: its replica set is an old one from now on."""
        self._old += self._new
        self._new = []
        self._take(replacement, revision)
        self.begin_again(replacement.do, replacement.given)
        self.advance()

    def replicas(self) -> Replicas:
        """The pods now, without those that terminate."""
        old_available = sum(map(self._is_available, self._old))
        new_available = sum(pod.was_available for pod in self._new)
        return Replicas(
            self._wanted, self._replaced, len(self._old), old_available, len(self._new), new_available
        )

    def _is_available(self, pod: Pod) -> bool:
        process = self.steps.host.processes.get(pod.name)
        return pod.was_available and process is not None and process.alive

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
        now = self.replicas()
        if now.new_available == self._replaced and now.old == self._wanted - self._replaced:
            self._replaced_all()

    def _replaced_all(self) -> None:
        if self._replaced == self._wanted:
            self.complete()
            return
        revision = self._revision

        def go_on() -> None:
            if revision == self._revision:  # else another rollout has begun during the pause
                self._replaced = self._wanted
                self.advance()

        self.pause(self._pause_us, f"{self._replaced} pods are replaced; pause", go_on)

    def _start(self) -> None:
        index, name = self._places[len(self._new)]
        pod = Pod(index, new_pod_name(name, self._revision), was_available=False)
        self._new.append(pod)

        def available() -> None:
            pod.was_available = True
            self.advance()

        self.start_pod(index, pod.name, available)

    def _stop(self) -> None:
        """Stop the next old pod; one that is not available goes first."""
        unavailable = (pod for pod in self._old if not self._is_available(pod))
        pod = next(unavailable, self._old[0])
        self._old.remove(pod)
        self.stop_pod(pod.name, self.progressed)


class InPlaceRollout(Rollout):
    """Replaces processes in their order: never more than the limits missing or too many."""

    def __init__(self, steps: StepsOfRun, replacement: Replacement) -> None:
        super().__init__(steps, replacement.do, replacement.given)
        self._limits = replacement.limits
        self._missing = 0
        self._extra = 0
        self._to_stop: list[str] = []
        #: The places of pods that terminate or are not available again yet.
        self._in_hand: set[int] = set()
        self._revision = 0
        self._take(replacement)

    def _take(self, replacement: Replacement) -> None:
        places = [(process.index, process.name) for process in replacement.old]
        self._waiting = places[: replacement.canary]
        self._after_pause = places[len(self._waiting) :]
        self._pause_us = replacement.pause_us

    def roll_over(self, replacement: Replacement) -> None:
        """A newer revision comes before this one is complete (StatefulSet).

        The pods in hand become available first. Those that have not started again yet start as the newest.
        """
        self._take(replacement)
        self._revision += 1
        self._waiting = [place for place in self._waiting if place[0] not in self._in_hand]
        self.begin_again(replacement.do, replacement.given)
        self.advance()

    def advance(self) -> None:
        """Start and stop as many processes as the two limits allow now."""
        while self._extra < self._limits.surge and self._waiting:
            self._extra += 1
            index, name = self._waiting.pop(0)
            self.start_pod(index, f"{name}-next", self._successor_of(name))
        while self._to_stop:
            self.stop_pod(self._to_stop.pop(0), self._old_gone)
        while self._missing < self._limits.unavailable and self._waiting:
            self._missing += 1
            index, name = self._waiting.pop(0)
            self._replace(index, name)
        if not (self._waiting or self._missing or self._extra or self._to_stop):
            self._replaced_all()

    def _replaced_all(self) -> None:
        if not self._after_pause:
            self.complete()
            return
        self._waiting, self._after_pause = self._after_pause, []
        detail = f"{len(self._waiting)} processes are still to be replaced; pause"
        self.pause(self._pause_us, detail, self.advance)

    def _successor_of(self, old: str) -> Callable[[], None]:
        def available() -> None:
            self._to_stop.append(old)
            self.advance()

        return available

    def _old_gone(self) -> None:
        self._extra -= 1
        self.progressed()
        self.advance()

    def _replace(self, index: int, name: str) -> None:
        revision = self._revision

        def available() -> None:
            self._in_hand.discard(index)
            self._missing -= 1
            if revision != self._revision:  # it has started before the newest revision came
                self._waiting = sorted([*self._waiting, (index, name)], reverse=True)
            self.advance()

        def gone() -> None:
            nonlocal revision
            revision = self._revision
            self.progressed()
            self.start_pod(index, name, available)

        self._in_hand.add(index)
        self.stop_pod(name, gone)

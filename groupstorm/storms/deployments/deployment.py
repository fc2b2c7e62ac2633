"""A rolling update of a Deployment: pods of a new replica set, under new names, take over."""

from __future__ import annotations

from groupstorm.storms.deployments.rolling_update import Replicas, pods_to_start, pods_to_stop
from groupstorm.storms.deployments.rollout import Replacement, Rollout, new_pod_name
from groupstorm.storms.runs.steps_of_run import StepsOfRun


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
        self.steps.emit_step(self.do, None, f"{self._replaced} pods are replaced; pause")
        self.pauses_for(self._pause_us)
        self.steps.host.clock.after(self._pause_us, self._go_on)

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

"""Rollouts that replace process by process: each new one takes the place of an old one.

A StatefulSet's pods keep their names, and so does a process that restarts on its host. With surge a
successor under a name of its own starts first.
"""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.deployments.rollout import Replacement, Rollout
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.steps_of_run import StepsOfRun


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
        self.steps.emit_step(self.do, None, f"{len(self._waiting)} processes are still to be replaced; pause")
        self.pauses_for(self._pause_us)
        self.steps.host.clock.after(self._pause_us, self.advance)

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

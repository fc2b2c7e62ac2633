"""Rollouts of all pods at once: Recreate stops the old ones first, blue/green starts the new ones first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupstorm.storms.deployments.rollout import Rollout
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.steps_of_run import StepsOfRun


class WholeFleetRollout(Rollout):
    """Replaces the pods ``old`` by pods whose names ``name_of`` gives."""

    def __init__(
        self, steps: StepsOfRun, do: str, old: Sequence[Process], name_of: Callable[[str], str]
    ) -> None:
        super().__init__(steps, do)
        self._old = list(old)
        self._name_of = name_of
        self._stopping = 0
        self._starting = 0

    def recreate(self) -> None:
        """Stop all pods, and start the new ones when the last one is gone (strategy Recreate)."""
        self._stop_all(lambda: self._start_all(self.complete))

    def blue_green(self) -> None:
        """Start as many new pods, and stop the old ones when the last one of the new is available."""
        self._start_all(lambda: self._stop_all(self.complete))

    def _start_all(self, then: Callable[[], None]) -> None:
        self._starting = len(self._old)

        def available() -> None:
            self._starting -= 1
            if not self._starting:
                then()

        for process in self._old:
            self.start_pod(process.index, self._name_of(process.name), available)
        if not self._old:
            then()

    def _stop_all(self, then: Callable[[], None]) -> None:
        self._stopping = len(self._old)

        def gone() -> None:
            self._stopping -= 1
            self.progressed()
            if not self._stopping:
                then()

        for process in self._old:
            self.stop_pod(process, gone)
        if not self._old:
            then()

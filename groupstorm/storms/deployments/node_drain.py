"""`kubectl drain`: the pods of a node are evicted as far as their disruption budget allows.

Kubernetes replaces an evicted pod elsewhere. `kubectl drain` tries refused evictions again every 5 s; an
eviction is allowed as long as the pods that are missing then stay within the budget's maxUnavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupstorm.storms.deployments.rollout import Rollout
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.steps_of_run import StepsOfRun

#: How long kubectl waits before it asks again for an eviction that the budget has refused.
RETRY_US = 5_000_000


class NodeDrain(Rollout):
    """Evicts ``pods``; ``budget`` of the fleet's pods may be missing.

    ``name_of`` gives the names of the pods that replace them at once (Deployment). If it is None, a pod keeps
    its name and starts again when the old one is gone (StatefulSet).
    """

    def __init__(
        self,
        steps: StepsOfRun,
        do: str,
        pods: Sequence[Process],
        budget: int,
        name_of: Callable[[str], str] | None,
    ) -> None:
        super().__init__(steps, do)
        self._waiting = list(pods)
        self._budget = budget
        self._name_of = name_of
        self._missing = 0

    def advance(self) -> None:
        """Ask for the eviction of every pod that is still on the node."""
        refused = []
        for pod in self._waiting:
            if self._missing < self._budget:
                self._evict(pod)
            else:
                refused.append(pod)
        self._waiting = refused
        if refused:
            self.steps.host.clock.after(RETRY_US, self.advance)
        elif not self._missing:
            self.complete()

    def _evict(self, pod: Process) -> None:
        self._missing += 1
        self.progressed()

        def available() -> None:
            self._missing -= 1
            if not (self._waiting or self._missing):
                self.complete()

        def gone() -> None:
            self.progressed()
            if self._name_of is None:
                self.start_pod(pod.index, pod.name, available)

        self.stop_pod(pod, gone)
        if self._name_of is not None:
            self.start_pod(pod.index, self._name_of(pod.name), available)

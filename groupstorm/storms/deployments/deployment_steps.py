"""The steps that replace processes: rolling, canary, Recreate, blue/green, node drain, autoscaling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupstorm.storms.deployments.autoscaler import Autoscaler
from groupstorm.storms.deployments.rolling_update import (
    DeploymentRollout,
    InPlaceRollout,
    Replacement,
    limits_of,
)
from groupstorm.storms.deployments.rollout import (
    Rollout,
    given_durations,
    new_pod_name,
    processes_in_order,
)
from groupstorm.storms.runs.steps_of_run import Process, StepsOfRun
from groupstorm.storms.scenario.setting_names import DEPLOYMENT, STATEFUL_SET
from groupstorm.storms.scenario.steps import Step


class WholeFleetRollout(Rollout):
    """Replaces the pods ``old`` by pods whose names ``name_of`` gives."""

    def __init__(
        self, steps: StepsOfRun, do: str, old: Sequence[Process], name_of: Callable[[str], str]
    ) -> None:
        super().__init__(steps, do)
        self._old = list(old)
        self._name_of = name_of

    def recreate(self) -> None:
        """Stop all pods, and start the new ones when the last one is gone (strategy Recreate)."""
        self._all(self._stop, lambda: self._all(self._start, self.complete))

    def blue_green(self) -> None:
        """Start as many new pods, and stop the old ones when the last one of the new is available."""
        self._all(self._start, lambda: self._all(self._stop, self.complete))

    def _start(self, old: Process, done: Callable[[], None]) -> None:
        self.start_pod(old.index, self._name_of(old.name), done)

    def _stop(self, old: Process, done: Callable[[], None]) -> None:
        self.stop_pod(old.name, done)

    def _all(self, act: Callable[[Process, Callable[[], None]], None], then: Callable[[], None]) -> None:
        """Act on every old pod, and call ``then`` when all of that is done."""
        left = len(self._old)

        def done() -> None:
            nonlocal left
            left -= 1
            self.progressed()
            if not left:
                then()

        for process in self._old:
            act(process, done)
        if not self._old:
            then()


#: The time until kubectl asks again for an eviction that the budget has refused.
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

        self.stop_pod(pod.name, gone)
        if self._name_of is not None:
            self.start_pod(pod.index, self._name_of(pod.name), available)


class DeploymentSteps:
    """The handlers of these steps. A Deployment's pods get new names with every revision."""

    def __init__(self, steps: StepsOfRun) -> None:
        self._steps = steps
        self._kind = steps.host.settings.choice("deployment")
        self._revision = 1
        #: The last rolling update of a Deployment, and of a StatefulSet.
        self._of_deployment: DeploymentRollout | None = None
        self._of_stateful_set: InPlaceRollout | None = None
        self.handlers: dict[str, Callable[[Step], None]] = {
            "rolling-restart": self._roll,
            "canary": self._roll,
            "recreate": self._replace_whole_fleet,
            "blue-green": self._replace_whole_fleet,
            "drain-node": self._drain_node,
            "autoscale": self._autoscale,
        }

    def _roll(self, step: Step) -> None:
        """Replace all processes within the limits of `max_surge` and `max_unavailable`.

        A canary replaces ``count`` of them, waits for ``for_ms``, and replaces the others.
        """
        settings = self._steps.host.settings
        old = self._in_order()
        limits = limits_of(settings, len(self._steps.pods()))
        canary = step.count if step.do == "canary" else None
        order = "reverse" if self._kind == STATEFUL_SET else settings.choice("order")
        places = len({process.index for process in old})
        self._steps.emit_step(step.do, None, f"{places} processes are replaced, {order}")
        given = given_durations(step, old)
        replacement = Replacement(step.do, old, limits, canary, step.for_ms * 1000, given)
        if self._kind == DEPLOYMENT:
            self._revision += 1
            if self._of_deployment is not None and not self._of_deployment.done:
                self._of_deployment.roll_over(replacement, self._revision)
                return
            self._of_deployment = DeploymentRollout(self._steps, replacement, self._revision)
            self._of_deployment.advance()
            return
        if self._of_stateful_set is not None and not self._of_stateful_set.done:
            self._of_stateful_set.roll_over(replacement)
            return
        rollout = InPlaceRollout(self._steps, replacement)
        if self._kind == STATEFUL_SET:
            self._of_stateful_set = rollout
        rollout.advance()

    def _in_order(self) -> list[Process]:
        settings = self._steps.host.settings
        if self._kind != STATEFUL_SET:
            return processes_in_order(self._steps)
        partition = settings.integer("update_partition")
        return [pod for pod in reversed(self._steps.pods()) if pod.index >= partition]

    def _new_names(self) -> Callable[[str], str]:
        """Gives the names of a new revision's pods."""
        self._revision += 1
        revision = self._revision
        return lambda name: new_pod_name(name, revision)

    def _replace_whole_fleet(self, step: Step) -> None:
        is_recreated = step.do == "recreate"
        name_of = str if is_recreated and self._kind != DEPLOYMENT else self._new_names()
        old = processes_in_order(self._steps)
        self._steps.emit_step(step.do, None, f"{len(old)} processes are replaced")
        rollout = WholeFleetRollout(self._steps, step.do, old, name_of)
        rollout.recreate() if is_recreated else rollout.blue_green()

    def _drain_node(self, step: Step) -> None:
        """Evict the pods of a node within their disruption budget."""
        running = self._steps.host.processes.values()
        places = None if step.members is None else self._steps.places_of(step.members)
        pods = [pod for pod in running if places is None or pod.index in places]
        budget = self._steps.host.settings.pods("disruption_budget").of(len(running), round_up=True)
        self._steps.emit_step(step.do, None, f"{len(pods)} pods are evicted, {budget} at once")
        name_of = self._new_names() if self._kind == DEPLOYMENT else None
        NodeDrain(self._steps, step.do, pods, budget, name_of).advance()

    def _autoscale(self, step: Step) -> None:
        """Let the autoscaler work for ``for_ms``."""
        Autoscaler(self._steps, step.for_ms * 1000)

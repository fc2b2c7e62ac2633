"""Carries out the steps that replace processes: rolling, canary, Recreate, blue/green, node drain."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.deployments.autoscaler import Autoscaler
from groupstorm.storms.deployments.deployment import DeploymentRollout
from groupstorm.storms.deployments.in_place import InPlaceRollout
from groupstorm.storms.deployments.node_drain import NodeDrain
from groupstorm.storms.deployments.rolling_update import limits_of
from groupstorm.storms.deployments.rollout import (
    Replacement,
    given_durations,
    new_pod_name,
    processes_in_order,
)
from groupstorm.storms.deployments.whole_fleet import WholeFleetRollout
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.steps_of_run import StepsOfRun
from groupstorm.storms.scenario.deployment_settings import DEPLOYMENT, STATEFUL_SET
from groupstorm.storms.scenario.steps import Step


class DeploymentSteps:
    """The handlers of these steps. A Deployment's pods get new names with every revision."""

    def __init__(self, steps: StepsOfRun) -> None:
        self._steps = steps
        self._kind = steps.host.settings.choice("deployment")
        self._revision = 1
        self.handlers: dict[str, Callable[[Step], None]] = {
            "rolling-restart": self.rolling_restart,
            "canary": self._canary,
            "recreate": self._recreate,
            "blue-green": self._blue_green,
            "drain-node": self._drain_node,
            "autoscale": self._autoscale,
        }

    def rolling_restart(self, step: Step) -> None:
        """Replace all processes within the limits of `max_surge` and `max_unavailable`."""
        self._roll(step, None)

    def _canary(self, step: Step) -> None:
        """Replace ``count`` processes, wait for ``for_ms``, replace the others."""
        self._roll(step, step.count)

    def _roll(self, step: Step, canary: int | None) -> None:
        settings = self._steps.host.settings
        old = self._in_order()
        limits = limits_of(settings, len(self._steps.host.processes))
        pause_us = step.for_ms * 1000
        order = "reverse" if self._kind == STATEFUL_SET else settings.choice("order")
        self._steps.emit_step(step.do, None, f"{len(old)} processes are replaced, {order}")
        replacement = Replacement(step.do, old, limits, canary, pause_us, given_durations(step, old))
        if self._kind == DEPLOYMENT:
            self._revision += 1
            DeploymentRollout(self._steps, replacement, self._revision).advance()
        else:
            InPlaceRollout(self._steps, replacement).advance()

    def _in_order(self) -> list[Process]:
        settings = self._steps.host.settings
        if self._kind != STATEFUL_SET:
            return processes_in_order(self._steps)
        partition = settings.integer("update_partition")
        pods = [pod for pod in self._steps.host.processes.values() if pod.index >= partition]
        return sorted(pods, key=lambda pod: -pod.index)

    def _new_names(self) -> Callable[[str], str]:
        """Gives the names of a new revision's pods."""
        self._revision += 1
        revision = self._revision
        return lambda name: new_pod_name(name, revision)

    def _whole_fleet(self, step: Step, name_of: Callable[[str], str]) -> WholeFleetRollout:
        old = processes_in_order(self._steps)
        self._steps.emit_step(step.do, None, f"{len(old)} processes are replaced")
        return WholeFleetRollout(self._steps, step.do, old, name_of)

    def _recreate(self, step: Step) -> None:
        name_of = self._new_names() if self._kind == DEPLOYMENT else str
        self._whole_fleet(step, name_of).recreate()

    def _blue_green(self, step: Step) -> None:
        self._whole_fleet(step, self._new_names()).blue_green()

    def _drain_node(self, step: Step) -> None:
        """Evict the pods of a node within their disruption budget."""
        running = self._steps.host.processes.values()
        pods = [pod for pod in running if step.members is None or pod.index in step.members]
        budget = self._steps.host.settings.pods("disruption_budget").of(len(running), round_up=True)
        self._steps.emit_step(step.do, None, f"{len(pods)} pods are evicted, {budget} at once")
        name_of = self._new_names() if self._kind == DEPLOYMENT else None
        NodeDrain(self._steps, step.do, pods, budget, name_of).advance()

    def _autoscale(self, step: Step) -> None:
        """Let the autoscaler work for ``for_ms``."""
        Autoscaler(self._steps, step.for_ms * 1000)

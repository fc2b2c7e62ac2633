"""Carries out the steps that only a Kafka Streams application knows: hosts, zones, new releases."""

from __future__ import annotations

from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.streams.application_settings import rack_name
from groupstorm.storms.streams.instances import StreamsInstances


class StreamsSteps:
    """Adds its steps to those of ``runner``, whose processes are instances."""

    def __init__(self, runner: StepRunner, instances: StreamsInstances) -> None:
        self._runner = runner
        self._instances = instances
        self._lost: dict[int, list[tuple[int, str]]] = {}
        runner.handlers |= {
            "lose-host": self._lose_host,
            "lose-zone": self._lose_zone,
            "restore-zone": self._restore_zone,
            "rolling-upgrade": self._rolling_upgrade,
        }

    def _lose(self, process: Process, do: str) -> None:
        self._runner.emit_step(do, process.name, "SIGKILL, and its disk is gone")
        process.crash()
        self._instances.lose_host(process.name)

    def _lose_host(self, step: Step) -> None:
        for process in self._runner.chosen(step):
            self._lose(process, step.do)

    def _lose_zone(self, step: Step) -> None:
        """Lose the hosts of all instances that run in the rack now; its brokers stay."""
        there = self._instances.in_rack(rack_name(step.rack))
        self._runner.emit_step(step.do, None, f"{len(there)} instances in {rack_name(step.rack)} are lost")
        self._lost[step.rack] = [(instance.index, instance.name) for instance in there]
        for instance in there:
            self._lose(instance, step.do)

    def _restore_zone(self, step: Step) -> None:
        lost = self._lost.pop(step.rack, [])
        self._runner.emit_step(
            step.do, None, f"{len(lost)} instances start in {rack_name(step.rack)}, without state"
        )
        for index, name in lost:
            delay_us = self._runner.delay_within_us(step.over_ms)
            self._runner.spawn(index, name, delay_us + self._runner.duration_us("start_ms"))

    def _rolling_upgrade(self, step: Step) -> None:
        self._instances.upgrade()
        self._runner.handlers["rolling-restart"](step)

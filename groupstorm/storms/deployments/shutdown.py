"""How a process ends that got SIGTERM: it drains and closes its consumer, or is killed after a while."""

from __future__ import annotations

from groupstorm.storms.deployments.readiness import consumers_of
from groupstorm.storms.deployments.steps_of_run import StepsOfRun
from groupstorm.storms.runs.scenario_host import Process


class Shutdown:
    """The shutdowns of a run's processes, after its settings."""

    def __init__(self, steps: StepsOfRun) -> None:
        self._steps = steps
        self._drains = steps.host.settings.distribution("drain_ms").largest_us > 0
        self._grace_ms = steps.host.settings.optional_integer("termination_grace_ms")

    def begin(self, process: Process, do: str) -> None:
        """SIGTERM has come: the application notices it after `stop_grace_ms`."""
        clock = self._steps.host.clock
        clock.after(self._steps.duration_us("stop_grace_ms"), self._drain, process)
        if self._grace_ms is not None:
            clock.after(self._grace_ms * 1000, self._kill, process, do)

    def _drain(self, process: Process) -> None:
        """The application finishes its batch: it does not poll, but its heartbeats go on."""
        if not self._drains:
            process.stop()
            return
        drain_us = self._steps.duration_us("drain_ms")
        for consumer in consumers_of(self._steps.host, process):
            consumer.pauses.busy(drain_us)
        self._steps.host.clock.after(drain_us, process.stop)

    def _kill(self, process: Process, do: str) -> None:
        """terminationGracePeriodSeconds are over: SIGKILL, without LeaveGroup."""
        if process.alive:
            self._steps.emit_step(do, process.name, f"SIGKILL {self._grace_ms} ms after SIGTERM")
            process.crash()

"""The time at which a started process counts as available: its readiness probe, then minReadySeconds."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.runs.scenario_host import Process, partitions_owned
from groupstorm.storms.runs.steps_of_run import StepsOfRun
from groupstorm.storms.scenario.deployment_settings import ASSIGNED

#: How often a probe looks whether the process owns a partition (`ready_when: assigned`).
PROBE_INTERVAL_US = 1_000_000


def time_to_available_us(steps: StepsOfRun) -> int:
    """From what `ready_when` says until the pod is available: its probe's delay, then minReadySeconds."""
    return steps.duration_us("ready_ms") + steps.host.settings.integer("min_ready_ms") * 1000


def await_available(
    steps: StepsOfRun, process: Process, then: Callable[[], None], ready_us: int | None = None
) -> None:
    """Call ``then`` when ``process``, which has just polled for the first time, is available.

    Never if it is gone before. ``ready_us``: how long that takes, if it is not drawn.
    """
    host = steps.host

    def ready_later() -> None:
        host.clock.after(time_to_available_us(steps) if ready_us is None else ready_us, available)

    def available() -> None:
        if process.alive:
            then()

    def probe() -> None:
        if partitions_owned(host, process):
            ready_later()
        elif process.alive:
            host.clock.after(PROBE_INTERVAL_US, probe)

    if host.settings.choice("ready_when") == ASSIGNED:
        probe()
    else:
        ready_later()

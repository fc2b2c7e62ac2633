"""What a rollout needs of the steps of its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from groupstorm.storms.runs.scenario_host import Process, StepHost


class StepsOfRun(Protocol):
    """Starts and stops processes, draws durations, emits what was done (`StepRunner`)."""

    host: StepHost

    def begin(self) -> None:
        """Something has begun that a run must wait for."""
        ...

    def end(self) -> None:
        """What `begin` announced is finished."""
        ...

    def duration_us(self, setting: str) -> int: ...

    def random_order(self, count: int) -> list[int]:
        """The numbers below ``count`` in an order that is drawn."""
        ...

    def name_of(self, index: int) -> str:
        """The name of the process in this place."""
        ...

    def emit_step(self, do: str, member: str | None, detail: str) -> None: ...

    def spawn(
        self, index: int, name: str, delay_us: int, on_started: Callable[[Process], None] | None = None
    ) -> None:
        """Start a new process under ``name``, which polls for the first time after ``delay_us``."""
        ...

    def terminate(self, process: Process, do: str, then: Callable[[], None] | None) -> None:
        """Send SIGTERM; call ``then`` when the process is gone."""
        ...

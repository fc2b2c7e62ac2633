"""The cost of a run on this machine, which its trace does not have; of the assignors also the failure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple


class AssignorWork:
    """A context in which the leader's assignor runs: it counts the runs and their CPU nanoseconds.

    ``failure`` is the first failure in full, for the assignor's author; the trace has its kind alone.
    """

    def __init__(self) -> None:
        self.assignments = 0
        self.spent_ns = 0
        self.failure: str | None = None
        self._begun_ns = 0

    def __enter__(self) -> None:
        self._begun_ns = time.process_time_ns()

    def __exit__(self, *_: object) -> None:
        self.spent_ns += time.process_time_ns() - self._begun_ns
        self.assignments += 1

    def measured(self) -> dict[str, int | float]:
        """For measured.json."""
        return {"assignments": self.assignments, "assignor_cpu_ms": round(self.spent_ns / 1e6, 3)}

    def failed(self, error: str, message: str) -> None:
        """The assignor has failed; as in Kafka, the leader's process ends."""
        self.failure = self.failure or f"{error}: {message}"


class MachineCost(NamedTuple):
    """The cost of a run. ``assignors``: as `AssignorWork.measured` gives it."""

    wall_seconds: float
    cpu_seconds: float
    assignors: Mapping[str, int | float]
    peak_memory_mib: int | None


class Clocks:
    """Runs from now on, while a storm runs; `cost` reads it."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def cost(self, work: AssignorWork | None) -> MachineCost:
        """``work``: the sums of the assignors' work, if the run keeps them."""
        return MachineCost(
            time.perf_counter() - self._wall,
            time.process_time() - self._cpu,
            {} if work is None else work.measured(),
            _peak_memory_mib(),
        )


def _peak_memory_mib() -> int | None:
    """None where Python has no `resource`, as in a browser."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

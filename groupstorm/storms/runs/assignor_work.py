"""What the trace does not say of a run's assignors: their CPU time, and the text of a failure."""

from __future__ import annotations

from time import process_time_ns


class AssignorWork:
    """A context in which the leader's assignor runs: it counts the runs and their CPU nanoseconds.

    ``failure`` is the first failure in full, for the assignor's author; the trace has its kind alone.
    """

    __slots__ = ("_begun_ns", "assignments", "failure", "spent_ns")

    def __init__(self) -> None:
        self.assignments = 0
        self.spent_ns = 0
        self.failure: str | None = None
        self._begun_ns = 0

    def __enter__(self) -> None:
        self._begun_ns = process_time_ns()

    def __exit__(self, *_: object) -> None:
        self.spent_ns += process_time_ns() - self._begun_ns
        self.assignments += 1

    def measured(self) -> dict[str, int | float]:
        """For measured.json."""
        return {"assignments": self.assignments, "assignor_cpu_ms": round(self.spent_ns / 1e6, 3)}

    def failed(self, error: str, message: str) -> None:
        """The assignor has failed; as in Kafka, the leader's process ends."""
        self.failure = self.failure or f"{error}: {message}"

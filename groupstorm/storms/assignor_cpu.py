"""What the assignors of a run cost the machine; nothing of it enters the trace."""

from __future__ import annotations

from time import process_time_ns


class AssignorCpu:
    """``with`` it the leader's assignor runs: how often, and how many CPU nanoseconds in all."""

    __slots__ = ("_begun_ns", "assignments", "spent_ns")

    def __init__(self) -> None:
        self.assignments = 0
        self.spent_ns = 0
        self._begun_ns = 0

    def __enter__(self) -> None:
        self._begun_ns = process_time_ns()

    def __exit__(self, *_: object) -> None:
        self.spent_ns += process_time_ns() - self._begun_ns
        self.assignments += 1

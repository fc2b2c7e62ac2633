"""Pairs of tasks on one client: the sticky assignors spread tasks so that pairs differ (TaskPairs)."""

from __future__ import annotations

from collections.abc import Iterable


class TaskPairs:
    """The pairs of tasks that have been on one client. After all pairs of a group have, no pair is new."""

    __slots__ = ("_most", "_pairs", "_partners")

    def __init__(self, tasks: int) -> None:
        self._most = tasks * (tasks - 1) // 2
        self._pairs = 0
        self._partners: dict[int, set[int]] = {}

    def add(self, task: int, others: Iterable[int]) -> None:
        own = self._partners.setdefault(task, set())
        for other in others:
            if other not in own:
                own.add(other)
                self._partners.setdefault(other, set()).add(task)
                self._pairs += 1

    def has_new(self, task: int, held: set[int]) -> bool:
        """Whether the task would meet a task that it has not met."""
        return self._pairs != self._most and not held <= self._partners.get(task, set())

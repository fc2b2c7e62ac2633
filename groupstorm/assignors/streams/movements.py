"""TaskMovement: from the target assignment to one that can run now.

A task whose target client is not caught up runs at its present client for now, and a warm-up replica on the
target client builds up the state. `max.warmup.replicas` limits the number of warm-ups, for active tasks and
standbys together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.javaheap import JavaPriorityQueue
from groupstorm.assignors.streams.lags import Lags
from groupstorm.assignors.streams.model import Placement


class Movement(NamedTuple):
    task: int
    destination: int


class TaskMovements:
    """The movements of one assignment, and per client the replicas that they left to warm up."""

    def __init__(self, placement: Placement, lags: Lags, warmups_max: int) -> None:
        self._placement = placement
        self._lags = lags
        self._warmups_left = warmups_max
        self.warmups: list[set[int]] = [set() for _ in placement.clients]
        self.standby_warmups: list[set[int]] = [set() for _ in placement.clients]

    def move_active(self) -> int:
        """assignActiveTaskMovements; returns how many tasks are not at their target."""
        movements = self._needed(self._placement.active)
        needed = len(movements)
        while movements:
            self._move_active(movements.poll())
        return needed

    def move_standbys(self) -> int:
        """assignStandbyTaskMovements; returns how many standbys are not at their target."""
        movements = self._needed(self._placement.standby)
        needed = 0
        while movements:
            needed += self._move_standby(movements.poll())
        return needed

    def _needed(self, held: list[set[int]]) -> JavaPriorityQueue[tuple[int, int], Movement]:
        """Tasks of which other clients are nearer than their own, the fewest such clients first."""
        queue: JavaPriorityQueue[tuple[int, int], Movement] = JavaPriorityQueue()
        lags = self._lags
        for client, tasks in enumerate(held):
            for task in sorted(tasks - self.warmups[client]):
                lag = lags.of(client, task)
                if not lags.acceptable(lag) and lags.lowest(task) < lag:
                    queue.offer((len(lags.caught_up(task)), task), Movement(task, client))
        return queue

    def _least_loaded_caught_up(self, task: int, valid: Callable[[int], bool]) -> int | None:
        candidates = [client for client in self._lags.caught_up(task) if valid(client)]
        return min(candidates, key=lambda client: (self._placement.load(client), client), default=None)

    def _most_caught_up(self, movement: Movement, valid: Callable[[int], bool]) -> int | None:
        """mostCaughtUpEligibleClient: of the clients that are nearer than the destination."""
        for client in self._lags.by_lag(movement.task):
            if client == movement.destination:
                return None
            if valid(client):
                return client
        return None

    def _move_active(self, movement: Movement) -> None:
        placement, (task, destination) = self._placement, movement
        source = self._least_loaded_caught_up(task, lambda client: task in placement.standby[client])
        if source is None:
            source = self._least_loaded_caught_up(task, lambda client: True)
        if source is None:
            source = self._most_caught_up(movement, lambda client: True)
        if source is None:
            raise AssignmentRefused(
                "IllegalStateException",
                "Tried to move task to more caught-up client as scheduled before but none exist",
            )
        swaps = task in placement.standby[source]
        placement.standby[source].discard(task)
        placement.active[source].add(task)
        placement.active[destination].remove(task)
        if swaps:
            placement.standby[destination].add(task)
        elif self._take_warmup():
            placement.standby[destination].add(task)
            self.warmups[destination].add(task)

    def _move_standby(self, movement: Movement) -> bool:
        placement, task = self._placement, movement.task

        def without_it(client: int) -> bool:
            return not placement.has(client, task)

        source = self._least_loaded_caught_up(task, without_it)
        if source is None:
            source = self._most_caught_up(movement, without_it)
        if source is None:
            return False
        placement.standby[source].add(task)
        if self._take_warmup():
            self.standby_warmups[movement.destination].add(task)
        else:
            placement.standby[movement.destination].remove(task)
        return True

    def _take_warmup(self) -> bool:
        self._warmups_left -= 1
        return self._warmups_left >= 0

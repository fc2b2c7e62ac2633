"""The tasks of a client's threads: StreamsPartitionAssignor.assignTasksToThreads.

Threads get their earlier tasks back as long as that keeps their loads even, the task with the lowest lag
first; the rest is dealt in order. Active stateful tasks come first, then standbys, then stateless tasks;
each time the tasks that a thread has already count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.javaheap import JavaPriorityQueue
from groupstorm.assignors.streams.model import Decision, StreamsClient, StreamsGroup
from groupstorm.assignors.userdata import java_sorted
from groupstorm.javahash import hash_order


class ThreadTasks(NamedTuple):
    active: list[int]
    standby: list[int]


def threads_of(group: StreamsGroup, client: int, decision: Decision) -> dict[str, ThreadTasks]:
    """Consumer -> its tasks. Kafka walks an assignment of KIP-924 in its table's order, others sorted."""
    state = group.clients[client]
    consumers = java_sorted(consumer.id for consumer in state.consumers)
    previous = {consumer.id: _by_lag(group, client, consumer.offset_sums) for consumer in state.consumers}
    placement = decision.placement
    running, replicas = sorted(placement.active[client]), sorted(placement.standby[client])
    if decision.tables is not None:
        held = decision.tables[client].keys()
        running, replicas = (
            hash_order([task for task in held if task in kind], group.task_hash)
            for kind in (placement.active[client], placement.standby[client])
        )
    stateful = hash_order([task for task in running if _has_lag(group, state, task)], group.task_hash)
    stateless = hash_order([task for task in running if not _has_lag(group, state, task)], group.task_hash)
    load = dict.fromkeys(consumers, 0)
    first = assign_to_threads(stateful, consumers, previous, load)
    second = assign_to_threads(replicas, consumers, previous, load)
    third = assign_to_threads(stateless, consumers, {}, load)
    return {
        consumer: ThreadTasks(first[consumer] + third[consumer], second[consumer]) for consumer in consumers
    }


def _has_lag(group: StreamsGroup, state: StreamsClient, task: int) -> bool:
    """ClientState.isStateful: the client knows the task's lag."""
    return task in state.lags or (state.fresh_elsewhere and task in group.end_offset_sums)


def _by_lag(group: StreamsGroup, client: int, offset_sums: Mapping[int, int]) -> list[int]:
    """prevTasksByLag: a thread's earlier tasks, the lowest lag first."""
    state = group.clients[client]
    known = [task for task in offset_sums if _has_lag(group, state, task)]
    return sorted(known, key=lambda task: (group.lag(client, task), task))


def assign_to_threads(
    tasks: Iterable[int],
    consumers: Sequence[str],
    previous: Mapping[str, Sequence[int]],
    load: dict[str, int],
) -> dict[str, list[int]]:
    """Deal tasks to consumers, and count them in ``load``; ``previous``: those to get back, in order."""
    queue = JavaPriorityQueue((task, task) for task in tasks)
    assigned: dict[str, list[int]] = {consumer: [] for consumer in consumers}
    if len(queue):
        least = (sum(load.values()) + len(queue)) // len(consumers)
        _Dealing(queue, assigned, load, least).deal(previous)
    for consumer, given in assigned.items():
        load[consumer] += len(given)
    return assigned


class _Dealing:
    """One call's state: every thread gets ``least`` tasks, some get one more."""

    def __init__(
        self,
        queue: JavaPriorityQueue[int, int],
        assigned: dict[str, list[int]],
        load: Mapping[str, int],
        least: int,
    ) -> None:
        self._queue = queue
        self._left = set(queue)
        self._assigned = assigned
        self._load = load
        self._least = least
        self._owners: dict[int, str] = {}

    def deal(self, previous: Mapping[str, Sequence[int]]) -> None:
        below = [
            consumer for consumer in self._assigned if self._give_back(consumer, previous.get(consumer, ()))
        ]
        self._fill(deque(below))
        if self._left:
            self._give_one_more()

    def _count(self, consumer: str) -> int:
        return len(self._assigned[consumer]) + self._load[consumer]

    def _give(self, task: int, consumer: str) -> None:
        self._left.remove(task)
        self._assigned[consumer].append(task)

    def _give_back(self, consumer: str, tasks: Sequence[int]) -> bool:
        """Give a consumer its earlier tasks up to its share and note the rest; whether it is still below."""
        for task in tasks:
            if task not in self._left:
                continue
            if self._count(consumer) < self._least:
                self._queue.remove(task)
                self._give(task, consumer)
            else:
                self._owners[task] = consumer
        return self._count(consumer) < self._least

    def _fill(self, below: deque[str]) -> None:
        while below:
            if not len(self._queue):
                raise AssignmentRefused(
                    "TaskAssignmentException",
                    "Ran out of unassigned stateful tasks but some members were not at capacity",
                )
            consumer = below.popleft()
            self._give(self._queue.poll(), consumer)
            if self._count(consumer) < self._least:
                below.append(consumer)

    def _give_one_more(self) -> None:
        """To the earlier owner if that has no more than its share, else in the heap's order."""
        takers = [consumer for consumer in self._assigned if self._count(consumer) == self._least]
        for task, consumer in sorted(self._owners.items()):
            if consumer in takers and task in self._left:
                self._queue.remove(task)
                self._give(task, consumer)
                takers.remove(consumer)
        for task, consumer in zip(self._queue, takers, strict=False):
            self._give(task, consumer)

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
    left = set(queue)
    least = (sum(load.values()) + len(queue)) // len(consumers) if left else 0
    assigned: dict[str, list[int]] = {consumer: [] for consumer in consumers}

    def give(task: int, consumer: str) -> None:
        left.remove(task)
        assigned[consumer].append(task)
        load[consumer] += 1

    owners: dict[int, str] = {}
    for consumer in consumers if left else ():
        for task in previous.get(consumer, ()):
            if task in left and load[consumer] < least:
                queue.remove(task)
                give(task, consumer)
            elif task in left:
                owners[task] = consumer
    below = deque(consumer for consumer in consumers if load[consumer] < least)
    while below:
        if not len(queue):
            raise AssignmentRefused(
                "TaskAssignmentException",
                "Ran out of unassigned stateful tasks but some members were not at capacity",
            )
        consumer = below.popleft()
        give(queue.poll(), consumer)
        if load[consumer] < least:
            below.append(consumer)
    # one more to some: to the earlier owner of a task, else in the order of the heap
    takers = [consumer for consumer in consumers if load[consumer] == least]
    for task, consumer in sorted(owners.items()):
        if consumer in takers and task in left:
            queue.remove(task)
            give(task, consumer)
            takers.remove(consumer)
    for task, consumer in zip(list(queue), takers, strict=False):
        give(task, consumer)
    return assigned

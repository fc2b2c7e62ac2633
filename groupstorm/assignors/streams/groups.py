"""The sticky task assignor of streams groups (KIP-1071), which runs in the broker.

Kafka: org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor, ProcessState. The assignor of
KIP-924 in `sticky` runs in the clients and has nothing but the name in common with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from groupstorm.assignors.streams.javaheap import JavaPriorityQueue
from groupstorm.javahash import JavaHashMap

#: A task: its subtopology and its number.
Task = tuple[str, int]
#: Tasks as requests and responses list them: subtopology and numbers.
TaskIds = tuple[tuple[str, tuple[int, ...]], ...]


class TaskMember(NamedTuple):
    """A member and what the assignor remembers of it. ``offsets``: of the tasks' state on its disk."""

    process: str
    active: frozenset[Task]
    standby: frozenset[Task]
    offsets: Mapping[Task, int]


class TaskCounts(NamedTuple):
    """The tasks of a subtopology; ``is_stateful``: it has changelogs, so its tasks have standbys."""

    subtopology: str
    tasks: int
    is_stateful: bool


class Placed(NamedTuple):
    """The tasks of one member."""

    active: frozenset[Task]
    standby: frozenset[Task]


def assign_tasks(
    members: JavaHashMap[str, TaskMember],
    counts: Sequence[TaskCounts],
    standby_replicas: int,
    *,
    is_4_4: bool,
) -> dict[str, Placed]:
    """Place all tasks on the members, which come in Kafka's order; subtopologies come sorted.

    Kafka 4.4.0 chooses among earlier owners with other rules than 4.3.1 does, and iterates over the processes
    in another order.
    """
    draft = _Draft(members, counts, standby_replicas, is_4_4)
    draft.place_active()
    if standby_replicas:
        draft.place_standbys()
    return {
        member_id: Placed(frozenset(draft.active[member_id]), frozenset(draft.standby[member_id]))
        for member_id in members
    }


class _Quota:
    """Tasks that each member may still get: members that have exactly as many are taken out with them."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = 0
        self._divide()

    def _divide(self) -> None:
        self.each = -(-self._tasks // self._members) if self._members else 0

    def count(self, tasks_of_member: int) -> None:
        """A member has got a task, and has so many now."""
        if tasks_of_member == self.each:
            self._members -= 1
            self._tasks -= tasks_of_member
            self._divide()


class _Process:
    """The members of a process and how many tasks each has."""

    def __init__(self) -> None:
        self.counts: JavaHashMap[str, int] = JavaHashMap()
        self.tasks: set[Task] = set()
        self._task_count = 0
        self._queue: JavaPriorityQueue[int, str] | None = None

    @property
    def load(self) -> float:
        return self._task_count / len(self.counts)

    def add(self, member_id: str, task: Task) -> int:
        """Give a member the task; how many it has now."""
        self._queue = None
        return self._add(member_id, task)

    def add_to_least_loaded(self, task: Task) -> tuple[str, int]:
        """Give the task to the member with the fewest: the member, and how many it has now."""
        if len(self.counts) == 1:
            member_id = self.counts.first()
            return member_id, self._add(member_id, task)
        if self._queue is None:
            self._queue = JavaPriorityQueue()
            for member_id, count in self.counts.items():
                self._queue.offer(count, member_id)
        member_id = self._queue.poll()
        count = self._add(member_id, task)
        self._queue.offer(count, member_id)
        return member_id, count

    def _add(self, member_id: str, task: Task) -> int:
        self._task_count += 1
        self.tasks.add(task)
        self.counts.put(member_id, self.counts[member_id] + 1)
        return self.counts[member_id]


class _Draft:
    """An assignment in progress."""

    def __init__(
        self,
        members: JavaHashMap[str, TaskMember],
        counts: Sequence[TaskCounts],
        standby_replicas: int,
        is_4_4: bool,
    ) -> None:
        self._is_4_4 = is_4_4
        self._replicas = standby_replicas
        self._all = [(one.subtopology, number) for one in counts for number in range(one.tasks)]
        stateful = {one.subtopology for one in counts if one.is_stateful}
        self._stateful = [task for task in self._all if task[0] in stateful]
        self._active_quota = _Quota(len(self._all), len(members))
        self._quota = _Quota(len(self._all) + standby_replicas * len(self._stateful), len(members))
        self.active: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self.standby: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._process_of = {member_id: member.process for member_id, member in members.items()}
        self._processes: JavaHashMap[str, _Process] = JavaHashMap(initial_capacity=len(members))
        self._last_active: dict[Task, str] = {}
        candidates: dict[Task, list[tuple[bool, int, str]]] = {}
        for member_id, member in members.items():
            self._process(member.process).counts.put(member_id, 0)
            self._last_active.update(dict.fromkeys(member.active, member_id))
            for task in member.standby:
                candidates.setdefault(task, []).append((False, -member.offsets.get(task, 0), member_id))
            for task, offset in member.offsets.items():
                if task not in member.standby:
                    candidates.setdefault(task, []).append((True, -offset, member_id))
        #: The earlier holders of a task's state: standbys first, and the latest offset first.
        self._candidates = {
            task: [one[2] for one in sorted(listed, key=lambda one: one[:2])]
            for task, listed in candidates.items()
        }

    def _process(self, name: str) -> _Process:
        if self._is_4_4:
            return self._processes.compute_if_absent(name, _Process)
        if name not in self._processes:
            self._processes.put(name, _Process())
        return self._processes[name]

    def _of(self, member_id: str) -> _Process:
        return self._processes[self._process_of[member_id]]

    def _give(self, member_id: str, task: Task, *, is_active: bool) -> None:
        count = self._of(member_id).add(member_id, task)
        self._note(member_id, task, count, is_active=is_active)

    def _give_to_least_loaded(self, process: _Process, task: Task, *, is_active: bool) -> None:
        member_id, count = process.add_to_least_loaded(task)
        self._note(member_id, task, count, is_active=is_active)

    def _note(self, member_id: str, task: Task, count: int, *, is_active: bool) -> None:
        (self.active if is_active else self.standby)[member_id].add(task)
        if is_active:
            self._active_quota.count(count)
        self._quota.count(count)

    def _tasks_of(self, member_id: str) -> int:
        return self._of(member_id).counts[member_id]

    def place_active(self) -> None:
        """Active tasks go to their last owner, else to one that has their state, else where there is room."""
        tasks = sorted(self._all, key=lambda task: (task[1], task[0]))
        tasks = self._keep(tasks, self._last_active.get)
        tasks = self._keep(tasks, lambda task: self._least_loaded(self._candidates.get(task, ()), None))
        queue = self._queue_of_processes()
        for task in sorted(tasks):
            process = queue.poll()
            self._give_to_least_loaded(process, task, is_active=True)
            queue.offer(process.load, process)

    def _keep(self, tasks: Iterable[Task], owner_of: Callable[[Task], str | None]) -> list[Task]:
        """Give each task to its owner while the owner is below its quota; the other tasks."""
        others = []
        for task in tasks:
            owner = owner_of(task)
            if owner is not None and self._tasks_of(owner) < self._active_quota.each:
                self._give(owner, task, is_active=True)
            else:
                others.append(task)
        return others

    def _queue_of_processes(self) -> JavaPriorityQueue[float, _Process]:
        queue: JavaPriorityQueue[float, _Process] = JavaPriorityQueue()
        for process in self._processes.values():
            queue.offer(process.load, process)
        return queue

    def _least_loaded(self, members: Sequence[str], standby: Task | None) -> str | None:
        """The first of the members, unless a later one has both a process of less load and fewer tasks.

        With ``standby``, a member does not count whose process has the task; Kafka 4.3.1 looks only at those
        that it comes to choose, and at the first one last.
        """
        chosen = None
        for member_id in members:
            has_task = standby is not None and standby in self._of(member_id).tasks
            if has_task and (self._is_4_4 or chosen is not None):
                continue
            if chosen is None or (
                self._of(member_id).load < self._of(chosen).load
                and self._tasks_of(member_id) < self._tasks_of(chosen)
            ):
                chosen = member_id
        if chosen is not None and standby is not None and standby in self._of(chosen).tasks:
            return None
        return chosen

    def place_standbys(self) -> None:
        """Standbys go to the last owners of the task or its state, else to the process of the least load."""
        set_aside = []
        for task in sorted(self._stateful, key=lambda task: (task[1], task[0]), reverse=True):
            for replica in range(self._replicas):
                owner = self._standby_owner(task)
                if owner is None:
                    set_aside.append((task, self._replicas - replica))
                    break
                self._give(owner, task, is_active=False)
        queue = self._queue_of_processes()
        for task, replicas in sorted(set_aside, key=lambda one: one[0], reverse=True):
            for _ in range(replicas):
                if not self._place_standby(queue, task):
                    break

    def _standby_owner(self, task: Task) -> str | None:
        owner = self._last_active.get(task)
        if (
            owner is not None
            and task not in self._of(owner).tasks
            and self._tasks_of(owner) < self._quota.each
        ):
            return owner
        holder = self._least_loaded(self._candidates.get(task, ()), task)
        return holder if holder is not None and self._tasks_of(holder) < self._quota.each else None

    def _place_standby(self, queue: JavaPriorityQueue[float, _Process], task: Task) -> bool:
        """Give the standby to the first process that has not the task; False if all have it."""
        passed = []
        is_placed = False
        while len(queue) and not is_placed:
            process = queue.poll()
            passed.append(process)
            if task not in process.tasks:
                self._give_to_least_loaded(process, task, is_active=False)
                is_placed = True
        for process in reversed(passed):
            queue.offer(process.load, process)
        return is_placed

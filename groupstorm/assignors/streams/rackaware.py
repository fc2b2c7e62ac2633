"""KIP-925: placements with less traffic between racks; every client keeps its number of tasks.

RackAwareTaskAssignor and, for KIP-924's public assignors, TaskAssignmentUtils. On graphs up to
`SMALL_GRAPH` the answer is Kafka's own, task by task (`graphs`). On larger ones `collapsed` finds the same
cost; Kafka's solver would take minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams import collapsed, graphs
from groupstorm.assignors.streams.costs import CrossRack
from groupstorm.assignors.streams.graphs import Problem
from groupstorm.assignors.streams.model import Config, Costs, Placement, Solver, Strategy, StreamsGroup

#: Up to here this module computes Kafka's own choice among the optima. The size is tasks * tasks * clients,
#: to which the time of Kafka's solver is proportional. 150 tasks on 13 clients take half a second.
SMALL_GRAPH = 300_000
#: RackAwareTaskAssignor.STANDBY_OPTIMIZER_MAX_ITERATION.
_STANDBY_ROUNDS_MAX = 4

#: Whether this task's standby may move from the one client to the other.
MayMove = Callable[[int, int, int], bool]
#: Called for each move: the task, the client that it leaves, the client to which it comes.
OnMove = Callable[[int, int, int], None]


def graph_size(tasks: int, clients: int) -> int:
    return tasks * tasks * clients


class Optimisation(NamedTuple):
    """The parameters of one optimisation; ``clients`` are in the order of their nodes.

    ``pairs``: the graph for two clients, without shares in Kafka's internal assignors.
    """

    group: StreamsGroup
    cross_rack: CrossRack
    costs: Costs
    strategy: Strategy
    clients: Sequence[int]
    solver: Solver = Solver.AUTO
    pairs: Strategy = Strategy.MIN_TRAFFIC
    on_move: OnMove | None = None

    @classmethod
    def of(cls, cross_rack: CrossRack, costs: Costs, config: Config) -> Optimisation:
        """As configured, over all clients by ProcessId."""
        group = cross_rack.racks.group
        return cls(group, cross_rack, costs, config.strategy, range(len(group.clients)), config.solver)

    def active(self, placement: Placement, tasks: Iterable[int]) -> int:
        """optimizeActiveTasks: returns the cost, moving included; refuses a task of no client, or of two."""
        chosen = sorted(tasks)
        if not chosen:
            return 0
        problem = self._problem(chosen, self.clients, placement.active, self.strategy)
        places = self._solve(problem, graph_size(len(chosen), len(self.clients)))
        self._apply(problem, places, placement, placement.active)
        return problem.total(places)

    def standby(
        self, placement: Placement, may_move: MayMove = lambda source, destination, task: True
    ) -> int:
        """optimizeStandbyTasks: exchange standbys, pair by pair of clients; returns the remaining cost."""
        standbys = set().union(*placement.standby)
        # refuse a task without a price before any task moves
        self.cross_rack.total(placement.standby, standbys)
        size = graph_size(len(standbys), len(self.clients))
        for _ in range(_STANDBY_ROUNDS_MAX):
            if not self._exchange_standbys(placement, may_move, size):
                break
        return self.costs.traffic * self.cross_rack.total(placement.standby, standbys)

    def _exchange_standbys(self, placement: Placement, may_move: MayMove, size: int) -> bool:
        moved = False
        racks = self.cross_rack.racks.numbers
        for at, one in enumerate(self.clients):
            if racks[one] < 0 and at + 1 < len(self.clients):
                raise AssignmentRefused(
                    "NullPointerException", 'Cannot invoke "String.equals(Object)" because "rack1" is null'
                )
            for other in self.clients[at + 1 :]:
                if racks[one] == racks[other]:
                    continue
                from_one = _movable(placement, one, other, may_move)
                from_other = _movable(placement, other, one, may_move)
                if not from_one or not from_other:
                    continue
                tasks, clients = sorted(from_one + from_other), sorted((one, other))
                problem = self._problem(tasks, clients, placement.standby, self.pairs)
                places = self._solve(problem, size)
                moved |= self._apply(problem, places, placement, placement.standby)
        return moved

    def _problem(
        self, tasks: Sequence[int], clients: Sequence[int], held: Sequence[set[int]], strategy: Strategy
    ) -> Problem:
        position = {task: at for at, task in enumerate(tasks)}
        present = [-1] * len(tasks)
        for at, client in enumerate(clients):
            for task in held[client]:
                if task in position:
                    if present[position[task]] >= 0:
                        self._refuse(task, "assigned to multiple clients")
                    present[position[task]] = at
        for task, at in zip(tasks, present, strict=True):
            if at < 0:
                self._refuse(task, "not assigned to any client")
        balanced = strategy is Strategy.BALANCE_SUBTOPOLOGY
        groups = self._groups(position) if balanced else None
        return Problem(tasks, clients, present, self.cross_rack, self.costs, groups)

    def _apply(
        self, problem: Problem, places: Sequence[int], placement: Placement, held: Sequence[set[int]]
    ) -> bool:
        moved = False
        for task, before, after in zip(problem.tasks, problem.present, places, strict=True):
            if before == after:
                continue
            source, destination = problem.clients[before], problem.clients[after]
            held[source].remove(task)
            if placement.has(destination, task):  # an active task where it has a standby
                name = self.group.tasks[task].id
                raise AssignmentRefused(
                    "IllegalArgumentException", f"Tried to assign task {name}, but it is already assigned"
                )
            held[destination].add(task)
            if self.on_move is not None:
                self.on_move(task, source, destination)
            moved = True
        return moved

    def _refuse(self, task: int, why: str) -> None:
        raise AssignmentRefused("IllegalArgumentException", f"Task {self.group.tasks[task].id} {why}")

    def _groups(self, position: dict[int, int]) -> list[list[int]]:
        groups = [
            [position[task] for task in group if task in position] for group in self.group.subtopologies
        ]
        return [group for group in groups if group]

    def _solve(self, problem: Problem, size: int) -> list[int]:
        small = size <= SMALL_GRAPH if self.solver is Solver.AUTO else self.solver is Solver.CYCLE_CANCELING
        return graphs.solve(problem) if small else collapsed.solve(problem)


def _movable(placement: Placement, source: int, destination: int, may_move: MayMove) -> list[int]:
    return [
        task
        for task in placement.standby[source]
        if not placement.has(destination, task) and may_move(source, destination, task)
    ]

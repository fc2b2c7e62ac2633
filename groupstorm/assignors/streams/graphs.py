"""KIP-925's two flow graphs, built and solved as Kafka does, for graphs of a size that Kafka's solver can
take.

`Problem` is the input; a solution is the client of every task. The graphs number their nodes as Kafka does,
because the order of nodes decides between optima: the source, tasks, the first layer of clients (one for
each sub-topology, or one), for the balanced graph a second layer, the sink.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack
from groupstorm.assignors.streams.cyclecanceling import FlowGraph
from groupstorm.assignors.streams.model import Costs

_SOURCE = 0
_FIRST_TASK = 1


@dataclass(frozen=True)
class Problem:
    """Tasks to place anew; each client keeps its number of them.

    ``clients`` in the order of their nodes; ``present``: per task, the place in ``clients`` where it is
    now. ``groups``: the tasks, as positions in ``tasks``, by sub-topology; None if sub-topologies are not
    balanced.
    """

    tasks: Sequence[int]
    clients: Sequence[int]
    present: Sequence[int]
    cross_rack: CrossRack
    costs: Costs
    groups: Sequence[Sequence[int]] | None = None

    def counts(self) -> list[int]:
        counts = [0] * len(self.clients)
        for client in self.present:
            counts[client] += 1
        return counts

    def cost(self, task: int, client: int) -> int:
        """RackAwareTaskAssignor.getCost of the task and the client at these positions."""
        crossing = self.cross_rack.count(self.tasks[task], self.clients[client])
        moving = 0 if self.present[task] == client else self.costs.non_overlap
        return crossing * self.costs.traffic + moving

    def total(self, places: Sequence[int]) -> int:
        return sum(self.cost(task, client) for task, client in enumerate(places))


def shares(counts: Sequence[int], tasks: int, of_group: int) -> list[int]:
    """The tasks of a sub-topology that each client may have: its share of all tasks, rounded up.

    In floating point and in Kafka's order of operations (BalanceSubtopologyGraphConstructor): 14 of 50
    tasks and a sub-topology of 25 give 8, not 7.
    """
    return [math.ceil(count * 1.0 / tasks * of_group) for count in counts]


def solve(problem: Problem) -> list[int]:
    """Per task the position of its client, as Kafka's graphs and its solver give it."""
    return _min_traffic(problem) if problem.groups is None else _balanced(problem, problem.groups)


def _min_traffic(problem: Problem) -> list[int]:
    """MinTrafficGraphConstructor: starts from the present placement."""
    tasks, clients = len(problem.tasks), len(problem.clients)
    first_client = _FIRST_TASK + tasks
    sink = first_client + clients
    graph = FlowGraph(sink + 1)
    edges = [
        [
            graph.add_edge(
                _FIRST_TASK + task,
                first_client + client,
                1,
                problem.cost(task, client),
                int(problem.present[task] == client),
            )
            for client in range(clients)
        ]
        for task in range(tasks)
    ]
    for task in range(tasks):
        graph.add_edge(_SOURCE, _FIRST_TASK + task, 1, 0, 1)
    for client, count in enumerate(problem.counts()):
        graph.add_edge(first_client + client, sink, count, 0, count)
    graph.freeze()
    graph.cancel_negative_cycles()
    return [_chosen(graph, of_task) for of_task in edges]


def _balanced(problem: Problem, groups: Sequence[Sequence[int]]) -> list[int]:
    """BalanceSubtopologyGraphConstructor: starts from any flow that keeps the shares."""
    tasks, clients, counts = len(problem.tasks), len(problem.clients), problem.counts()
    first_client = _FIRST_TASK + tasks
    second_layer = first_client + clients * len(groups)
    sink = second_layer + clients
    graph = FlowGraph(sink + 1)
    edges: list[list[int]] = [[] for _ in range(tasks)]
    for number, group in enumerate(groups):
        layer = first_client + clients * number
        for client, share in enumerate(shares(counts, tasks, len(group))):
            for task in group:
                cost = problem.cost(task, client)
                edges[task].append(graph.add_edge(_FIRST_TASK + task, layer + client, 1, cost, 0))
            graph.add_edge(layer + client, second_layer + client, share, 0, 0)
    for task in range(tasks):
        graph.add_edge(_SOURCE, _FIRST_TASK + task, 1, 0, 0)
    for client, count in enumerate(counts):
        graph.add_edge(second_layer + client, sink, count, 0, 0)
    graph.freeze()
    check_max_flow(graph.send_max_flow(_SOURCE, sink), tasks)
    graph.cancel_negative_cycles()
    return [_chosen(graph, of_task) for of_task in edges]


def check_max_flow(sent: int, tasks: int) -> None:
    """All tasks fit within the shares: integrality of S*C/n, which is a fractional flow."""
    if sent != tasks:
        raise AssignmentRefused(
            "IllegalStateException", f"max flow calculated: {sent} doesn't match taskSize: {tasks}"
        )


def _chosen(graph: FlowGraph, edges: Sequence[int]) -> int:
    return next(client for client, edge in enumerate(edges) if graph.flow(edge) > 0)

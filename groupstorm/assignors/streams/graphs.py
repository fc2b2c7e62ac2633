"""KIP-925's two flow graphs, built and solved as Kafka does, for the sizes that Kafka's solver can take.

`Problem` is the input; a solution is the client of every task. The graphs number their nodes as Kafka does,
because the order of nodes decides between optima: the source, tasks, the first layer of clients (one for
each sub-topology, or one), for the balanced graph a second layer, the sink.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack
from groupstorm.assignors.streams.model import Costs

_NO_NODE = -1
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
    edges: list[list[int]] = [[] for _ in range(tasks)]
    for task, present in enumerate(problem.present):
        for client in range(clients):
            cost, flow = problem.cost(task, client), int(client == present)
            edges[task].append(graph.add_edge(_FIRST_TASK + task, first_client + client, 1, cost, flow))
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


class FlowGraph:
    """Klein's cycle cancelling, the solver that KIP-925 describes and Kafka ships (Graph).

    Nodes are numbers; an edge and its reverse are open while they can carry flow. The order in which negative
    cycles are found determines the optimum, so this is Kafka's search: nodes in ascending order, Bellman-Ford
    for as many passes as there are nodes, from the node that is relaxed first in the last pass back along its
    parents. The steps that this class omits change nothing: a node whose distance did not change since its
    edges were last tried can relax nothing, and after a pass that relaxes nothing no later one will.

    A cycle takes O(nodes x edges). For large graphs see `collapsed`.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        #: Per node its open edges as (end, edge, cost), in the order of their ends.
        self._open: list[list[tuple[int, int, int]]] = [[] for _ in range(nodes)]
        self._ends: list[int] = []
        self._costs: list[int] = []
        self._residual: list[int] = []
        self._in_use = [False] * nodes

    def add_edge(self, start: int, end: int, capacity: int, cost: int, flow: int) -> int:
        """Add an edge that carries ``flow`` already; returns its number, for `flow`."""
        number = len(self._ends)
        if capacity > flow:
            self._open[start].append((end, number, cost))
        if flow:
            self._open[end].append((start, number + 1, -cost))
        self._ends += [end, start]
        self._costs += [cost, -cost]
        self._residual += [capacity - flow, flow]
        self._in_use[start] = self._in_use[end] = True
        return number

    def flow(self, edge: int) -> int:
        return self._residual[edge + 1]

    def freeze(self) -> None:
        """Bring the edges into Kafka's order; call it once, after all edges are added."""
        for edges in self._open:
            edges.sort()

    def send_max_flow(self, source: int, sink: int) -> int:
        """Ford and Fulkerson by breadth-first search, from no flow; returns the flow that arrives."""
        total = 0
        while True:
            path = self._path(source, sink)
            if not path:
                return total
            possible = min(self._residual[edge] for edge in path)
            self._send(path, possible)
            total += possible

    def _path(self, source: int, sink: int) -> list[int]:
        arrived: dict[int, int] = {source: _NO_NODE}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for end, edge, _ in self._open[node]:
                if end in arrived:
                    continue
                arrived[end] = edge
                if end == sink:
                    return self._back(arrived, sink)
                queue.append(end)
        return []

    def _back(self, arrived: dict[int, int], node: int) -> list[int]:
        path = []
        while arrived[node] != _NO_NODE:
            path.append(arrived[node])
            node = self._ends[arrived[node] ^ 1]
        return path

    def _send(self, edges: list[int], amount: int) -> None:
        for edge in edges:
            self._residual[edge] -= amount
            self._residual[edge ^ 1] += amount
            if not self._residual[edge]:
                self._open[self._ends[edge ^ 1]].remove(self._entry(edge))
            if self._residual[edge ^ 1] == amount:
                insort(self._open[self._ends[edge]], self._entry(edge ^ 1))

    def _entry(self, edge: int) -> tuple[int, int, int]:
        return self._ends[edge], edge, self._costs[edge]

    def cancel_negative_cycles(self) -> int:
        """Cancel negative cycles until there are none; returns how many there were."""
        cancelled = 0
        while True:
            cycle = self._negative_cycle()
            if not cycle:
                return cancelled
            self._send(cycle, min(self._residual[edge] for edge in cycle))
            cancelled += 1

    def _negative_cycle(self) -> list[int]:
        """The edges of a cycle of negative cost, if there is one.

        Kafka searches from an extra node that leads to every node at no cost, so every distance
        starts at 0.
        """
        parents = [_NO_NODE] * self._nodes
        node = self._relax(parents)
        if node == _NO_NODE:
            return []
        visited = set()
        while node not in visited:
            visited.add(node)
            node = self._ends[parents[node] ^ 1]
        cycle = [parents[node]]
        start = self._ends[parents[node] ^ 1]
        while start != node:
            cycle.append(parents[start])
            start = self._ends[parents[start] ^ 1]
        return cycle

    def _relax(self, parents: list[int]) -> int:
        """Bellman-Ford: the first node that the last pass relaxes; fills ``parents`` with edges."""
        edges = self._open
        distances = [0] * self._nodes
        changed = list(self._in_use)
        passes = sum(self._in_use) + 1  # Kafka's node count includes its extra node
        for number in range(passes):
            last = number == passes - 1
            relaxed = False
            for start in range(self._nodes):
                if not changed[start]:
                    continue
                changed[start] = False
                distance = distances[start]
                for end, edge, cost in edges[start]:
                    if distances[end] > distance + cost:
                        distances[end] = distance + cost
                        parents[end] = edge
                        if last:
                            return end
                        changed[end] = relaxed = True
            if not relaxed:
                return _NO_NODE
        return _NO_NODE

"""Klein's cycle cancelling on a flow network, the solver that KIP-925 describes and Kafka ships (Graph).

The order in which negative cycles are found determines the optimum, so this is Kafka's search: nodes in
ascending order, Bellman-Ford for as many passes as there are nodes, from the node that is relaxed first in
the last pass back along its parents. The steps that this module omits change nothing: a node whose distance
did not change since its edges were last tried can relax nothing, and after a pass that relaxes nothing no
later one will.

The time is that of Klein's algorithm: O(nodes x edges) for each cycle. For large graphs see `collapsed`.
"""

from __future__ import annotations

from bisect import insort
from collections import deque

_NO_NODE = -1


class FlowGraph:
    """A network of numbered nodes; an edge and its reverse are open while they can carry flow."""

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

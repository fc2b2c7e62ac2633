"""Minimum-cost flow by shortest paths, for the small networks that `collapsed` builds.

The primal-dual method (Edmonds and Karp; Ahuja, Magnanti and Orlin, Network Flows, section 9.8): potentials
make every residual arc's reduced cost non-negative, a Dijkstra finds all nodes at the next distance, and
then as much as possible is sent along arcs without reduced cost (Dinic). Arcs are tried in the order in
which they were added, so the same network gives the same flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TypeVar

N = TypeVar("N")

_UNREACHED = 1 << 62


class FlowNetwork:
    """Arcs with a capacity and a cost of 0 or more; the arc with the next number is its reverse."""

    def __init__(self) -> None:
        self._arcs: list[list[int]] = []
        self._heads: list[int] = []
        self._left: list[int] = []
        self._costs: list[int] = []
        self._potentials: list[int] = []

    def add_node(self) -> int:
        self._arcs.append([])
        return len(self._arcs) - 1

    def add_arc(self, tail: int, head: int, capacity: int, cost: int) -> int:
        """Add an arc; returns its number, for `flow`."""
        number = len(self._heads)
        self._arcs[tail].append(number)
        self._arcs[head].append(number + 1)
        self._heads += [head, tail]
        self._left += [capacity, 0]
        self._costs += [cost, -cost]
        return number

    def flow(self, arc: int) -> int:
        return self._left[arc + 1]

    def ends(self, arcs: Iterable[tuple[N, int]]) -> Iterator[N]:
        """The end of each (end, arc), as often as the arc carries flow."""
        return (end for end, arc in arcs for _ in range(self._left[arc + 1]))

    def send(self, source: int, sink: int) -> int:
        """Send as much as possible at the lowest cost; returns how much that is."""
        self._potentials = [0] * len(self._arcs)
        total = 0
        while self._lengthen(source, sink):
            total += self._send_along_free_arcs(source, sink)
        return total

    def _lengthen(self, source: int, sink: int) -> bool:
        """Dijkstra; sets potentials so that shortest paths cost nothing. Whether there is a path."""
        potentials, heads, left, costs = self._potentials, self._heads, self._left, self._costs
        distances = [_UNREACHED] * len(potentials)
        distances[source] = 0
        queue = [(0, source)]
        reached = _UNREACHED
        while queue:
            distance, node = heappop(queue)
            if distance > distances[node]:
                continue
            if node == sink:
                reached = distance
                break
            here = distance + potentials[node]
            for arc in self._arcs[node]:
                if left[arc]:
                    head = heads[arc]
                    there = here + costs[arc] - potentials[head]
                    if there < distances[head]:
                        distances[head] = there
                        heappush(queue, (there, head))
        if reached == _UNREACHED:
            return False
        for node, distance in enumerate(distances):
            potentials[node] += min(distance, reached)
        return True

    def _send_along_free_arcs(self, source: int, sink: int) -> int:
        total = 0
        while True:
            levels = self._levels(source, sink)
            if levels[sink] < 0:
                return total
            total += self._send_level_by_level(source, sink, levels)

    def _levels(self, source: int, sink: int) -> list[int]:
        """Steps from the source along free arcs; -1: not reached before the sink was."""
        potentials, heads, left, costs = self._potentials, self._heads, self._left, self._costs
        levels = [-1] * len(potentials)
        levels[source] = 0
        here = [source]
        while here and levels[sink] < 0:
            following = []
            for node in here:
                height = potentials[node]
                for arc in self._arcs[node]:
                    head = heads[arc]
                    if levels[head] < 0 and left[arc] and height + costs[arc] == potentials[head]:
                        levels[head] = levels[node] + 1
                        following.append(head)
            here = following
        return levels

    def _send_level_by_level(self, source: int, sink: int, levels: list[int]) -> int:
        """A blocking flow, depth first; every arc is abandoned at most once."""
        heads, left = self._heads, self._left
        tried = [0] * len(levels)
        path: list[int] = []
        node, total = source, 0
        while True:
            if node == sink:
                amount = min(left[arc] for arc in path)
                for arc in path:
                    left[arc] -= amount
                    left[arc ^ 1] += amount
                total += amount
                full = next(at for at, arc in enumerate(path) if not left[arc])
                node = heads[path[full] ^ 1]
                del path[full:]
                continue
            arc = self._next_arc(node, levels, tried)
            if arc >= 0:
                path.append(arc)
                node = heads[arc]
            elif path:
                node = heads[path.pop() ^ 1]
                tried[node] += 1
            else:
                return total

    def _next_arc(self, node: int, levels: list[int], tried: list[int]) -> int:
        potentials, heads, left, costs = self._potentials, self._heads, self._left, self._costs
        arcs, at = self._arcs[node], tried[node]
        level, height = levels[node] + 1, potentials[node]
        while at < len(arcs):
            arc = arcs[at]
            head = heads[arc]
            if left[arc] and levels[head] == level and height + costs[arc] == potentials[head]:
                tried[node] = at
                return arc
            at += 1
        tried[node] = at
        return -1

"""KIP-925's two problems with equal nodes merged: the same cost in a thousandth of the time.

Tasks of the same cost row are interchangeable, and so are clients that do not differ in rack and size. The
merged network has a few dozen nodes, or with shares and a cost of moving a few per client. Shortest paths
solve it (`FlowNetwork`). The cost is the minimum; these rules determine the optimum:

* the network's arcs stand in the order of cost rows by their first task, then racks by name, then clients,
  and they are tried in that order;
* of equal tasks on one client, those with the smallest TaskIds stay;
* tasks that move go, ascending, to the free places of the rack's clients, ascending by ProcessId;
* without a cost of moving and with shares, tasks are dealt to a rack's clients in turn.

Without shares it is enough to look at racks: every client keeps its number of tasks, so a client that gives
tasks away can take any others, and a move within a rack gains nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from groupstorm.assignors.streams.graphs import Problem, check_max_flow, shares

Row = tuple[int, ...]


def solve(problem: Problem) -> list[int]:
    """Per task the position of its client, at the lowest cost."""
    if problem.groups is None:
        return _by_racks(problem)
    if problem.costs.non_overlap == 0:
        return _by_alike_clients(problem, problem.groups)
    return _ByClients(problem, problem.groups).solve()


def _racks(problem: Problem) -> list[int]:
    """Per client the number of its rack; asks for a price first, so that a missing rack is refused."""
    for client in problem.clients:
        problem.cross_rack.count(problem.tasks[0], client)
    return [problem.cross_rack.racks.numbers[client] for client in problem.clients]


def _by_racks(problem: Problem) -> list[int]:
    """Without shares: cost rows x racks."""
    rack_of, costs = _racks(problem), problem.costs
    alike: dict[tuple[Row, int], list[int]] = {}
    for task, client in enumerate(problem.present):
        row = problem.cross_rack.row(problem.tasks[task])
        alike.setdefault((row, rack_of[client]), []).append(task)
    places_of_rack: dict[int, int] = defaultdict(int)
    for client, count in enumerate(problem.counts()):
        places_of_rack[rack_of[client]] += count
    # Of equal costs the one with the fewest moves: a move costs a fraction of any other cost.
    weight, moving = (len(problem.tasks) + 1, 1) if costs.non_overlap == 0 else (1, costs.non_overlap)
    network = FlowNetwork()
    source, sink = network.add_node(), network.add_node()
    rack_nodes = {rack: network.add_node() for rack in sorted(places_of_rack)}
    arcs: dict[tuple[Row, int], list[tuple[int, int]]] = {}
    for (row, home), tasks in alike.items():
        node = network.add_node()
        network.add_arc(source, node, len(tasks), 0)
        arcs[row, home] = []
        for rack, there in rack_nodes.items():
            price = row[rack] * costs.traffic * weight + (moving if rack != home else 0)
            arcs[row, home].append((rack, network.add_arc(node, there, len(tasks), price)))
    for rack, node in rack_nodes.items():
        network.add_arc(node, sink, places_of_rack[rack], 0)
    check_max_flow(network.send(source, sink), len(problem.tasks))
    places = list(problem.present)
    free = [0] * len(problem.clients)
    arriving: dict[int, list[int]] = defaultdict(list)
    for (row, home), tasks in alike.items():
        staying = sum(rack == home for rack in network.ends(arcs[row, home]))
        for task in tasks[staying:]:
            free[places[task]] += 1
        racks = (rack for rack in network.ends(arcs[row, home]) if rack != home)
        for task, rack in zip(tasks[staying:], racks, strict=True):
            arriving[rack].append(task)
    for rack in sorted(arriving):
        seats = (client for client, there in enumerate(rack_of) if there == rack for _ in range(free[client]))
        for task, client in zip(sorted(arriving[rack]), seats, strict=True):
            places[task] = client
    return places


def _by_alike_clients(problem: Problem, groups: Sequence[Sequence[int]]) -> list[int]:
    """With shares, if moving costs nothing: cost rows x equal clients."""
    rack_of, counts = _racks(problem), problem.counts()
    alike: dict[tuple[int, int], list[int]] = {}
    for client, count in enumerate(counts):
        alike.setdefault((rack_of[client], count), []).append(client)
    network = FlowNetwork()
    source, sink = network.add_node(), network.add_node()
    clients = {kind: network.add_node() for kind in sorted(alike)}
    rows: list[tuple[list[int], list[tuple[tuple[int, int], int]]]] = []
    for group in groups:
        layer: dict[tuple[int, int], int] = {}
        for (rack, count), node in clients.items():
            share = shares([count], len(problem.tasks), len(group))[0]
            layer[rack, count] = network.add_node()
            network.add_arc(layer[rack, count], node, share * len(alike[rack, count]), 0)
        for row, tasks in _by_row(problem, group):
            node = network.add_node()
            network.add_arc(source, node, len(tasks), 0)
            arcs = [
                (kind, network.add_arc(node, there, len(tasks), row[kind[0]] * problem.costs.traffic))
                for kind, there in layer.items()
            ]
            rows.append((tasks, arcs))
    for kind, node in clients.items():
        network.add_arc(node, sink, kind[1] * len(alike[kind]), 0)
    check_max_flow(network.send(source, sink), len(problem.tasks))
    dealt: dict[tuple[int, int], list[int]] = {kind: [] for kind in clients}
    for tasks, arcs in rows:
        for task, kind in zip(tasks, network.ends(arcs), strict=True):
            dealt[kind].append(task)
    places = [0] * len(problem.tasks)
    for kind, tasks in dealt.items():
        # A sub-topology's tasks follow one another, so each client gets its share, rounded up or down.
        for number, task in enumerate(tasks):
            places[task] = alike[kind][number % len(alike[kind])]
    return places


def _by_row(problem: Problem, group: Sequence[int]) -> Iterator[tuple[Row, list[int]]]:
    rows: dict[Row, list[int]] = {}
    for task in group:
        rows.setdefault(problem.cross_rack.row(problem.tasks[task]), []).append(task)
    return iter(rows.items())


class _RowArcs(NamedTuple):
    """Tasks of one cost row: by their client, and the arcs for staying there and for moving."""

    owned: dict[int, list[int]]
    stay: dict[int, int]
    move: dict[int, int]


class _GroupArcs(NamedTuple):
    rows: list[_RowArcs]
    to_clients: dict[int, list[tuple[int, int]]]


class _ByClients:
    """With shares and a cost of moving every client counts.

    A row of a sub-topology leads to each client with tasks of the row, at the price of staying, and to each
    rack, at the price of moving. A rack leads to its clients. A client takes at most its shares, and in all
    as many tasks as it has now.
    """

    def __init__(self, problem: Problem, groups: Sequence[Sequence[int]]) -> None:
        self._problem = problem
        self._rack_of = _racks(problem)
        self._network = FlowNetwork()
        self._source, self._sink = self._network.add_node(), self._network.add_node()
        self._counts = problem.counts()
        self._totals = [self._network.add_node() for _ in self._counts]
        for node, count in zip(self._totals, self._counts, strict=True):
            self._network.add_arc(node, self._sink, count, 0)
        self._places = list(problem.present)
        self._groups = [self._add_group(group) for group in groups]

    def solve(self) -> list[int]:
        check_max_flow(self._network.send(self._source, self._sink), len(self._problem.tasks))
        for group in self._groups:
            self._spread(group)
        return self._places

    def _add_group(self, group: Sequence[int]) -> _GroupArcs:
        network = self._network
        limits = shares(self._counts, len(self._problem.tasks), len(group))
        clients = [network.add_node() for _ in limits]
        for node, total, limit in zip(clients, self._totals, limits, strict=True):
            network.add_arc(node, total, limit, 0)
        racks = {rack: network.add_node() for rack in sorted(set(self._rack_of))}
        to_clients = {
            rack: [
                (client, network.add_arc(node, clients[client], limits[client], 0))
                for client, there in enumerate(self._rack_of)
                if there == rack
            ]
            for rack, node in racks.items()
        }
        rows = [self._add_row(row, tasks, clients, racks) for row, tasks in _by_row(self._problem, group)]
        return _GroupArcs(rows, to_clients)

    def _add_row(
        self, row: Row, tasks: Sequence[int], clients: Sequence[int], racks: dict[int, int]
    ) -> _RowArcs:
        network, costs = self._network, self._problem.costs
        node = network.add_node()
        network.add_arc(self._source, node, len(tasks), 0)
        owned: dict[int, list[int]] = {}
        for task in tasks:
            owned.setdefault(self._problem.present[task], []).append(task)
        stay = {
            client: network.add_arc(
                node, clients[client], len(held), row[self._rack_of[client]] * costs.traffic
            )
            for client, held in sorted(owned.items())
        }
        move = {
            rack: network.add_arc(node, there, len(tasks), row[rack] * costs.traffic + costs.non_overlap)
            for rack, there in racks.items()
        }
        return _RowArcs(owned, stay, move)

    def _spread(self, group: _GroupArcs) -> None:
        flow = self._network.flow
        arriving: dict[int, list[int]] = {rack: [] for rack in group.to_clients}
        for row in group.rows:
            leaving = (task for client, held in row.owned.items() for task in held[flow(row.stay[client]) :])
            for task, rack in zip(sorted(leaving), self._network.ends(row.move.items()), strict=True):
                arriving[rack].append(task)
        for rack, arcs in group.to_clients.items():
            for task, client in zip(sorted(arriving[rack]), self._network.ends(arcs), strict=True):
                self._places[task] = client


N = TypeVar("N")

_UNREACHED = 1 << 62


class FlowNetwork:
    """Minimum-cost flow by shortest paths, for small networks.

    Arcs have a capacity and a cost of 0 or more; the arc with the next number is an arc's reverse. The method
    is primal-dual (Edmonds and Karp; Ahuja, Magnanti and Orlin, Network Flows, section 9.8): potentials make
    every residual arc's reduced cost non-negative, a Dijkstra finds all nodes at the next distance, and then
    as much as possible is sent along arcs without reduced cost (Dinic). Arcs are tried in the order in which
    they were added, so the same network gives the same flow.
    """

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

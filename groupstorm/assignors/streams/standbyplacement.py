"""Standbys and racks in the fourth version of KIP-925: two options, neither of which was shipped.

Option I, "Balance reliability over cost": place standbys by load or tags, then go through all pairs of
standbys once and exchange two if that is allowed and crosses fewer racks.

Option II, "Prefer reliability and then find optimal cost": place one standby of every task at a time, each
time by a minimum-cost flow. For the first ones a client outside the active task's rack is always cheaper
than one inside it, and traffic decides among those. For the others traffic comes first, and then a rack
without a copy of the task.

The document leaves two points open. Here clients take as many standbys of each round as keeps their loads
even, and more only if there is no other way; an exchange is feasible if neither client has the other's task
and the tags allow it.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupstorm.assignors.streams.balancing import LeastLoaded
from groupstorm.assignors.streams.costs import CrossRack
from groupstorm.assignors.streams.flow import FlowNetwork
from groupstorm.assignors.streams.model import Config, Placement, StreamsGroup
from groupstorm.assignors.streams.rackaware import MayMove


def place_greedily(placement: Placement, cross_rack: CrossRack, may_move: MayMove) -> None:
    """Option I's loops, over standbys that are placed already."""
    for client in placement.clients:
        for task in sorted(placement.standby[client]):
            for other in placement.clients:
                if placement.has(other, task) or not may_move(client, other, task):
                    continue
                found = _better_exchange(placement, cross_rack, (client, task), other, may_move)
                if found is not None:
                    _exchange(placement, (client, task), (other, found))
                    break


def _better_exchange(
    placement: Placement, cross_rack: CrossRack, held: tuple[int, int], other: int, may_move: MayMove
) -> int | None:
    client, task = held
    gain = cross_rack.count(task, client) - cross_rack.count(task, other)
    for candidate in sorted(placement.standby[other]):
        loss = cross_rack.count(candidate, client) - cross_rack.count(candidate, other)
        if loss < gain and not placement.has(client, candidate) and may_move(other, client, candidate):
            return candidate
    return None


def _exchange(placement: Placement, one: tuple[int, int], other: tuple[int, int]) -> None:
    for (giver, task), (taker, _) in ((one, other), (other, one)):
        placement.standby[giver].remove(task)
        placement.standby[taker].add(task)


def place_reliable_first(
    placement: Placement, group: StreamsGroup, config: Config, cross_rack: CrossRack
) -> None:
    """Option II: a flow for every replica, the first ``reliable_standbys`` for reliability."""
    for replica in range(config.num_standby_replicas):
        reliable = replica < config.reliable_standbys
        _ReplicaPlacement(placement, cross_rack, group.stateful, reliable).place()


class _ReplicaPlacement:
    """Places one standby for every task that not all clients have."""

    def __init__(
        self, placement: Placement, cross_rack: CrossRack, tasks: Sequence[int], reliable: bool
    ) -> None:
        self._placement = placement
        self._cross_rack = cross_rack
        self._racks = cross_rack.racks.numbers
        self._reliable = reliable
        self._owners = placement.owners()
        self._holders: dict[int, frozenset[int]] = {
            task: frozenset(client for client in placement.clients if placement.has(client, task))
            for task in tasks
        }
        self._tasks = [task for task in tasks if len(self._holders[task]) < len(placement.active)]
        self._dearest = 2 + 2 * max((max(cross_rack.row(task)) for task in self._tasks), default=0) ** 2

    def place(self) -> None:
        network = FlowNetwork()
        source, sink = network.add_node(), network.add_node()
        clients = [network.add_node() for _ in self._placement.clients]
        count = len(self._tasks)
        racks: dict[int, int] = {}
        seats: dict[int, list[tuple[int, int]]] = {}
        for rack in sorted(set(self._racks)):
            node = racks[rack] = network.add_node()
            members = [client for client in self._placement.clients if self._racks[client] == rack]
            seats[rack] = [(client, network.add_arc(node, clients[client], count, 0)) for client in members]
        for node, places in zip(clients, self._seats(), strict=True):
            network.add_arc(node, sink, places, 0)
            network.add_arc(node, sink, count, self._dearest * (count + 1))
        arcs = [(tasks, *self._arcs(network, source, tasks, racks, clients)) for tasks in self._alike()]
        network.send(source, sink)
        arriving: dict[int, list[int]] = {rack: [] for rack in seats}
        for tasks, to_racks, to_clients in arcs:
            left = iter(tasks)
            for client in network.ends(to_clients):
                self._placement.standby[client].add(next(left))
            for rack in network.ends(to_racks):
                arriving[rack].append(next(left))
        for rack, to_seats in seats.items():
            for task, client in zip(sorted(arriving[rack]), network.ends(to_seats), strict=True):
                self._placement.standby[client].add(task)

    def _seats(self) -> list[int]:
        """The standbys of this round that each client takes so that loads stay even."""
        before = [self._placement.count(client) for client in self._placement.clients]
        counts = list(before)
        capacities = self._placement.capacities
        queue = LeastLoaded(lambda client: counts[client] / capacities[client], self._placement.clients)
        for _ in self._tasks:
            client = queue.poll()
            if client is not None:
                counts[client] += 1
                queue.offer(client)
        return [after - first for after, first in zip(counts, before, strict=True)]

    def _alike(self) -> list[list[int]]:
        """Tasks with the same costs and the same copies."""
        found: dict[tuple[tuple[int, ...], frozenset[int], int], list[int]] = {}
        for task in self._tasks:
            key = self._cross_rack.row(task), self._holders[task], self._owners.get(task, -1)
            found.setdefault(key, []).append(task)
        return list(found.values())

    def _price(self, task: int, rack: int) -> int:
        crossing = self._cross_rack.row(task)[rack]
        if self._reliable:
            owner = self._owners.get(task)
            same = owner is not None and self._racks[owner] == rack
            return crossing + (self._dearest // 2 if same else 0)  # more than any traffic
        return 2 * crossing + any(self._racks[holder] == rack for holder in self._holders[task])

    def _arcs(
        self, network: FlowNetwork, source: int, tasks: list[int], racks: dict[int, int], clients: list[int]
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Arcs to racks in which no client has the tasks, and to single clients in other racks."""
        node = network.add_node()
        network.add_arc(source, node, len(tasks), 0)
        holders = self._holders[tasks[0]]
        taken = {self._racks[holder] for holder in holders}
        to_racks = [
            (rack, network.add_arc(node, there, len(tasks), self._price(tasks[0], rack)))
            for rack, there in racks.items()
            if rack not in taken
        ]
        to_clients = [
            (client, network.add_arc(node, there, len(tasks), self._price(tasks[0], self._racks[client])))
            for client, there in enumerate(clients)
            if self._racks[client] in taken and client not in holders
        ]
        return to_racks, to_clients

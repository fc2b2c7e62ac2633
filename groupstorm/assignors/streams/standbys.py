"""Placement of standby replicas: on the least loaded clients, or on clients with other tags (KIP-708).

DefaultStandbyTaskAssignor and ClientTagAwareStandbyTaskAssignor. If there are too few clients, fewer
standbys are placed; Kafka logs a warning.

The fourth version of KIP-925 has two options for standbys and racks, neither of which was shipped:

* Option I, "Balance reliability over cost": place standbys by load or tags, then go through all pairs of
  standbys once and exchange two if that is allowed and crosses fewer racks.
* Option II, "Prefer reliability and then find optimal cost": place one standby of every task at a time, each
  time by a minimum-cost flow. For the first ones a client outside the active task's rack is always cheaper
  than one inside it, and traffic decides among those. For the others traffic comes first, and then a rack
  without a copy of the task.

The document leaves two points open. Here clients take as many standbys of each round as keeps their loads
even, and more only if there is no other way; an exchange is feasible if neither client has the other's task
and the tags allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush

from groupstorm.assignors.streams.collapsed import FlowNetwork
from groupstorm.assignors.streams.costs import CrossRack
from groupstorm.assignors.streams.model import Config, Placement, StreamsGroup, TagsOrRacks
from groupstorm.assignors.streams.rackaware import MayMove
from groupstorm.javahash import hash_order

Tags = Mapping[str, str]


def standby_assignor(group: StreamsGroup, config: Config) -> LoadAware:
    """StandbyTaskAssignorFactory: by tags if any are configured, by racks only with ``tags_or_racks``."""
    if config.tags_or_racks is TagsOrRacks.RACKS and all(client.rack for client in group.clients):
        return ClientTagAware(group, [{"rack": client.rack or ""} for client in group.clients], ("rack",))
    if config.rack_aware_tags:
        return ClientTagAware(group, [client.tags for client in group.clients], config.rack_aware_tags)
    return LoadAware()


class LoadAware:
    """DefaultStandbyTaskAssignor."""

    def assign(self, placement: Placement, tasks: Sequence[int], replicas: int) -> None:
        """Place ``replicas`` standbys of each task; the active ones are placed already."""
        queue = LeastLoaded(placement.load, placement.clients)
        for task in tasks:
            _place_on_least_loaded(placement, queue, task, replicas)

    def may_balance(self, source: int, destination: int) -> bool:
        """Whether a task may be moved so that loads become more even."""
        return True

    def may_move(self, source: int, destination: int, task: int, placement: Placement) -> bool:
        """Whether this task may be moved for less traffic."""
        return True


def _place_on_least_loaded(placement: Placement, queue: LeastLoaded, task: int, replicas: int) -> None:
    """Standbys of a task on clients that do not have it; fewer if there are too few clients."""
    for _ in range(replicas):
        client = queue.poll(lambda candidate: not placement.has(candidate, task))
        if client is None:
            return
        placement.standby[client].add(task)
        queue.offer(client)


class ClientTagAware(LoadAware):
    """ClientTagAwareStandbyTaskAssignor: no two copies of a task on clients that share a tag's value.

    A tag counts until a task has as many copies as the tag has values. Standbys without a place go to
    the least loaded clients, in the order of a HashMap by task.
    """

    def __init__(self, group: StreamsGroup, tags: Sequence[Tags], names: Sequence[str]) -> None:
        self._group = group
        self._tags = tags
        self._names = frozenset(names)
        self._values: dict[str, set[str]] = {}
        self._having: dict[tuple[str, str], set[int]] = {}
        for client, own in enumerate(tags):
            for entry in own.items():
                self._values.setdefault(entry[0], set()).add(entry[1])
                self._having.setdefault(entry, set()).add(client)

    def assign(self, placement: Placement, tasks: Sequence[int], replicas: int) -> None:
        owners = placement.owners()
        queue = LeastLoaded(placement.load)
        missing: dict[int, int] = {}
        for task in tasks:
            left = replicas
            if task in owners:
                left = self._place(placement, queue, task, owners[task], replicas)
            if left:
                missing[task] = left
        for client in placement.clients:
            queue.offer(client)
        for task in hash_order(tasks, self._group.task_hash):
            if task in missing:
                _place_on_least_loaded(placement, queue, task, missing[task])

    def _place(self, placement: Placement, queue: LeastLoaded, task: int, owner: int, replicas: int) -> int:
        """Standbys on clients of unused tags; returns how many found no place."""
        for client in placement.clients:
            queue.offer(client)
        used: dict[tuple[str, str], set[int]] = {}
        copy_on = owner
        for placed in range(replicas):
            self._use(copy_on, placed + 1, used)
            found = queue.poll(
                lambda candidate: (
                    not placement.has(candidate, task)
                    and not any(candidate in clients for clients in used.values())
                )
            )
            if found is None:
                return replicas - placed
            placement.standby[found].add(task)
            copy_on = found
        return 0

    def _use(self, client: int, copies: int, used: dict[tuple[str, str], set[int]]) -> None:
        """A copy is on this client: mark its tags as used, and stop looking at tags with too few values."""
        for tag, value in self._tags[client].items():
            if tag not in self._names:
                continue
            if len(self._values[tag]) <= copies:
                for other in self._values[tag]:
                    used.pop((tag, other), None)
            else:
                used[tag, value] = self._having[tag, value]

    def may_balance(self, source: int, destination: int) -> bool:
        """The destination has all tags of the source."""
        return self._tags[source].items() <= self._tags[destination].items()

    def may_move(self, source: int, destination: int, task: int, placement: Placement) -> bool:
        """The copies of the task would not be on fewer different tags than now."""
        others = {
            entry
            for client in placement.clients
            if client not in {source, destination} and placement.has(client, task)
            for entry in self._tags[client].items()
        }
        before = others | self._tags[source].items()
        after = others | self._tags[destination].items()
        return len(after) >= len(before)


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


class LeastLoaded:
    """ConstrainedPrioritySet: the client with the lowest load that meets a condition, ties by ProcessId.

    A client's load must not change while it is queued: poll it, assign, `offer` it again.
    """

    def __init__(self, load: Callable[[int], float], clients: Iterable[int] = ()) -> None:
        self._load = load
        self._heap: list[tuple[float, int]] = []
        self._queued: dict[int, float] = {}
        for client in clients:
            self.offer(client)

    def offer(self, client: int) -> None:
        """Queue a client, or queue it anew if it is queued already."""
        load = self._load(client)
        if self._queued.get(client) != load:
            self._queued[client] = load
            heappush(self._heap, (load, client))

    def poll(self, valid: Callable[[int], bool] = lambda client: True) -> int | None:
        """Remove and return the first valid client, None if there is none. The others stay queued."""
        passed_over = []
        found = None
        while self._heap:
            entry = heappop(self._heap)
            load, client = entry
            if self._queued.get(client) != load:
                continue  # the client was offered again with another load, or removed
            if valid(client):
                found = client
                del self._queued[client]
                break
            passed_over.append(entry)
        for entry in passed_over:
            heappush(self._heap, entry)
        return found

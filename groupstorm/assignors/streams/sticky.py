"""LegacyStickyTaskAssignor, and FallbackPriorTaskAssignor, which also keeps every active task at its
client.

Document 001 calls it the old algorithm. A task goes to its previous owner if that is below its share, then
to a client that had a standby, then to the least loaded client; of equal loads, to one that has not had the
task together with its others. Several decisions depend on the order of hash tables; here that order is
Java's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.model import (
    STATELESS_COSTS,
    STICKY_COSTS,
    Config,
    Costs,
    Decision,
    Placement,
    Strategy,
    StreamsGroup,
)
from groupstorm.assignors.streams.pairs import TaskPairs
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.javahash import JavaHashMap, hash_order


def legacy_sticky(group: StreamsGroup, config: Config) -> Decision:
    """Active tasks and standbys, both with less traffic if racks are known; never a probing rebalance."""
    placement = Placement(group)
    assignment = StickyAssignment(group, placement)
    assignment.assign_active(keep_all=False)
    racks = TaskRacks(group)
    rack_aware = racks.usable(config)
    if rack_aware:
        _optimise_active(group, config, racks, placement)
    assignment.assign_standbys(group.stateful, config.num_standby_replicas)
    if rack_aware and config.num_standby_replicas > 0:
        costs = STICKY_COSTS.configured(config)
        clients = range(len(group.clients))
        Optimisation(
            group, CrossRack(racks, changelogs), costs, Strategy.MIN_TRAFFIC, clients, config.solver
        ).standby(placement, lambda source, destination, task: True)
    return Decision(placement, probing=False)


def fallback_prior(group: StreamsGroup, config: Config) -> Decision:
    """Every task stays, racks play no part, and another rebalance is always needed.

    StreamsPartitionAssignor uses it if it could not read the ends of the changelogs.
    """
    placement = Placement(group)
    assignment = StickyAssignment(group, placement)
    assignment.assign_active(keep_all=True)
    assignment.assign_standbys(group.stateful, config.num_standby_replicas)
    return Decision(placement, probing=True)


def _optimise_active(group: StreamsGroup, config: Config, racks: TaskRacks, placement: Placement) -> None:
    cross_rack = CrossRack(racks, inputs)
    clients = range(len(group.clients))
    priced: tuple[tuple[Costs, Sequence[int]], ...] = (
        (STICKY_COSTS.configured(config), group.stateful),
        (STATELESS_COSTS, group.stateless),
    )
    for costs, tasks in priced:
        Optimisation(group, cross_rack, costs, config.strategy, clients, config.solver).active(
            placement, tasks
        )


def previous_owners(group: StreamsGroup) -> JavaHashMap[int, int]:
    """Task -> the client that ran it; of several clients the last one."""
    owners: JavaHashMap[int, int] = JavaHashMap(group.task_hash)
    for client in group.clients_as_hashed:
        for task in sorted(group.clients[client].prev_active):
            owners.put(task, client)
    return owners


def previous_standbys(group: StreamsGroup) -> dict[int, list[int]]:
    """Task -> the clients that had a standby of it, as their HashSet yields them."""
    holders: dict[int, list[int]] = {}
    for client in group.clients_as_hashed:
        for task in sorted(group.clients[client].prev_standby):
            holders.setdefault(task, []).append(client)
    return {task: hash_order(clients, group.client_hash) for task, clients in holders.items()}


class StickyAssignment:
    """One run of a sticky assignor.

    ``larger_first``: of clients with the same load the one with more threads has more room; the public
    assignor does not distinguish them.
    """

    def __init__(self, group: StreamsGroup, placement: Placement, *, larger_first: bool = True) -> None:
        self._group = group
        self._placement = placement
        self._larger_first = larger_first
        #: Per client its tasks, as the hash table that KIP-924's public assignments are.
        self.tables: list[JavaHashMap[int, None]] = [JavaHashMap(group.task_hash) for _ in group.clients]
        self._pairs = TaskPairs(len(group.tasks))
        self._owners = previous_owners(group)
        self._standbys = previous_standbys(group)

    def assign_active(self, *, keep_all: bool) -> None:
        """``keep_all``: a previous owner keeps all its tasks, however many they are."""
        group = self._group
        capacity = sum(client.capacity for client in group.clients)
        per_thread = len(group.tasks) // capacity
        everything = hash_order(range(len(group.tasks)), group.task_hash)
        unassigned = dict.fromkeys(JavaHashMap.set_of(everything, group.task_hash))
        for task, owner in self._owners.items():
            if keep_all or self._has_room(owner, per_thread):
                self._assign_active(task, owner)
                del unassigned[task]
        for task in list(unassigned):
            for client in self._standbys.get(task, ()):
                if self._has_room(client, per_thread):
                    self._assign_active(task, client)
                    del unassigned[task]
                    break
        for task in sorted(unassigned):
            self._assign_active(task, self._find(task, group.clients_as_hashed))

    def assign_standbys(self, tasks: Sequence[int], replicas: int) -> None:
        """So many of each task; fewer if there are not enough clients."""
        for task in hash_order(tasks, self._group.task_hash):
            for _ in range(replicas):
                candidates = hash_order(
                    [c for c in self._group.clients_as_hashed if not self._placement.has(c, task)],
                    self._group.client_hash,
                )
                if not candidates:
                    break
                client = self._find(task, candidates)
                self._meet(task, client)
                self._placement.standby[client].add(task)
                self.tables[client].put(task, None)

    def _has_room(self, client: int, per_thread: int) -> bool:
        return len(self._placement.active[client]) < self._placement.capacities[client] * per_thread

    def _assign_active(self, task: int, client: int) -> None:
        self._meet(task, client)
        self._placement.active[client].add(task)
        self.tables[client].put(task, None)

    def note_move(self, task: int, source: int, destination: int) -> None:
        """Note that a task has been moved. A task that returns goes to the end of its bucket."""
        self.tables[source].remove(task)
        self.tables[destination].put(task, None)

    def _meet(self, task: int, client: int) -> None:
        self._pairs.add(task, self._held(client))

    def _held(self, client: int) -> set[int]:
        return self._placement.active[client] | self._placement.standby[client]

    def _find(self, task: int, within: Sequence[int]) -> int:
        """The previous owner, or a client that had a standby, if that is fair; else the least loaded
        client.
        """
        if len(within) == 1:
            return within[0]
        previous = self._previous(task, within)
        if previous is not None and self._should_balance(previous):
            previous = self._least_loaded_standby(task, within)
            if previous is not None and self._should_balance(previous):
                previous = None
        found = self._least_loaded(task, within) if previous is None else previous
        if found is None:
            raise AssignmentRefused(
                "NullPointerException", f"no client for task {self._group.tasks[task].id}"
            )
        return found

    def _previous(self, task: int, within: Collection[int]) -> int | None:
        owner = self._owners.get(task)
        if owner is not None and owner in within:
            return owner
        return self._least_loaded_standby(task, within)

    def _least_loaded_standby(self, task: int, within: Collection[int]) -> int | None:
        holders = self._standbys.get(task)
        if holders is None:
            return None
        copied = JavaHashMap.set_of(holders, self._group.client_hash)
        return self._least_loaded(task, [client for client in copied if client in within])

    def _least_loaded(self, task: int, clients: Iterable[int]) -> int | None:
        """A client without tasks, else the least loaded one with a new pair, else the least loaded one."""
        listed = list(clients)
        found = self._lightest(listed, task)
        return self._lightest(listed, None) if found is None else found

    def _lightest(self, clients: Iterable[int], new_pair_for: int | None) -> int | None:
        placement, lightest = self._placement, None
        for client in clients:
            if placement.count(client) == 0:
                return client
            if (lightest is None or self._has_more_room(client, lightest)) and (
                new_pair_for is None or self._pairs.has_new(new_pair_for, self._held(client))
            ):
                lightest = client
        return lightest

    def _has_more_room(self, client: int, other: int) -> bool:
        """ClientState.hasMoreAvailableCapacityThan."""
        placement = self._placement
        own_load, other_load = placement.load(client), placement.load(other)
        if own_load == other_load and self._larger_first:
            return placement.capacities[client] > placement.capacities[other]
        return own_load < other_load

    def _should_balance(self, client: int) -> bool:
        """Whether the client has a task for every thread while another client has more room."""
        placement = self._placement
        return placement.count(client) >= placement.capacities[client] and any(
            self._has_more_room(other, client) for other in placement.clients
        )

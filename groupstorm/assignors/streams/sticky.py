"""The sticky assignors: the legacy one, its variant without lags, and that of KIP-924.

Document 001 calls LegacyStickyTaskAssignor the old algorithm. A task goes to its previous owner if that is
below its share, then to a client that had a standby, then to the least loaded client; of equal loads, to one
that has not had the task together with its others. Several decisions depend on the order of hash tables;
here that order is Java's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, all_partitions, changelogs, inputs
from groupstorm.assignors.streams.model import (
    STATELESS_COSTS,
    STICKY_COSTS,
    Config,
    Decision,
    Placement,
    Strategy,
    StreamsGroup,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.javahash import JavaHashMap, hash_order


def legacy_sticky(group: StreamsGroup, config: Config) -> Decision:
    """Active tasks and standbys, both with less traffic if racks are known; never a probing rebalance."""
    placement = Placement(group)
    assignment = _StickyAssignment(group, placement)
    assignment.assign_active(keep_all=False)
    racks = TaskRacks(group)
    rack_aware = racks.usable(config)
    costs = STICKY_COSTS.configured(config)
    if rack_aware:
        cross_rack = CrossRack(racks, inputs)
        Optimisation.of(cross_rack, costs, config).active(placement, group.stateful)
        Optimisation.of(cross_rack, STATELESS_COSTS, config).active(placement, group.stateless)
    assignment.assign_standbys(group.stateful, config.num_standby_replicas)
    if rack_aware and config.num_standby_replicas > 0:
        Optimisation.of(CrossRack(racks, changelogs), costs, config).standby(placement)
    return Decision(placement, probing=False)


def fallback_prior(group: StreamsGroup, config: Config) -> Decision:
    """FallbackPriorTaskAssignor, without known lags: every task stays, and another rebalance is needed."""
    placement = Placement(group)
    assignment = _StickyAssignment(group, placement)
    assignment.assign_active(keep_all=True)
    assignment.assign_standbys(group.stateful, config.num_standby_replicas)
    return Decision(placement, probing=True)


def public_sticky(group: StreamsGroup, config: Config) -> Decision:
    """StickyTaskAssignor of KIP-924.

    It differs from the legacy one: clients with equal loads rank equal; racks count only if both costs
    are configured; the price of an active task includes its changelogs; clients of a flow graph are in
    the order of a hash table. With ``must_preserve_active`` every active task stays, and another
    rebalance follows at once.

    Kafka walks a HashSet of descriptions that hash by identity; here tasks have their ids' hashes.
    """
    placement = Placement(group)
    assignment = _StickyAssignment(group, placement, larger_first=False)
    racks = TaskRacks(group)
    preserve = config.must_preserve_active
    assignment.assign_active(keep_all=preserve)
    reading = CrossRack(racks, all_partitions, described=True)
    optimisation = Optimisation.of(reading, STICKY_COSTS.configured(config), config)._replace(
        clients=group.clients_as_hashed, pairs=config.strategy, on_move=assignment.note_move
    )
    if group.tasks and not preserve and _usable(racks, config, standby=False):
        optimisation.active(placement, group.stateful)
        optimisation._replace(costs=STATELESS_COSTS).active(placement, group.stateless)
    everything = hash_order(range(len(group.tasks)), group.task_hash)
    kept = [task for task in everything if group.tasks[task].changelogs]
    assignment.assign_standbys(kept, config.num_standby_replicas)
    if any(placement.standby) and not preserve and _usable(racks, config, standby=True):
        following = CrossRack(racks, changelogs, described=True)
        optimisation._replace(cross_rack=following).standby(placement)
    return Decision(placement, probing=preserve, tables=assignment.tables)


def _usable(racks: TaskRacks, config: Config, *, standby: bool) -> bool:
    """TaskAssignmentUtils.canPerformRackAwareOptimization."""
    return (
        config.strategy is not Strategy.NONE
        and config.traffic_cost is not None
        and config.non_overlap_cost is not None
        and racks.known
        and racks.topics_known(changelogs if standby else all_partitions)
    )


def _previous_owners(group: StreamsGroup) -> JavaHashMap[int, int]:
    """Task -> the client that ran it; of several clients the last one."""
    owners: JavaHashMap[int, int] = JavaHashMap(group.task_hash)
    for client in group.clients_as_hashed:
        for task in sorted(group.clients[client].prev_active):
            owners.put(task, client)
    return owners


def _previous_standbys(group: StreamsGroup) -> dict[int, list[int]]:
    """Task -> the clients that had a standby of it, as their HashSet yields them."""
    holders: dict[int, list[int]] = {}
    for client in group.clients_as_hashed:
        for task in sorted(group.clients[client].prev_standby):
            holders.setdefault(task, []).append(client)
    return {task: hash_order(clients, group.client_hash) for task, clients in holders.items()}


class _TaskPairs:
    """The pairs of tasks that have been on one client; a task prefers a client where it makes a new one."""

    def __init__(self, tasks: int) -> None:
        self._most = tasks * (tasks - 1) // 2
        self._pairs = 0
        self._partners: dict[int, set[int]] = {}

    def add(self, task: int, others: Iterable[int]) -> None:
        own = self._partners.setdefault(task, set())
        for other in others:
            if other not in own:
                own.add(other)
                self._partners.setdefault(other, set()).add(task)
                self._pairs += 1

    def has_new(self, task: int, held: set[int]) -> bool:
        """Whether the task would meet a task that it has not met."""
        return self._pairs != self._most and not held <= self._partners.get(task, set())


class _StickyAssignment:
    """One run. ``larger_first``: of clients with the same load the one with more threads has more room."""

    def __init__(self, group: StreamsGroup, placement: Placement, *, larger_first: bool = True) -> None:
        self._group = group
        self._placement = placement
        self._larger_first = larger_first
        #: Per client its tasks, as the hash table that KIP-924's public assignments are.
        self.tables: list[JavaHashMap[int, None]] = [JavaHashMap(group.task_hash) for _ in group.clients]
        self._pairs = _TaskPairs(len(group.tasks))
        self._owners = _previous_owners(group)
        self._standbys = _previous_standbys(group)

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
        for task in hash_order(tasks, self._group.task_hash):
            for _ in range(replicas):
                candidates = hash_order(
                    [c for c in self._group.clients_as_hashed if not self._placement.has(c, task)],
                    self._group.client_hash,
                )
                if not candidates:
                    break
                client = self._find(task, candidates)
                self._pairs.add(task, self._held(client))
                self._placement.standby[client].add(task)
                self.tables[client].put(task, None)

    def _has_room(self, client: int, per_thread: int) -> bool:
        return len(self._placement.active[client]) < self._placement.capacities[client] * per_thread

    def _assign_active(self, task: int, client: int) -> None:
        self._pairs.add(task, self._held(client))
        self._placement.active[client].add(task)
        self.tables[client].put(task, None)

    def note_move(self, task: int, source: int, destination: int) -> None:
        """Note that a task has been moved. A task that returns goes to the end of its bucket."""
        self.tables[source].remove(task)
        self.tables[destination].put(task, None)

    def _held(self, client: int) -> set[int]:
        return self._placement.active[client] | self._placement.standby[client]

    def _find(self, task: int, within: Sequence[int]) -> int:
        """The previous owner, or a client that had a standby, if that is fair; else the least loaded one."""
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

    def _least_loaded(self, task: int, clients: Sequence[int]) -> int | None:
        """A client without tasks, else the least loaded one with a new pair, else the least loaded one."""
        found = self._lightest(clients, task)
        return self._lightest(clients, None) if found is None else found

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

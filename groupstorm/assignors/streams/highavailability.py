"""HighAvailabilityTaskAssignor, Kafka's default: KIP-441 as it was shipped, with KIP-925.

First comes the target assignment, whichever clients have the tasks now: tasks round robin, balanced over
threads, then standbys in the same way, both with as little traffic between racks as that allows. Then
movements turn it into an assignment that can run now; if there are any, a probing rebalance is needed.
Stateless tasks come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.javaheap import JavaPriorityQueue
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    STATELESS_COSTS,
    UNBOUNDED_LAG,
    Config,
    Decision,
    Placement,
    StandbyPlacement,
    StreamsGroup,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.assignors.streams.standbys import (
    LeastLoaded,
    place_greedily,
    place_reliable_first,
    standby_assignor,
)
from groupstorm.assignors.userdata.streams import LATEST_OFFSET


def high_availability(group: StreamsGroup, config: Config) -> Decision:
    placement = Placement(group)
    racks = TaskRacks(group)
    rack_aware = racks.usable(config)
    for client, held in enumerate(placement.active):
        held.update(group.stateful[client :: len(placement.active)])
    balance_over_threads(placement, placement.active)
    costs = HIGH_AVAILABILITY_COSTS.configured(config)
    if rack_aware:
        Optimisation.of(CrossRack(racks, inputs), costs, config).active(placement, group.stateful)
    if config.num_standby_replicas > 0:
        _place_standbys(placement, racks, config, rack_aware)
    lags = Lags(group, config.acceptable_recovery_lag)
    movements = TaskMovements(placement, lags, config.max_warmup_replicas)
    needed = movements.move_active() + movements.move_standbys()
    _place_stateless(placement, group.stateless)
    if rack_aware:
        Optimisation.of(CrossRack(racks, inputs), STATELESS_COSTS, config).active(placement, group.stateless)
    return Decision(
        placement, probing=needed > 0, warmups=movements.warmups, standby_warmups=movements.standby_warmups
    )


def _place_standbys(placement: Placement, racks: TaskRacks, config: Config, rack_aware: bool) -> None:
    """assignStandbyReplicaTasks: place, balance, optimise; or one of KIP-925's other two ways."""
    group, cross_rack = racks.group, CrossRack(racks, changelogs)
    if rack_aware and config.standby_placement is StandbyPlacement.RELIABLE_FIRST:
        place_reliable_first(placement, group, config, cross_rack)
        return
    assignor = standby_assignor(group, config)
    assignor.assign(placement, group.stateful, config.num_standby_replicas)
    balance_over_threads(placement, placement.standby, assignor.may_balance)
    if not rack_aware:
        return

    def may_move(source: int, destination: int, task: int) -> bool:
        return assignor.may_move(source, destination, task, placement)

    if config.standby_placement is StandbyPlacement.GREEDY:
        place_greedily(placement, cross_rack, may_move)
    else:
        costs = HIGH_AVAILABILITY_COSTS.configured(config)
        Optimisation.of(cross_rack, costs, config).standby(placement, may_move)


def _place_stateless(placement: Placement, tasks: Sequence[int]) -> None:
    """assignStatelessActiveTasks: each to the client with the fewest active tasks per thread."""
    queue = LeastLoaded(placement.active_load, placement.clients)
    for task in tasks:
        client = queue.poll()
        if client is not None:
            placement.active[client].add(task)
            queue.offer(client)


class Movement(NamedTuple):
    task: int
    destination: int


class TaskMovements:
    """TaskMovement: from the target assignment to one that can run now.

    A task whose target client is not caught up runs at its present client for now, and a warm-up replica on
    the target client builds up the state. `max.warmup.replicas` limits the number of warm-ups, for active
    tasks and standbys together. The replicas that are left to warm up are kept per client.
    """

    def __init__(self, placement: Placement, lags: Lags, warmups_max: int) -> None:
        self._placement = placement
        self._lags = lags
        self._warmups_left = warmups_max
        self.warmups: list[set[int]] = [set() for _ in placement.clients]
        self.standby_warmups: list[set[int]] = [set() for _ in placement.clients]

    def move_active(self) -> int:
        """assignActiveTaskMovements; returns how many tasks are not at their target."""
        movements = self._needed(self._placement.active)
        needed = len(movements)
        while movements:
            self._move_active(movements.poll())
        return needed

    def move_standbys(self) -> int:
        """assignStandbyTaskMovements; returns how many standbys are not at their target."""
        movements = self._needed(self._placement.standby)
        needed = 0
        while movements:
            needed += self._move_standby(movements.poll())
        return needed

    def _needed(self, held: list[set[int]]) -> JavaPriorityQueue[tuple[int, int], Movement]:
        """Tasks of which other clients are nearer than their own, the fewest such clients first."""
        queue: JavaPriorityQueue[tuple[int, int], Movement] = JavaPriorityQueue()
        lags = self._lags
        for client, tasks in enumerate(held):
            for task in sorted(tasks - self.warmups[client]):
                lag = lags.of(client, task)
                if not lags.acceptable(lag) and lags.lowest(task) < lag:
                    queue.offer((len(lags.caught_up(task)), task), Movement(task, client))
        return queue

    def _least_loaded_caught_up(self, task: int, valid: Callable[[int], bool]) -> int | None:
        candidates = [client for client in self._lags.caught_up(task) if valid(client)]
        return min(candidates, key=lambda client: (self._placement.load(client), client), default=None)

    def _most_caught_up(self, movement: Movement, valid: Callable[[int], bool]) -> int | None:
        """mostCaughtUpEligibleClient: of the clients that are nearer than the destination."""
        for client in self._lags.by_lag(movement.task):
            if client == movement.destination:
                return None
            if valid(client):
                return client
        return None

    def _move_active(self, movement: Movement) -> None:
        placement, (task, destination) = self._placement, movement
        source = self._least_loaded_caught_up(task, lambda client: task in placement.standby[client])
        if source is None:
            source = self._least_loaded_caught_up(task, lambda client: True)
        if source is None:
            source = self._most_caught_up(movement, lambda client: True)
        if source is None:
            raise AssignmentRefused(
                "IllegalStateException",
                "Tried to move task to more caught-up client as scheduled before but none exist",
            )
        swaps = task in placement.standby[source]
        placement.standby[source].discard(task)
        placement.active[source].add(task)
        placement.active[destination].remove(task)
        if swaps:
            placement.standby[destination].add(task)
        elif self._take_warmup():
            placement.standby[destination].add(task)
            self.warmups[destination].add(task)

    def _move_standby(self, movement: Movement) -> bool:
        placement, task = self._placement, movement.task

        def without_it(client: int) -> bool:
            return not placement.has(client, task)

        source = self._least_loaded_caught_up(task, without_it)
        if source is None:
            source = self._most_caught_up(movement, without_it)
        if source is None:
            return False
        placement.standby[source].add(task)
        if self._take_warmup():
            self.standby_warmups[movement.destination].add(task)
        else:
            placement.standby[movement.destination].remove(task)
        return True

    def _take_warmup(self) -> bool:
        self._warmups_left -= 1
        return self._warmups_left >= 0


def balance_over_threads(
    placement: Placement,
    held: list[set[int]],
    may_move: Callable[[int, int], bool] = lambda source, destination: True,
) -> None:
    """balanceTasksOverThreads: move active tasks or standbys in order while that makes loads more even."""
    moved = True
    while moved:
        moved = False
        lowest = _lowest_load_with_one_more(placement)
        for source in placement.clients:
            if _one_less(placement, source) < lowest:
                continue  # whichever client took a task, this one would then have less
            for destination in placement.clients:
                if source != destination and _move(placement, held, source, destination, may_move):
                    moved = True
                    lowest = _lowest_load_with_one_more(placement)


def _move(
    placement: Placement,
    held: list[set[int]],
    source: int,
    destination: int,
    may_move: Callable[[int, int], bool],
) -> bool:
    if not _should_move(placement, source, destination) or not may_move(source, destination):
        return False
    moved = False
    for task in sorted(held[source]):
        if not _should_move(placement, source, destination):
            break
        if not placement.has(destination, task):
            held[source].remove(task)
            held[destination].add(task)
            moved = True
    return moved


def _one_less(placement: Placement, client: int) -> float:
    return (placement.count(client) - 1.0) / placement.capacities[client]


def _one_more(placement: Placement, client: int) -> float:
    return (placement.count(client) + 1.0) / placement.capacities[client]


def _lowest_load_with_one_more(placement: Placement) -> float:
    return min(_one_more(placement, client) for client in placement.clients)


def _should_move(placement: Placement, source: int, destination: int) -> bool:
    """shouldMoveATask: the skew gets smaller and does not change its sign."""
    skew = placement.load(source) - placement.load(destination)
    if skew <= 0:
        return False
    proposed = _one_less(placement, source) - _one_more(placement, destination)
    return 0 <= proposed < skew


class Lags:
    """The lags of stateful tasks on all clients (HighAvailabilityTaskAssignor).

    Most clients know nothing of most tasks and lag by the whole changelog, so only known lags are stored.
    """

    def __init__(self, group: StreamsGroup, acceptable: int) -> None:
        self._group = group
        self._acceptable = acceptable
        self._fresh = [number for number, client in enumerate(group.clients) if client.fresh_elsewhere]
        self._known: dict[int, dict[int, int]] = {task: {} for task in group.stateful}
        self._caught_up: dict[int, list[int]] = {}
        for number, client in enumerate(group.clients):
            if not client.fresh_elsewhere:
                for task in group.stateful:
                    self._known[task][number] = group.lag(number, task)
            else:
                for task, lag in client.lags.items():
                    if task in self._known:
                        self._known[task][number] = lag

    def of(self, client: int, task: int) -> int:
        lag = self._known[task].get(client)
        return self._group.lag(client, task) if lag is None else lag

    def acceptable(self, lag: int) -> bool:
        """A running active, no limit, or at most `acceptable.recovery.lag` behind."""
        return lag == LATEST_OFFSET or self._acceptable == UNBOUNDED_LAG or 0 <= lag <= self._acceptable

    def caught_up(self, task: int) -> list[int]:
        """The clients that could run the task at once, ascending."""
        found = self._caught_up.get(task)
        if found is None:
            found = [client for client in self._candidates(task) if self.acceptable(self.of(client, task))]
            self._caught_up[task] = found
        return found

    def _candidates(self, task: int) -> list[int]:
        """All clients, or only those that know the task if no other one can qualify."""
        if self._fresh and self.acceptable(self._group.lag(self._fresh[0], task)):
            return list(range(len(self._group.clients)))
        return sorted(self._known[task])

    def lowest(self, task: int) -> int:
        """The lowest lag of a client; sentinels are below all others, as numbers are."""
        lags = list(self._known[task].values())
        if len(lags) < len(self._group.clients):
            lags.append(self._group.lag(self._fresh[0], task))
        return min(lags)

    def by_lag(self, task: int) -> list[int]:
        """All clients by lag, then by ProcessId."""
        return sorted(range(len(self._group.clients)), key=lambda client: (self.of(client, task), client))

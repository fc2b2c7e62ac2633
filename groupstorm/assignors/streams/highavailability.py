"""HighAvailabilityTaskAssignor, Kafka's default: KIP-441 as it was shipped, with KIP-925.

First comes the target assignment, whichever clients have the tasks now: tasks round robin, balanced over
threads, then standbys in the same way, both with as little traffic between racks as that allows. Then
movements turn it into an assignment that can run now; if there are any, a probing rebalance is needed.
Stateless tasks come last.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupstorm.assignors.streams.balancing import LeastLoaded, balance_over_threads
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.lags import Lags
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    STATELESS_COSTS,
    Config,
    Decision,
    Placement,
    StandbyPlacement,
    StreamsGroup,
)
from groupstorm.assignors.streams.movements import TaskMovements
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.assignors.streams.standbyplacement import place_greedily, place_reliable_first
from groupstorm.assignors.streams.standbys import standby_assignor


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

"""StickyTaskAssignor of KIP-924, one of the public task assignors.

It follows the legacy sticky assignor, with these differences: clients with equal loads rank equal, whatever
their capacities; racks count only if both costs are configured; the price of an active task includes its
changelogs; and the clients of a flow graph come in the order of a hash table.

With ``Config.must_preserve_active`` every active task stays with its previous owner. Racks then play no
part, and the answer asks for another rebalance at once.

Kafka itself gives more than one answer if there are standbys, because it walks a HashSet of task
descriptions that hash by identity. Here the tasks come in the order of their ids' hashes.
"""

from __future__ import annotations

from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, all_partitions, changelogs
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
from groupstorm.assignors.streams.sticky import StickyAssignment
from groupstorm.javahash import hash_order


def public_sticky(group: StreamsGroup, config: Config) -> Decision:
    """Place active tasks and standbys; reduce the traffic between racks if racks and costs are known."""
    placement = Placement(group)
    assignment = StickyAssignment(group, placement, larger_first=False)
    racks = TaskRacks(group)
    preserve = config.must_preserve_active
    assignment.assign_active(keep_all=preserve)
    if group.tasks and not preserve and _usable(racks, config, standby=False):
        cross_rack = CrossRack(racks, all_partitions, described=True)
        for costs, tasks in (
            (STICKY_COSTS.configured(config), group.stateful),
            (STATELESS_COSTS, group.stateless),
        ):
            Optimisation(
                group,
                cross_rack,
                costs,
                config.strategy,
                group.clients_as_hashed,
                config.solver,
                on_move=assignment.note_move,
            ).active(placement, tasks)
    everything = hash_order(range(len(group.tasks)), group.task_hash)
    kept = [task for task in everything if group.tasks[task].changelogs]
    assignment.assign_standbys(kept, config.num_standby_replicas)
    if any(placement.standby) and not preserve and _usable(racks, config, standby=True):
        Optimisation(
            group,
            CrossRack(racks, changelogs, described=True),
            STICKY_COSTS.configured(config),
            config.strategy,
            group.clients_as_hashed,
            config.solver,
            pairs=config.strategy,
            on_move=assignment.note_move,
        ).standby(placement, lambda source, destination, task: True)
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

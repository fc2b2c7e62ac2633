"""StickyTaskAssignor of KIP-924, the public task assignors.

As the legacy one in its idea; loads are compared without regard to capacities' sizes, racks matter only
where both costs are configured, active tasks are priced by inputs and changelogs, and the graphs' clients
stand in the order of a hash table.

Kafka itself gives more than one answer where there are standbys: it walks a HashSet of task descriptions
that hash by identity. Here they come in the order of their ids' hashes.
"""

from __future__ import annotations

from groupstorm.assignors.streams.costs import CrossRack, Racks, all_partitions, changelogs
from groupstorm.assignors.streams.model import (
    STATELESS_COSTS,
    STICKY_COSTS,
    Config,
    Decision,
    Group,
    Placement,
    Strategy,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.assignors.streams.sticky import StickyAssignment
from groupstorm.javahash import hash_order


def public_sticky(group: Group, config: Config) -> Decision:
    """Active tasks, standbys, both with less traffic where racks and costs are known."""
    placement = Placement(group)
    assignment = StickyAssignment(group, placement, larger_first=False)
    racks = Racks(group)
    assignment.assign_active(keep_all=False)
    if group.tasks and _usable(racks, config, standby=False):
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
    if any(placement.standby) and _usable(racks, config, standby=True):
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
    return Decision(placement, probing=False, tables=assignment.tables)


def _usable(racks: Racks, config: Config, *, standby: bool) -> bool:
    """TaskAssignmentUtils.canPerformRackAwareOptimization."""
    return (
        config.strategy is not Strategy.NONE
        and config.traffic_cost is not None
        and config.non_overlap_cost is not None
        and racks.known
        and racks.topics_known(changelogs if standby else all_partitions)
    )

"""The task assignors by name, with the facts that `groupstorm assign` needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.draft import kip441_draft
from groupstorm.assignors.streams.highavailability import high_availability
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    STICKY_COSTS,
    Config,
    Costs,
    Decision,
    Placement,
    Strategy,
    StreamsGroup,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.assignors.streams.standbys import standby_assignor
from groupstorm.assignors.streams.sticky import fallback_prior, legacy_sticky, public_sticky


class TaskAssignor(NamedTuple):
    assign: Callable[[StreamsGroup, Config], Decision]
    costs: Costs


TASK_ASSIGNORS: dict[str, TaskAssignor] = {
    "ha": TaskAssignor(high_availability, HIGH_AVAILABILITY_COSTS),
    "legacy-sticky": TaskAssignor(legacy_sticky, STICKY_COSTS),
    "fallback-prior": TaskAssignor(fallback_prior, HIGH_AVAILABILITY_COSTS),
    "kip441-draft": TaskAssignor(kip441_draft, HIGH_AVAILABILITY_COSTS),
    "sticky": TaskAssignor(public_sticky, STICKY_COSTS),
}


def price(group: StreamsGroup, config: Config, given: Placement) -> Decision:
    return Decision(given)


def optimize_active(group: StreamsGroup, config: Config, given: Placement) -> Decision:
    """Optimize all active tasks of a placement (RackAwareTaskAssignor.optimizeActiveTasks alone). Standbys do
    not count: assignors place them later."""
    for standbys in given.standby:
        standbys.clear()
    cross_rack = CrossRack(_racks(group, config), inputs)
    costs = HIGH_AVAILABILITY_COSTS.configured(config)
    tasks = set().union(*given.active)
    return Decision(given, optimized_cost=Optimisation.of(cross_rack, costs, config).active(given, tasks))


def optimize_standby(group: StreamsGroup, config: Config, given: Placement) -> Decision:
    """Optimize all standbys of a placement (RackAwareTaskAssignor.optimizeStandbyTasks alone)."""
    cross_rack = CrossRack(_racks(group, config), changelogs)
    costs = HIGH_AVAILABILITY_COSTS.configured(config)
    assignor = standby_assignor(group, config)
    cost = Optimisation.of(cross_rack, costs, config).standby(
        given, lambda source, destination, task: assignor.may_move(source, destination, task, given)
    )
    return Decision(given, optimized_cost=cost)


def _racks(group: StreamsGroup, config: Config) -> TaskRacks:
    if config.strategy is Strategy.NONE:
        raise AssignmentRefused("IllegalArgumentException", "Rack aware assignment is disabled")
    return TaskRacks(group)


ON_A_PLACEMENT: dict[str, Callable[[StreamsGroup, Config, Placement], Decision]] = {
    "price": price,
    "optimize-active": optimize_active,
    "optimize-standby": optimize_standby,
}

"""Document 004, KIP-925 in its fourth version: its shares and its standby placements.

Kafka's recorded answers hold costs, graphs and examples of active tasks (`price`, `optimize-active`).
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.graphs import shares
from groupstorm.assignors.streams.highavailability import high_availability
from groupstorm.assignors.streams.model import (
    Config,
    Costs,
    Placement,
    Solver,
    StandbyPlacement,
    Strategy,
    StreamsGroup,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from tests.assignors.streams.groups import (
    active,
    assign,
    client,
    owners,
    random_group,
    random_placement,
    standby,
    task,
)


def _optimised(
    group: StreamsGroup, start: Placement, strategy: Strategy, costs: Costs, solver: Solver = Solver.AUTO
) -> tuple[int, Placement]:
    placement = Placement(group)
    for own, held in zip(placement.active, start.active, strict=True):
        own.update(held)
    clients = range(len(group.clients))
    optimisation = Optimisation(group, CrossRack(TaskRacks(group), inputs), costs, strategy, clients, solver)
    return optimisation.active(placement, range(len(group.tasks))), placement


def test_line_122_the_shares_are_rounded_up_in_floating_point() -> None:
    """14 of 50 tasks, a sub-topology of 25: exactly 7, and 8 in Kafka."""
    assert math.ceil(14 / 50 * 25) == 8
    assert shares([14, 36], 50, 25) == [8, 18]


@pytest.mark.slow
def test_line_117_the_shares_always_have_a_solution() -> None:
    """x = S*C/n is a feasible fractional flow, so there is an integral one: the solvers refuse otherwise."""
    generator = random.Random("line 117")
    for _ in range(60):
        group = random_group(generator)
        start = random_placement(generator, group)
        for solver in (Solver.CYCLE_CANCELING, Solver.SHORTEST_PATHS):
            for costs in (Costs(1, 0), Costs(10, 1)):
                _, found = _optimised(group, start, Strategy.BALANCE_SUBTOPOLOGY, costs, solver)
                _within_shares(group, start, found)


def _within_shares(group: StreamsGroup, start: Placement, found: Placement) -> None:
    counts = [len(tasks) for tasks in start.active]
    assert [len(tasks) for tasks in found.active] == counts
    assert len(owners(found.active)) == len(group.tasks)
    for of_group in group.subtopologies:
        limits = shares(counts, len(group.tasks), len(of_group))
        taken = [len(tasks.intersection(of_group)) for tasks in found.active]
        assert all(own <= limit for own, limit in zip(taken, limits, strict=True))


CHAIN = [task("0_0", changelogs="r2"), task("0_1", changelogs="r3"), task("0_2", changelogs="r1")]
IN_THREE_RACKS = [client(1, rack="r1"), client(2, rack="r2"), client(3, rack="r3")]


def test_lines_145_to_157_the_greedy_loop_exchanges_what_gets_cheaper() -> None:
    found = assign(
        "ha",
        CHAIN,
        IN_THREE_RACKS,
        num_standby_replicas=1,
        strategy="min_traffic",
        standby_placement="greedy",
    )
    kept = assign("ha", CHAIN, IN_THREE_RACKS, num_standby_replicas=1)
    assert found["cost"]["standby_cross_rack"] <= kept["cost"]["standby_cross_rack"]
    for name, own in standby(found).items():
        assert not set(own) & set(active(found)[name])


def test_lines_163_to_164_reliable_first_prefers_another_rack_to_less_traffic() -> None:
    """The changelog is in the active's rack alone: the shipped way may follow it, this one does not."""
    tasks = [task("0_0", "r1", "r1"), task("0_1", "r1", "r1")]
    clients = [client(1, rack="r1"), client(2, rack="r1"), client(3, rack="r2"), client(4, rack="r2")]
    found = assign(
        "ha",
        tasks,
        clients,
        num_standby_replicas=1,
        strategy="min_traffic",
        standby_placement="reliable-first",
    )
    assert {name for name, own in active(found).items() if own} == {"1", "2"}
    assert {name for name, own in standby(found).items() if own} == {"3", "4"}


def test_lines_169_to_170_later_standbys_prefer_less_traffic() -> None:
    tasks = [task("0_0", "r1", "r1")]
    clients = [client(1, rack="r1"), client(2, rack="r1"), client(3, rack="r2"), client(4, rack="r3")]
    settings: dict[str, Any] = {"strategy": "min_traffic", "standby_placement": "reliable-first"}
    cheap = assign("ha", tasks, clients, num_standby_replicas=1, reliable_standbys=0, **settings)
    assert standby(cheap)["2"] == ["0_0"]
    both = assign("ha", tasks, clients, num_standby_replicas=2, reliable_standbys=1, **settings)
    assert {name for name, own in standby(both).items() if own} == {"2", "3"}


def test_line_176_tags_and_racks() -> None:
    """Tags place standbys by default, as in Kafka; with the setting the racks do."""
    tasks = [task("0_0", changelogs="r1 r2")]
    clients = [
        client(1, rack="r1", tags={"zone": "a"}),
        client(2, rack="r1", tags={"zone": "b"}),
        client(3, rack="r2", tags={"zone": "a"}),
    ]
    settings: dict[str, Any] = {"num_standby_replicas": 1, "rack_aware_tags": ["zone"]}
    assert standby(assign("ha", tasks, clients, **settings))["2"] == ["0_0"]
    assert standby(assign("ha", tasks, clients, tags_or_racks="racks", **settings))["3"] == ["0_0"]


@pytest.mark.parametrize("placement", list(StandbyPlacement))
def test_the_three_placements_keep_what_a_standby_must_keep(placement: StandbyPlacement) -> None:
    """On random clusters: as many standbys as wanted, never beside the active one, never two on a client."""
    generator = random.Random("placements")
    for _ in range(25):
        group = random_group(generator, tasks_max=20)
        config = Config(num_standby_replicas=1, strategy=Strategy.MIN_TRAFFIC, standby_placement=placement)
        found = high_availability(group, config).placement
        running = owners(found.active)
        followed = owners(found.standby)
        assert set(followed) == set(running) == set(range(len(group.tasks)))
        assert all(followed[one] != running[one] for one in running)


def test_what_each_placement_is_good_at() -> None:
    """Over random clusters: reliable-first shares the fewest racks, shipped crosses fewer."""
    same_rack: dict[StandbyPlacement, int] = dict.fromkeys(StandbyPlacement, 0)
    crossing: dict[StandbyPlacement, int] = dict.fromkeys(StandbyPlacement, 0)
    for placement in StandbyPlacement:
        generator = random.Random("good at")
        for _ in range(40):
            group = random_group(generator, tasks_max=20)
            config = Config(
                num_standby_replicas=1, strategy=Strategy.MIN_TRAFFIC, standby_placement=placement
            )
            found = high_availability(group, config).placement
            racks = TaskRacks(group).numbers
            running, followed = owners(found.active), owners(found.standby)
            same_rack[placement] += sum(racks[running[one]] == racks[followed[one]] for one in running)
            cost = CrossRack(TaskRacks(group), changelogs)
            crossing[placement] += cost.total(found.standby, followed)
    assert same_rack[StandbyPlacement.RELIABLE_FIRST] < same_rack[StandbyPlacement.SHIPPED]
    assert same_rack[StandbyPlacement.RELIABLE_FIRST] < same_rack[StandbyPlacement.GREEDY]
    assert crossing[StandbyPlacement.SHIPPED] < crossing[StandbyPlacement.RELIABLE_FIRST]

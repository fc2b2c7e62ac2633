"""Standbys and racks on random clusters: what KIP-925's three placements cost and how far they spread.

    python -m benchmarks.streams_placements [--clusters 200] [--seed 1]

Also the drawback that the KIP admits: how many tasks each client gets is settled before racks are looked at.
The gap is what the least cost would be with any balanced totals, beside what it is with the settled ones.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.streams.collapsed import FlowNetwork
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.highavailability import high_availability
from groupstorm.assignors.streams.model import (
    Config,
    StandbyPlacement,
    Strategy,
    StreamsClient,
    StreamsGroup,
    Task,
    TaskPartition,
)
from groupstorm.assignors.userdata.streams import TaskId

_NOTHING = 1_000_000


class Figures(NamedTuple):
    """Cross-rack changelog partitions, standbys in their active's rack, distinct racks of all tasks."""

    crossing: int
    beside: int
    racks: int


def clusters(seed: int, count: int) -> Iterator[StreamsGroup]:
    """Three to five racks, two replicas, one thread a client, one input and one changelog a task."""
    for number in range(count):
        generator = random.Random(f"placements:{seed}:{number}")
        names = [f"r{rack}" for rack in range(generator.randint(3, 5))]
        tasks = [
            Task(
                TaskId("", group, one),
                True,
                (TaskPartition(f"in{group}", one, frozenset(generator.sample(names, 2))),),
                (TaskPartition(f"log{group}", one, frozenset(generator.sample(names, 2))),),
            )
            for group in range(generator.randint(1, 4))
            for one in range(generator.randint(3, 15))
        ]
        clients = [
            StreamsClient(UUID(int=one + 1), 1, generator.choice(names), fresh_elsewhere=True)
            for one in range(generator.randint(4, 12))
        ]
        ends = dict.fromkeys(range(len(tasks)), _NOTHING)
        yield StreamsGroup(tasks, clients, range(len(clients)), ends)


def placed(group: StreamsGroup, placement: StandbyPlacement) -> Figures:
    """One standby for each task."""
    config = Config(num_standby_replicas=1, strategy=Strategy.MIN_TRAFFIC, standby_placement=placement)
    found = high_availability(group, config).placement
    racks = TaskRacks(group)
    owners = found.owners()
    followers = {task: client for client, tasks in enumerate(found.standby) for task in tasks}
    pairs = [(racks.numbers[owners[task]], racks.numbers[followers[task]]) for task in followers]
    return Figures(
        CrossRack(racks, changelogs).total(found.standby, followers),
        sum(one == other for one, other in pairs),
        sum(len(set(pair)) for pair in pairs),
    )


def costs_of_totals(group: StreamsGroup) -> tuple[int, int]:
    """Cross-rack inputs at the least: with the totals that the assignor settles first, and with any."""
    config = Config(strategy=Strategy.MIN_TRAFFIC, traffic_cost=1, non_overlap_cost=0)
    cross_rack = CrossRack(TaskRacks(group), inputs)
    settled = high_availability(group, config).placement
    return cross_rack.total(settled.active, range(len(group.tasks))), _least(group, cross_rack)


def _least(group: StreamsGroup, cross_rack: CrossRack) -> int:
    """Every client gets its share rounded down; the rest go, one each, where they cost the least."""
    floor = len(group.tasks) // len(group.clients)
    dear = len(group.tasks) + 1
    network = FlowNetwork()
    source, sink = network.add_node(), network.add_node()
    racks = {}
    for rack, clients in sorted(Counter(cross_rack.racks.numbers).items()):
        racks[rack] = network.add_node()
        network.add_arc(racks[rack], sink, floor * clients, 0)
        network.add_arc(racks[rack], sink, clients, dear)
    priced = []
    for task in range(len(group.tasks)):
        node = network.add_node()
        network.add_arc(source, node, 1, 0)
        row = cross_rack.row(task)
        priced += [(row[rack], network.add_arc(node, there, 1, row[rack])) for rack, there in racks.items()]
    network.send(source, sink)
    return sum(price * network.flow(arc) for price, arc in priced)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    drawn = list(clusters(options.seed, options.clusters))
    tasks = sum(len(group.tasks) for group in drawn)
    print(f"{len(drawn)} clusters, {tasks:,} tasks, one standby each")
    print(f"{'placement':16} {'cross-rack partitions':>22} {'in the active rack':>19} {'racks per task':>15}")
    for placement in StandbyPlacement:
        figures = [placed(group, placement) for group in drawn]
        crossing, beside, racks = (sum(column) for column in zip(*figures, strict=True))
        print(f"{placement:16} {crossing:>22,} {beside:>19,} {racks / tasks:>15.3f}")
    gaps = [costs_of_totals(group) for group in drawn]
    settled, least = (sum(column) for column in zip(*gaps, strict=True))
    worse = sum(one > other for one, other in gaps)
    print(
        f"totals settled first: {settled:,} cross-rack partitions, {least:,} at the least "
        f"({settled / least - 1:.1%} more); {worse} of {len(gaps)} clusters cost more than they must"
    )


if __name__ == "__main__":
    main()

"""The fast solver reaches the cost of Kafka's solver on every problem, and both reach the minimum."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from groupstorm.assignors.streams import collapsed, graphs
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, inputs
from groupstorm.assignors.streams.graphs import FlowGraph, Problem
from groupstorm.assignors.streams.model import Costs, StreamsClient, StreamsGroup, Task, TaskPartition
from groupstorm.assignors.userdata.streams import TaskId
from tests.assignors.streams.groups import owners, random_group, random_placement
from tests.broker.frames.harness import cpu_limit

PRICES = [Costs(1, 0), Costs(10, 1), Costs(1, 10), Costs(0, 1), Costs(3, 2), Costs(0, 0)]


def problem_of(generator: random.Random, costs: Costs, *, balanced: bool) -> Problem:
    group = random_group(generator, tasks_max=24, clients_max=7, racks=generator.randint(2, 5))
    tasks = list(range(len(group.tasks)))
    held = owners(random_placement(generator, group).active)
    present = [held[task] for task in tasks]
    cross_rack = CrossRack(TaskRacks(group), inputs)
    groups = group.subtopologies if balanced else None
    return Problem(tasks, range(len(group.clients)), present, cross_rack, costs, groups)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("costs", PRICES)
def test_both_solvers_cost_the_same(costs: Costs, balanced: bool) -> None:
    generator = random.Random(f"{costs}{balanced}")
    for _ in range(40):
        problem = problem_of(generator, costs, balanced=balanced)
        kafkas, ours = graphs.solve(problem), collapsed.solve(problem)
        assert problem.total(ours) == problem.total(kafkas)
        counts = [ours.count(client) for client in range(len(problem.clients))]
        assert counts == problem.counts()


@pytest.mark.parametrize("balanced", [False, True])
def test_networkx_finds_nothing_cheaper(balanced: bool) -> None:
    networkx = pytest.importorskip("networkx", reason="pip install networkx: another solver to compare with")
    generator = random.Random("networkx")
    for costs in PRICES:
        for _ in range(8):
            problem = problem_of(generator, costs, balanced=balanced)
            network = networkx.DiGraph()
            counts = problem.counts()
            groups = problem.groups or [problem.tasks]
            for number, group in enumerate(groups):
                limits = graphs.shares(counts, len(problem.tasks), len(group))
                for client, limit in enumerate(limits):
                    capacity = limit if balanced else len(problem.tasks)
                    network.add_edge(("layer", number, client), ("client", client), capacity=capacity)
                    for task in group:
                        cost = problem.cost(task, client)
                        network.add_edge(("task", task), ("layer", number, client), capacity=1, weight=cost)
                for task in group:
                    network.add_edge("source", ("task", task), capacity=1)
            for client, count in enumerate(counts):
                network.add_edge(("client", client), "sink", capacity=count)
            flow = networkx.max_flow_min_cost(network, "source", "sink")
            least = networkx.cost_of_flow(network, flow)
            assert problem.total(collapsed.solve(problem)) == least


def test_tasks_that_are_alike_stay_where_they_are() -> None:
    """The written rule: the smallest TaskIds stay, and nothing moves that need not."""
    generator = random.Random("stay")
    for _ in range(40):
        problem = problem_of(generator, Costs(1, 0), balanced=False)
        again = Problem(
            problem.tasks, problem.clients, collapsed.solve(problem), problem.cross_rack, problem.costs
        )
        assert collapsed.solve(again) == again.present


def test_a_negative_cycle_is_sent_round() -> None:
    """Two tasks, two clients, each task cheaper where the other is."""
    graph = FlowGraph(6)
    source, tasks, clients, sink = 0, (1, 2), (3, 4), 5
    edges = {}
    for task in tasks:
        graph.add_edge(source, task, 1, 0, 1)
        for client in clients:
            home = client - task == 2
            edges[task, client] = graph.add_edge(task, client, 1, 5 if home else 1, int(home))
    for client in clients:
        graph.add_edge(client, sink, 1, 0, 1)
    graph.freeze()
    assert graph.cancel_negative_cycles() == 1
    assert {key for key, edge in edges.items() if graph.flow(edge)} == {(1, 4), (2, 3)}
    assert graph.cancel_negative_cycles() == 0


def large_problem(tasks: int, clients: int, costs: Costs, *, balanced: bool) -> Problem:
    """Ten sub-topologies, two inputs each, three racks; the tasks dealt round robin."""
    generator = random.Random("large")
    racks = ["r0", "r1", "r2"]

    def read(topic: str, number: int) -> TaskPartition:
        return TaskPartition(topic, number, frozenset(generator.sample(racks, 2)))

    listed = [
        Task(TaskId("", group, number), True, (read(f"a{group}", number), read(f"b{group}", number)))
        for group in range(10)
        for number in range(tasks // 10)
    ]
    members = [StreamsClient(UUID(int=number + 1), 1, racks[number % 3]) for number in range(clients)]
    group = StreamsGroup(listed, members, range(clients))
    present = [number % clients for number in range(tasks)]
    groups = group.subtopologies if balanced else None
    cross_rack = CrossRack(TaskRacks(group), inputs)
    return Problem(range(tasks), range(clients), present, cross_rack, costs, groups)


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("costs", [Costs(10, 0), Costs(10, 1)])
def test_six_thousand_tasks_are_within_reach(costs: Costs, balanced: bool) -> None:
    """The aim is 0.05 s with traffic alone; to reach the limit, something has to be quadratic."""
    problem = large_problem(6_000, 100, costs, balanced=balanced)
    with cpu_limit():
        collapsed.solve(problem)

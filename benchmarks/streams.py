"""The time that the task assignors of Kafka Streams take, ours and Kafka's own in one run.

    python -m benchmarks.streams [--repeat 3] [--java-seconds 60] [--without-java] [--only NAME]

CPU milliseconds of the calling thread, the least of ``--repeat`` runs; Kafka's Java classes after a warm-up
of three runs and three seconds. Reading the case is not counted on either side. Kafka is asked only where it
is expected to end within ``--java-seconds`` (its times are known roughly), and where there are Java and
Maven. Clusters: three racks, two replicas, two inputs, ten sub-topologies; costs traffic / non-overlap.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from groupstorm.assignors.streams.cases import StreamsCase, read_case
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, inputs
from groupstorm.assignors.streams.leader import TASK_ASSIGNORS
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    Config,
    Placement,
    Solver,
    Strategy,
    StreamsGroup,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from tests.oracle.build import OracleUnavailable, build
from tests.oracle.jvm import Jvm
from tests.oracle.running import as_line

Case = dict[str, Any]
_RACKS = ("r0", "r1", "r2")
_SUBTOPOLOGIES = 10
_NOTHING = 1_000_000


class Measured(NamedTuple):
    """``java_seconds``: what Kafka takes, roughly; only cases below the limit are sent to it."""

    name: str
    case: Case
    java_seconds: float


class Took(NamedTuple):
    cpu_ms: float
    cost: int


def cluster(tasks: int, clients: int) -> Case:
    """Nobody has had anything yet."""
    generator = random.Random(f"{tasks}x{clients}")

    def partition(topic: str, number: int) -> list[Any]:
        return [topic, number, generator.sample(_RACKS, 2)]

    listed = []
    for number in range(tasks):
        group, own = number % _SUBTOPOLOGIES, number // _SUBTOPOLOGIES
        read = [partition(f"in{group}-{one}", own) for one in range(2)]
        kept = [partition(f"log{group}", own)]
        listed.append({"id": f"{group}_{own}", "stateful": True, "inputs": read, "changelogs": kept})
    members = [
        {"id": str(number + 1), "capacity": 1, "rack": _RACKS[number % 3], "consumers": [_consumer(number)]}
        for number in range(clients)
    ]
    ends = {task["id"]: _NOTHING for task in listed}
    return {"id": f"{tasks} x {clients}", "tasks": listed, "clients": members, "end_offset_sums": ends}


def _consumer(number: int) -> Case:
    return {"id": f"c{number}", "owned_active": [], "offset_sums": {}}


def optimisation(tasks: int, clients: int, strategy: str, costs: tuple[int, int]) -> Case:
    """All tasks dealt round robin, to be optimised."""
    case = cluster(tasks, clients)
    names = [client["id"] for client in case["clients"]]
    given: Case = {name: {"active": [], "standby": []} for name in names}
    for number, task in enumerate(case["tasks"]):
        given[names[number % clients]]["active"].append(task["id"])
    config = {"strategy": strategy, "traffic_cost": costs[0], "non_overlap_cost": costs[1]}
    return {**case, "assignor": "optimize-active", "given": given, "config": config}


def high_availability(tasks: int, clients: int) -> Case:
    """One standby, empty start."""
    config = {"num_standby_replicas": 1, "strategy": "none"}
    return {**cluster(tasks, clients), "assignor": "ha", "config": config}


def one_more(case: Case) -> Case:
    """After the empty start all is caught up, and a client comes."""
    asked = read_case(as_line(case).encode(), "case")
    placement = TASK_ASSIGNORS["ha"].assign(asked.group, asked.config).placement
    members = []
    for client in case["clients"]:
        number = asked.names[client["id"]]
        running = [str(asked.group.tasks[task].id) for task in sorted(placement.active[number])]
        following = [str(asked.group.tasks[task].id) for task in sorted(placement.standby[number])]
        sums = {**dict.fromkeys(running, -2), **dict.fromkeys(following, _NOTHING)}
        consumer = {**client["consumers"][0], "owned_active": running, "offset_sums": sums}
        members.append({**client, "consumers": [consumer]})
    number = len(members)
    members.append({"id": str(number + 1), "capacity": 1, "rack": "r0", "consumers": [_consumer(number)]})
    return {**case, "clients": members}


def all_measured() -> Iterator[Measured]:
    """Rack-aware optimisation, then high availability."""
    roughly = {
        "min_traffic": {120: 0.2, 200: 1, 400: 10, 600: 40},
        "balance_subtopology": {120: 0.5, 200: 2, 400: 25},
    }
    for strategy, known in roughly.items():
        for tasks, clients in ((120, 15), (200, 20), (400, 25), (600, 30), (6_000, 100), (50_000, 500)):
            for costs in ((10, 0), (10, 1)):
                name = f"{strategy} {costs[0]}/{costs[1]}"
                case = optimisation(tasks, clients, strategy, costs)
                yield Measured(name, case, known.get(tasks, float("inf")))
    for tasks, clients in ((600, 30), (6_000, 100), (30_000, 500)):
        fresh = high_availability(tasks, clients)
        java = {600: 0.1, 6_000: 2, 30_000: 60}[tasks]
        yield Measured("high availability, fresh", fresh, java)
        yield Measured("high availability, one more", one_more(fresh), java)


def ours(case: Case, repeat: int) -> Took:
    """Our time and, for an optimisation, the cost that was reached."""
    asked = read_case(as_line(case).encode(), "case")
    runs = [_run(asked) for _ in range(repeat)]
    return min(runs)


def _run(asked: StreamsCase) -> Took:
    group, config = _unused(asked.group), asked.config
    if asked.assignor in TASK_ASSIGNORS:
        start = time.thread_time()
        TASK_ASSIGNORS[asked.assignor].assign(group, config)
        return Took((time.thread_time() - start) * 1000, 0)
    placement = Placement(group)
    for held, given in zip(placement.active, asked.given.active, strict=True):
        held.update(given)
    return _optimise(group, config, placement)


def _unused(group: StreamsGroup) -> StreamsGroup:
    """Return the group with nothing remembered of it."""
    return StreamsGroup(group.tasks, group.clients, group.filled, group.end_offset_sums)


def _optimise(group: StreamsGroup, config: Config, placement: Placement) -> Took:
    """With the fast solver, whatever the size. The racks are read before, as Kafka's are."""
    cross_rack = CrossRack(TaskRacks(group), inputs)
    for task in range(len(group.tasks)):
        cross_rack.row(task)
    costs = HIGH_AVAILABILITY_COSTS.configured(config)
    clients = range(len(group.clients))
    strategy = Strategy(config.strategy)
    start = time.thread_time()
    cost = Optimisation(group, cross_rack, costs, strategy, clients, Solver.SHORTEST_PATHS).active(
        placement, range(len(group.tasks))
    )
    return Took((time.thread_time() - start) * 1000, cost)


@contextmanager
def kafka(wanted: bool) -> Iterator[Callable[[Case, int], Took] | None]:
    """Asks Kafka's classes for their time; None where they cannot be run."""
    if not wanted:
        yield None
        return
    try:
        built = build()
    except OracleUnavailable as problem:
        print(f"without Kafka: {problem}")
        yield None
        return
    # 30,000 tasks on 500 clients: Kafka prints all lags into a debug line, more than 2 GB of text on its way
    with Jvm(built, "streams-speed", heap="10g") as jvm:

        def ask(case: Case, repeat: int) -> Took:
            request = {"case": case, "warmup_seconds": 3, "runs": repeat}
            told = json.loads(jvm.ask(as_line(request)))
            return Took(told["cpu_ms"], told["cost"])

        yield ask


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, a line for each case as soon as it is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--java-seconds", type=float, default=15, help="how long a run of Kafka's may take")
    parser.add_argument("--without-java", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME", help="the rows whose name begins so")
    options = parser.parse_args(arguments)
    print(f"{'':34} {'tasks x clients':>16} {'ours, ms':>10} {'Kafka, ms':>11} {'times':>8}  cost")
    with kafka(not options.without_java) as ask:
        for measured in all_measured():
            if not measured.name.startswith(options.only):
                continue
            own = ours(measured.case, options.repeat)
            theirs = None
            if ask is not None and measured.java_seconds <= options.java_seconds:
                theirs = ask(measured.case, 1 if measured.java_seconds > 5 else options.repeat)
            print(_line(measured, own, theirs), flush=True)


def _line(measured: Measured, own: Took, theirs: Took | None) -> str:
    java = "" if theirs is None else f"{theirs.cpu_ms:,.1f}"
    times = "" if theirs is None else f"{theirs.cpu_ms / own.cpu_ms:,.0f}"
    same = "" if theirs is None or theirs.cost == own.cost else f" KAFKA'S IS {theirs.cost}"
    size = measured.case["id"]
    return f"{measured.name:34} {size:>16} {own.cpu_ms:>10,.1f} {java:>11} {times:>8}  {own.cost}{same}"


if __name__ == "__main__":
    main()

"""Groups for tests: written down briefly, or drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from groupstorm.assignors.streams.cases import answer, read_case
from groupstorm.assignors.streams.model import Placement, StreamsClient, StreamsGroup, Task, TaskPartition
from groupstorm.assignors.userdata.streams import TaskId
from tests.oracle.running import as_line


def task(name: str, inputs: str = "r1", changelogs: str = "r1", *, stateful: bool = True) -> dict[str, Any]:
    """A task of one input and one changelog; racks separated by spaces."""
    subtopology, _, partition = name.partition("_")
    return {
        "id": name,
        "stateful": stateful,
        "inputs": [[f"in{subtopology}", int(partition), inputs.split()]],
        "changelogs": [[f"log{subtopology}", int(partition), changelogs.split()]] if stateful else [],
    }


def client(number: int, capacity: int = 1, rack: str | None = "r1", **more: Any) -> dict[str, Any]:
    """``had``: task -> lag; tasks of a lag of -2 were running, others were standbys."""
    had: Mapping[str, int] = more.pop("had", {})
    return {
        "id": str(number),
        "capacity": capacity,
        "rack": rack,
        "prev_active": [name for name, lag in had.items() if lag == -2],
        "prev_standby": [name for name, lag in had.items() if lag != -2],
        "had": had,
        **more,
    }


def assign(
    assignor: str, tasks: Sequence[dict[str, Any]], clients: Sequence[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    """Our answer; ``more``: settings, or ``given``. Clients lag a lot on what they did not have."""
    given = more.pop("given", None)
    case: dict[str, Any] = {"id": 1, "assignor": assignor, "tasks": list(tasks), "config": more}
    case["clients"] = []
    for each in clients:
        own = dict(each)
        lags = {one["id"]: 1_000_000 for one in tasks if one["stateful"]} | dict(own.pop("had", {}))
        case["clients"].append({**own, "lags": lags})
    if given is not None:
        case["given"] = given
    found: dict[str, Any] = answer(read_case(as_line(case).encode(), "case"))
    return found


def active(found: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: own["active"] for name, own in found["clients"].items()}


def standby(found: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: own["standby"] for name, own in found["clients"].items()}


def random_group(
    generator: random.Random, *, tasks_max: int = 40, clients_max: int = 8, racks: int = 3
) -> StreamsGroup:
    """Everybody has a rack, nobody has had anything; two or three inputs, one changelog."""
    names = [f"r{number}" for number in range(racks)]

    def partition(topic: str, number: int) -> TaskPartition:
        replicas = generator.sample(names, generator.randint(1, racks - 1))
        return TaskPartition(topic, number, frozenset(replicas))

    tasks: list[Task] = []
    while not tasks or (len(tasks) < tasks_max and generator.random() < 0.7):
        subtopology = len({each.id.subtopology for each in tasks})
        inputs = generator.randint(1, 2)
        for number in range(generator.randint(1, max(1, tasks_max // 4))):
            read = tuple(partition(f"in{subtopology}-{one}", number) for one in range(inputs))
            kept = (partition(f"log{subtopology}", number),)
            tasks.append(Task(TaskId("", subtopology, number), True, read, kept))
    clients = [
        StreamsClient(
            UUID(int=number + 1), generator.randint(1, 3), generator.choice(names), fresh_elsewhere=True
        )
        for number in range(generator.randint(2, clients_max))
    ]
    ends = dict.fromkeys(range(len(tasks)), 1_000_000)
    return StreamsGroup(tasks, clients, range(len(clients)), ends)


def random_placement(generator: random.Random, group: StreamsGroup) -> Placement:
    """Every task on some client."""
    placement = Placement(group)
    for number in range(len(group.tasks)):
        placement.active[generator.randrange(len(group.clients))].add(number)
    return placement


def owners(held: Iterable[set[int]]) -> dict[int, int]:
    """Task -> who has it; fails where two do."""
    found: dict[int, int] = {}
    for number, tasks in enumerate(held):
        for one in tasks:
            assert one not in found
            found[one] = number
    return found

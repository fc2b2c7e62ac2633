"""Random cases for the task assignors of Kafka Streams.

Each case depends on its seed and number alone. Most are small, since what goes wrong goes wrong there; a
few have some hundred tasks, for which groupstorm takes its fast solver.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.oracle.running import Case

ASSIGNORS = (
    "ha",
    "legacy-sticky",
    "fallback-prior",
    "sticky",
    "price",
    "optimize-active",
    "optimize-standby",
)

_LAGS = (0, 5, 10, 100, 107, 9_000, 20_000, 50_000)
_LATEST, _UNKNOWN = -2, -3
_ZONES, _CLUSTERS = ("a", "b", "c"), ("a", "b")


class Size(NamedTuple):
    """At most so many of each."""

    subtopologies: int
    partitions: int
    clients: int


SMALL = Size(5, 5, 6)
_LARGE = Size(6, 24, 14)
_LARGE_SHARE = 0.02


def random_cases(seed: int, count: int) -> Iterator[Case]:
    """The first cases of a seed, the assignors in turn."""
    for number in range(count):
        generator = random.Random(f"streams:{seed}:{number}")
        assignor = ASSIGNORS[number % len(ASSIGNORS)]
        size = _LARGE if generator.random() < _LARGE_SHARE else SMALL
        yield draw_case(generator, f"{seed}-{number}", assignor, size)


def draw_case(generator: random.Random, case_id: str, assignor: str, size: Size) -> Case:
    """A case for that assignor."""
    return _Drawing(generator, size).case(case_id, assignor)


class _Drawing:
    def __init__(self, generator: random.Random, size: Size) -> None:
        self._random = generator
        self._size = size
        self._racks = [f"r{number}" for number in range(generator.randint(1, 5))]
        self._knows_racks = generator.random() < 0.93

    def _happens(self, probability: float) -> bool:
        return self._random.random() < probability

    def case(self, case_id: str, assignor: str) -> Case:
        tasks = self._tasks()
        stateful = [task["id"] for task in tasks if task["stateful"]]
        ids = [task["id"] for task in tasks]
        clients = self._clients()
        names = [client["id"] for client in clients]
        running = self._placed(ids, len(clients), 0.85)
        following = self._placed(stateful, len(clients), 0.5)
        case: Case = {"id": case_id, "assignor": assignor, "tasks": tasks, "clients": clients}
        if self._happens(0.45):
            ends = {task: self._random.choice(_LAGS) for task in stateful}
            case["end_offset_sums"] = ends
            for number, client in enumerate(clients):
                client["consumers"] = self._consumers(client, running[number], following[number], stateful)
        else:
            for number, client in enumerate(clients):
                self._say_state(client, running[number], following[number], stateful)
        case["config"] = self._config()
        if assignor == "sticky" and self._happens(0.5):
            self._random.choice((case, case["config"]))["must_preserve_active"] = True
        if assignor not in ("ha", "legacy-sticky", "fallback-prior", "sticky"):
            # Where active tasks are optimised there are no standbys yet; those of a few cases are ignored.
            standbys = stateful if assignor != "optimize-active" or self._happens(0.05) else []
            case["given"] = self._given(names, ids, standbys)
            if assignor != "price" and case["config"]["strategy"] == "none":
                case["config"]["strategy"] = "min_traffic"
        return case

    # -- tasks -------------------------------------------------------------------------------------------

    def _tasks(self) -> list[dict[str, Any]]:
        tasks = []
        for subtopology in range(self._random.randint(1, self._size.subtopologies)):
            stateful = self._happens(0.75)
            partitions = self._random.randint(1, self._size.partitions)
            inputs = self._random.choices((1, 2, 3), (6, 3, 1))[0]
            changelogs = self._random.choices((1, 2), (4, 1))[0] if stateful else 0
            source_changelog = stateful and self._happens(0.1)
            for partition in range(partitions):
                read = [self._partition(f"in{subtopology}-{number}", partition) for number in range(inputs)]
                kept = [
                    self._partition(f"log{subtopology}-{number}", partition) for number in range(changelogs)
                ]
                if source_changelog:
                    kept[0] = read[0]
                tasks.append(
                    {
                        "id": f"{subtopology}_{partition}",
                        "stateful": stateful,
                        "inputs": read,
                        "changelogs": kept,
                    }
                )
        return tasks

    def _partition(self, topic: str, number: int) -> list[Any]:
        replicas = self._random.randint(1, min(3, len(self._racks)))
        racks: list[str | None] = list(self._random.sample(self._racks, replicas))
        if not self._knows_racks and self._happens(0.05):
            racks[0] = None
        return [topic, number, racks]

    # -- clients -----------------------------------------------------------------------------------------

    def _clients(self) -> list[dict[str, Any]]:
        count = self._random.randint(1, self._size.clients)
        numbered = self._happens(0.4)
        clients: list[dict[str, Any]] = []
        for number in range(count):
            client: dict[str, Any] = {
                "id": str(number + 1) if numbered else self._uuid(),
                "capacity": self._random.choices((1, 2, 3, 5), (5, 3, 2, 1))[0],
                "rack": self._random.choice(self._racks),
            }
            if not self._knows_racks and self._happens(0.3):
                client["rack"] = None
            clients.append(client)
        if self._happens(0.6):
            for client in clients:
                client["tags"] = self._tags()
        self._random.shuffle(clients)
        return clients

    def _uuid(self) -> str:
        bits = f"{self._random.getrandbits(128):032x}"
        return "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))

    def _tags(self) -> dict[str, str]:
        tags = {"zone": self._random.choice(_ZONES)}
        if self._happens(0.7):
            tags["cluster"] = self._random.choice(_CLUSTERS)
        if self._happens(0.1):
            del tags["zone"]
        return tags

    def _placed(self, tasks: list[str], clients: int, probability: float) -> list[list[str]]:
        """Who had what; a few tasks were with two at once."""
        placed: list[list[str]] = [[] for _ in range(clients)]
        for task in tasks:
            if self._happens(probability):
                placed[self._random.randrange(clients)].append(task)
            if self._happens(0.04):
                placed[self._random.randrange(clients)].append(task)
        return [list(dict.fromkeys(had)) for had in placed]

    def _say_state(
        self, client: dict[str, Any], running: list[str], following: list[str], stateful: list[str]
    ) -> None:
        client["prev_active"] = running
        client["prev_standby"] = [task for task in following if task not in running]
        nothing = self._random.choice(_LAGS)
        lags = dict.fromkeys(stateful, nothing)
        for task in stateful:
            if task in running:
                lags[task] = _LATEST if self._happens(0.95) else self._random.choice(_LAGS)
            elif task in following or self._happens(0.3):
                lags[task] = self._random.choice((*_LAGS, _UNKNOWN))
        client["lags"] = lags

    def _consumers(
        self, client: dict[str, Any], running: list[str], following: list[str], stateful: list[str]
    ) -> list[dict[str, Any]]:
        consumers: list[dict[str, Any]] = [
            {"id": f"{client['id']}-c{number}", "owned_active": [], "offset_sums": {}}
            for number in range(client["capacity"])
        ]
        for task in running:
            consumer = self._random.choice(consumers)
            consumer["owned_active"].append(task)
            if task in stateful and self._happens(0.95):
                consumer["offset_sums"][task] = _LATEST
        for task in following:
            if task not in running:
                sum_ = self._random.choice((*_LAGS, _UNKNOWN))
                self._random.choice(consumers)["offset_sums"][task] = sum_
        return consumers

    # -- settings and placements -------------------------------------------------------------------------

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = {
            "num_standby_replicas": self._random.choices((0, 1, 2, 3), (4, 5, 2, 1))[0],
            "max_warmup_replicas": self._random.choice((1, 2, 5)),
            "acceptable_recovery_lag": self._random.choice((0, 10, 10_000, (1 << 63) - 1)),
            "strategy": self._random.choice(("none", "min_traffic", "min_traffic", "balance_subtopology")),
            "rack_aware_tags": self._random.choice(([], [], ["zone"], ["zone", "cluster"])),
        }
        if self._happens(0.5):
            traffic, non_overlap = self._random.choice(((10, 1), (1, 10), (1, 0), (0, 1), (3, 2), (5, 5)))
            config["traffic_cost"], config["non_overlap_cost"] = traffic, non_overlap
        return config

    def _given(self, names: list[str], tasks: list[str], stateful: list[str]) -> dict[str, Any]:
        given: dict[str, Any] = {name: {"active": [], "standby": []} for name in names}
        for task in tasks:
            given[self._random.choice(names)]["active"].append(task)
        for task in stateful:
            free = [name for name in names if task not in given[name]["active"]]
            for name in self._random.sample(free, min(len(free), self._random.randint(0, 2))):
                given[name]["standby"].append(task)
        return given

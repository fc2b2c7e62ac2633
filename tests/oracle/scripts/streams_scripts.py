"""Random scripts of streams groups (KIP-1071): a function of a seed and a number."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.scripts.steps import APPEND_ERRORS, Steps, draw_options
from tests.oracle.scripts.topologies import SOURCES, random_topology

Script = dict[str, Any]
Step = dict[str, Any]

#: A list of owned tasks may name what the member has, what it had, or tasks that the topology lacks.
_OWNED: tuple[Any, ...] = (
    "$",
    "$",
    "$",
    "$prev",
    "$common",
    {},
    {"0": [0]},
    {"0": [0, 99]},
    {"nowhere": [0]},
)
#: Heartbeats as no member of the group sends them.
_STRAYS: tuple[Step, ...] = (
    {"epoch": "$-1"},
    {"epoch": "$-1", "active": "$", "standby": "$", "warmup": "$"},
    {"epoch": "$+1"},
    {"epoch": 99},
    {"epoch": -1},
    {"epoch": -2},
    {"epoch": -3},
    {"epoch": 0},
    {"epoch": 0, "rebalance": 5000, "topology": "T", "active": {}, "standby": {}},
    {"epoch": 0, "rebalance": 5000, "topology": "T", "active": {}, "standby": {}, "warmup": {"0": [0]}},
    {"epoch": 0, "rebalance": 5000, "active": {}, "standby": {}, "warmup": {}},
    {"epoch": 0, "topology": "T", "active": {}, "standby": {}, "warmup": {}},
    {"active": "$"},
    {"active": "$", "standby": "$", "warmup": {"0": [0]}},
    {"active": "$", "standby": "$", "warmup": {"0": [99]}},
    {"topology": "T"},
    {"topology": "T@2"},
    {"member": ""},
    {"member": "nobody"},
    {"rack": ""},
    {"instance": ""},
    {"instance": "i0"},
    {"instance": "nobody"},
    {"group": ""},
    {"group": "h"},
)
#: Requests of the other protocols, which a streams group refuses or which convert an empty one.
_OTHERS: tuple[Step, ...] = (
    {"op": "join", "as": "y"},
    {"op": "join", "as": "y", "version": 3},
    {"op": "join", "as": "y", "version": 3, "member": "$r0"},
    {"op": "sync", "as": "y", "member": "$r0", "generation": 2},
    {"op": "heartbeat", "as": "y", "member": "$r0", "generation": "$"},
    {"op": "leave", "as": "y"},
    {"op": "leave", "as": "y", "member": "$r0"},
    {"op": "describe"},
    {"op": "describe_share"},
    {"op": "shb", "as": "x", "member": "x", "epoch": 0, "topics": ["in1"]},
    {"op": "chb", "as": "x", "member": "x", "epoch": 0, "rebalance": 5000, "owned": {}, "topics": ["in1"]},
    {"op": "chb", "as": "x", "member": "x", "epoch": -1},
    {"op": "commit", "as": "y", "member": "", "generation": -1, "offsets": {"in1": {"0": 7}}},
    {"op": "fetch_offsets", "as": "r0", "topics": {"in1": [0, 1]}, "version": 9},
)


def random_streams_script(seed: int, number: int) -> Script:
    """The ``number``-th script of ``seed``: `{"id", "config", "steps"}`."""
    play = _Play(random.Random(f"streams:{seed}:{number}"))
    for member in play.random.sample(range(play.members), play.random.randint(1, play.members)):
        play.start(member)
    if play.random.random() < 0.8:
        play.beat()
        play.create()
    for move in play.random.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=play.random.randint(10, 45)):
        getattr(play, move)()
    return {"id": f"streams-{seed}-{number}", "config": play.config, "steps": play.steps}


class _Play(Steps):
    """A script in the making."""

    def __init__(self, generator: random.Random) -> None:
        super().__init__(generator)
        self.members = generator.choice([1, 2, 3, 3, 5, 8])
        topology = random_topology(generator)
        other = random_topology(generator) if generator.random() < 0.5 else topology
        self.config = _config(generator) | {"topologies": {"T": topology, "U": {**other, "epoch": 2}}}
        self._internal = sorted(
            {
                topic["name"] if isinstance(topic, dict) else topic
                for one in (topology, other)
                for subtopology in one["subtopologies"]
                for topic in subtopology.get("repartition", []) + subtopology.get("changelogs", [])
            }
        )
        self._subtopologies = [one["id"] for one in topology["subtopologies"]] or ["0"]
        # of the whole script: whether members are static, report their tasks' offsets, have endpoints
        self._static = generator.choice([0.0, 0.3, 0.9])
        self._offsets = generator.choice([0.0, 0.2, 0.6])
        self._endpoints = generator.choice([0.0, 0.0, 0.7])
        self._processes = generator.choice([1, 2, 4, 8])
        self._failures = generator.choice([0.0, 0.0, 0.06])
        self._identities = [self._identity(number) for number in range(self.members)]
        self._lives = [0] * self.members
        self._joined: list[int] = []

    def _identity(self, number: int) -> Step:
        process = self.random.randint(0, self._processes)
        identity: Step = {"version": self.random.choice([0, 1, 1])}
        if self.chance(0.3):
            identity["client_id"] = f"c{number}"
        if self.chance(self._static):
            identity["instance"] = f"i{number}"
        identity["process"] = f"p{process}"
        if self.chance(self._endpoints):
            identity["endpoint"] = [f"host{process}", 9000 + process]
        if self.chance(0.3):
            identity["tags"] = self.random.choice([{"zone": "a"}, {"zone": "b", "cluster": "k"}, {}])
        if self.chance(0.2):
            identity["rack"] = f"rack{self.random.randint(0, 2)}"
        return identity

    # moves

    def join(self) -> None:
        self.start(self.random.randrange(self.members))

    def start(self, member: int, /, **fields: Any) -> None:
        """A process starts: a dynamic member has another id, and a static one may have its old one."""
        if member not in self._joined:
            self._joined.append(member)
        self._lives[member] += self.chance(0.3)
        identity = dict(self._identities[member])
        if self.chance(0.1):
            identity |= self.random.choice(
                [
                    {"process": "p9"},
                    {"process": None},
                    {"endpoint": ["host9", 9009]},
                    {"endpoint": None},
                    {"tags": {"zone": "c"}},
                    {"rack": "rack9"},
                    {"client_id": "c9"},
                    {"instance": "i9"},
                ]
            )
        step = {
            "member": f"member-{member}.{self._lives[member]}",
            "epoch": 0,
            "rebalance": self.random.choice([5000, 10_000, 30_000, 60_000]),
            "topology": self.random.choice(["T"] * 12 + ["U", "U", "T@0", "T@2", "T@-1"]),
            "active": {},
            "standby": {},
            "warmup": {},
        }
        self._heartbeat(member, **identity, **step, **fields)

    def beat(self) -> None:
        for member in self._some():
            self._beat(member)
        if self.chance(0.6):
            self.advance(self.pick(1, 500, 1000, 5000, 5000))

    def settle(self) -> None:
        """Rounds of heartbeats of all members; those that are out of the group join again."""
        for _ in range(self.random.randint(1, 3)):
            for member in self._some(all_of_them=True):
                self._beat(member, owned="$")
                if self.chance(0.5):
                    self.start(member, when=["streams:FENCED_MEMBER_EPOCH", "streams:UNKNOWN_MEMBER_ID"])
            self.advance(self.pick(500, 1000, 3000, 5000))

    def _beat(self, member: int, owned: Any = None) -> None:
        fields: Step = {"when": "NONE"} if self.chance(0.97) else {}
        if owned is not None or self.chance(0.7):
            picked = owned or self.random.choice(_OWNED)
            standby = picked if picked in ("$", "$prev", "$common") else {}
            fields |= {"active": picked, "standby": standby, "warmup": {}}
        if self.chance(0.05):
            fields["endpoint"] = self.random.choice([["host7", 9007], [f"host{member}", 9000]])
        if self.chance(0.05):
            fields |= self.random.choice([{"rack": "rack5"}, {"tags": {"zone": "z"}}, {"rebalance": 7000}])
        if self.chance(0.05):
            fields["endpoint_epoch"] = self.random.choice([-1, 0, 3])
        self._member_heartbeat(member, **fields)

    def report(self) -> None:
        """Offsets of tasks, of some that the topology lacks and of some that are named twice."""
        for member in self._some():
            offsets: Any = {}
            for _ in range(self.random.randint(0, 4)):
                tasks = offsets.setdefault(self.random.choice([*self._subtopologies, "nowhere"]), {})
                tasks[str(self.random.randint(0, 4))] = self.random.choice([0, 5, 100, 100, 10_000, 2**40])
            if self.chance(0.1):
                offsets = [["0", 1, 5], ["0", 1, 6]]
            name = self.random.choice(["task_offsets", "task_offsets", "task_end_offsets"])
            self._member_heartbeat(member, **{name: offsets})

    def leave(self) -> None:
        for member in self._some() if self.chance(0.3) else [self.random.randrange(self.members)]:
            shutdown = {"shutdown": True} if self.chance(0.1) else {}
            self._member_heartbeat(member, epoch=-1, **shutdown)

    def leave_for_a_while(self) -> None:
        """Static members come back, under the old or another member id."""
        member = self.random.randrange(self.members)
        self._member_heartbeat(member, epoch=-2)
        if self.chance(0.7):
            self.advance(self.pick(100, 1000, 5000, 40_000))
            self.start(member)

    def shut_down(self) -> None:
        self._member_heartbeat(self.random.randrange(self.members), shutdown=True)

    def stray(self) -> None:
        self._member_heartbeat(self.random.randrange(self.members), **self.random.choice(_STRAYS))

    def wait(self) -> None:
        self.advance(self.pick(1000, 3000, 5000, 30_000, 45_000, 46_000, 60_000))

    def create(self) -> None:
        """A broker makes the internal topics that the last answers named."""
        for member in self._some(all_of_them=True):
            self.steps.append({"op": "topics", "as": f"r{member}", "create": "$"})

    def topics(self) -> None:
        """A topic gets partitions, goes, or goes and comes again; internal topics get wrong numbers."""
        topic = self.random.choice([*SOURCES, *self._internal, *self._internal])
        wanted = self.random.choice(["set", "set", "remove", "again"])
        if wanted in ("remove", "again"):
            self.steps.append({"op": "topics", "remove": [topic]})
        if wanted in ("set", "again"):
            self.steps.append({"op": "topics", "set": {topic: self.random.randint(1, 6)}})

    def reload(self) -> None:
        """Another coordinator takes over."""
        self.steps.append({"op": "reload"})

    def describe(self) -> None:
        step: Step = {"op": "describe_streams", "group": self.random.choice(["g", "g", "g", "", "h"])}
        self.steps.append(step | ({"description": True} if self.chance(0.3) else {}))

    def configure(self) -> None:
        options = {
            "streams.session.timeout.ms": ["45000", "50000", "60000"],
            "streams.heartbeat.interval.ms": ["5000", "7000"],
            "streams.num.standby.replicas": ["0", "1", "2"],
            "streams.num.warmup.replicas": ["0", "1", "3"],
            "streams.initial.rebalance.delay.ms": ["0", "3000"],
            "streams.assignment.interval.ms": ["0", "2000"],
            "streams.rack.aware.assignment.tags": ["", "zone", "zone,cluster"],
            "streams.acceptable.recovery.lag": ["0", "5"],
            "streams.task.offset.interval.ms": ["15000", "20000"],
            "streams.assignor.name": ["sticky"],
        }
        chosen = self.random.sample(list(options), self.random.randint(0, 3))
        self.steps.append(
            {"op": "group_config", "set": {name: self.random.choice(options[name]) for name in chosen}}
        )

    def commit(self) -> None:
        """Offsets of source and internal topics, by members of the present and of earlier epochs."""
        member = self.random.choice(self._joined)
        topics = self.random.sample([*SOURCES, *self._internal], self.random.randint(1, 2))
        fields: Step = {
            "generation": self.random.choice(["$", "$", "$-1", "$+1", 0, -1]),
            "version": self.random.choice([9, 9, 9, 8]),
            "offsets": {
                topic: {str(self.random.randint(0, 4)): self.random.randint(0, 99)} for topic in topics
            },
        }
        if self.chance(0.2):
            fields["member"] = self.random.choice(["", "nobody"])
        self.steps.append({"op": "commit", "as": f"r{member}", "epoch": True, **fields})

    def fetch(self) -> None:
        member = self.random.choice(self._joined)
        topics = {topic: [0, 1] for topic in self.random.sample([*SOURCES, *self._internal], 2)}
        fields: Step = {"topics": topics, "version": 9}
        if self.chance(0.7):
            fields |= {"member": "$", "generation": self.random.choice(["$", "$-1", "$+1"])}
        self.steps.append({"op": "fetch_offsets", "as": f"r{member}", **fields})

    def delete(self) -> None:
        """Delete the group, which may have members."""
        if self.chance(0.5):
            for member in range(self.members):
                self._member_heartbeat(member, epoch=-1)
        step: Step = {"op": "delete_groups"}
        self.steps.append(step | ({"groups": ["g", "h"]} if self.chance(0.3) else {}))

    def other(self) -> None:
        """Requests of the other protocols, now and then of a group that has just become empty."""
        if self.chance(0.3):
            for member in range(self.members):
                self._member_heartbeat(member, epoch=-1)
        for step in self.random.sample(_OTHERS, self.random.randint(1, 3)):
            self.steps.append(step | ({"group": "h"} if self.chance(0.1) else {}))

    # steps

    def _some(self, *, all_of_them: bool = False) -> list[int]:
        count = len(self._joined) if all_of_them else self.random.randint(1, len(self._joined))
        return self.random.sample(self._joined, count)

    def _member_heartbeat(self, member: int, /, **fields: Any) -> None:
        """A heartbeat with what members repeat of their identity; some leave the instance id out."""
        identity = self._identities[member]
        repeated = {name: identity[name] for name in ("version", "client_id", "instance") if name in identity}
        if self.chance(0.02):
            repeated.pop("instance", None)
        self._heartbeat(member, **(repeated | fields))

    def _heartbeat(self, member: int, /, **fields: Any) -> None:
        step: Step = {"op": "streams", "as": f"r{member}"}
        if self.chance(self._failures):
            step["append_error"] = self.random.choice(APPEND_ERRORS)
        if self.chance(self._offsets):
            tasks = {str(self.random.randint(0, 3)): self.random.choice([0, 50, 900]) for _ in range(3)}
            step["task_offsets"] = {self.random.choice(self._subtopologies): tasks}
        self.steps.append(step | fields)


#: Moves and their weights.
_WEIGHTS = {
    "join": 10, "beat": 24, "settle": 14, "report": 5, "leave": 5, "leave_for_a_while": 5,
    "shut_down": 1, "stray": 5, "wait": 7, "create": 6, "topics": 5, "reload": 1, "describe": 3,
    "configure": 4, "commit": 4, "fetch": 2, "delete": 2, "other": 4,
}  # fmt: skip


def _config(generator: random.Random) -> dict[str, Any]:
    names = generator.sample(SOURCES[:-1], generator.choice([len(SOURCES) - 1, len(SOURCES) - 1, 2]))
    config: dict[str, Any] = {
        "topics": {name: generator.randint(1, 5) for name in names},
        "group.initial.rebalance.delay.ms": 0,
    }
    choices: dict[str, tuple[float, list[Any]]] = {
        "group.streams.initial.rebalance.delay.ms": (0.7, [0, 0, 1000, 3000]),
        "group.streams.assignment.interval.ms": (0.7, [0, 0, 500, 5000, 15_000]),
        "group.streams.num.standby.replicas": (0.5, [0, 1, 1, 2]),
        "group.streams.num.warmup.replicas": (0.2, [0, 1, 5]),
        "group.streams.acceptable.recovery.lag": (0.1, [0, 2**40]),
        "group.streams.session.timeout.ms": (0.3, [45_000, 60_000]),
        "group.streams.rack.aware.assignment.tags": (0.2, ["zone", "zone,cluster"]),
        "group.streams.task.offset.interval.ms": (0.2, [15_000, 90_000]),
        "group.streams.max.size": (0.2, [1, 2, 3]),
        "racks": (0.2, [True]),
        "groups": (
            0.2,
            [
                {"g": {"streams.num.standby.replicas": "2", "streams.session.timeout.ms": "1000"}},
                {
                    "g": {
                        "streams.rack.aware.assignment.tags": "cluster",
                        "streams.heartbeat.interval.ms": "99",
                    }
                },
                {"g": {"streams.num.warmup.replicas": "0", "streams.initial.rebalance.delay.ms": "2000"}},
            ],
        ),
    }
    return config | draw_options(generator, choices)

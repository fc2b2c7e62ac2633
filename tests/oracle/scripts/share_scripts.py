"""Random scripts of share groups (KIP-932): a function of a seed and a number."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.scripts.steps import APPEND_ERRORS, Steps, draw_options

Script = dict[str, Any]
Step = dict[str, Any]

_TOPICS = ("foo", "bar", "baz", "Aa", "BB", "missing")
#: Ways of the persister; None succeeds.
_PERSISTER = ("lost", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT", None)
#: Heartbeats as no member of the group sends them.
_STRAYS: tuple[Step, ...] = (
    {"epoch": "$-1"},
    {"epoch": "$+1"},
    {"epoch": 99},
    {"epoch": -3},
    {"epoch": 0},
    {"epoch": 1},
    {"epoch": 0, "topics": []},
    {"member": ""},
    {"member": "nobody"},
    {"rack": ""},
    {"group": ""},
    {"group": "h"},
)
#: Requests of the other protocols, which a share group refuses.
_OTHERS: tuple[Step, ...] = (
    {"op": "join", "as": "y"},
    {"op": "join", "as": "y", "version": 3},
    {"op": "sync", "as": "y", "member": "$r0", "generation": 2},
    {"op": "heartbeat", "as": "y", "member": "$r0", "generation": "$"},
    {"op": "leave", "as": "y", "member": "$r0"},
    {"op": "describe"},
    {"op": "chb", "as": "x", "member": "x", "epoch": 0, "rebalance": 5000, "owned": {}, "topics": ["foo"]},
    {"op": "chb", "as": "x", "member": "x", "epoch": 0, "rebalance": 5000, "owned": {}, "topics": ["foo"],
     "group": "h"},
    {"op": "commit", "as": "r0", "generation": "$", "epoch": True, "version": 9,
     "offsets": {"foo": {"0": 3}}},
    {"op": "fetch_offsets", "as": "r0", "topics": {"foo": [0, 1]}, "version": 9},
)  # fmt: skip


def random_share_script(seed: int, number: int) -> Script:
    """The ``number``-th script of ``seed``: `{"id", "config", "steps"}`."""
    play = _Play(random.Random(f"share:{seed}:{number}"))
    for member in play.random.sample(range(play.members), play.random.randint(1, play.members)):
        play.start(member)
    for move in play.random.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=play.random.randint(15, 60)):
        getattr(play, move)()
    return {"id": f"share-{seed}-{number}", "config": play.config, "steps": play.steps}


class _Play(Steps):
    """A script in the making."""

    def __init__(self, generator: random.Random) -> None:
        super().__init__(generator)
        self.members = generator.choice([2, 3, 5, 8, 12])
        self.config = _config(generator)
        self._usual = generator.sample(_TOPICS, generator.randint(1, 3))
        self._alike = generator.random() < 0.5
        self._lives = [0] * self.members
        self._joined: set[int] = set()

    def join(self) -> None:
        self.start(self.random.randrange(self.members))

    def start(self, member: int) -> None:
        self._joined.add(member)
        self._lives[member] += self.chance(0.2)
        fields: Step = {"member": f"member-{member}.{self._lives[member]}", "epoch": 0}
        if self.chance(0.3):
            fields["rack"] = f"rack{self.random.randint(0, 2)}"
        self._heartbeat(member, topics=self._topics(), **fields)

    def beat(self) -> None:
        joined = sorted(self._joined)
        for member in self.random.sample(joined, self.random.randint(1, len(joined))):
            self._heartbeat(member)
        if self.chance(0.6):
            self.advance(self.pick(1, 500, 1000, 5000, 5000))

    def subscribe(self) -> None:
        topics = self.random.choice([self._topics(), self._topics(), [], ["missing"]])
        self._heartbeat(self.random.randrange(self.members), topics=topics)

    def leave(self) -> None:
        self._heartbeat(self.random.randrange(self.members), epoch=-1)

    def stray(self) -> None:
        self._heartbeat(self.random.randrange(self.members), **self.random.choice(_STRAYS))

    def wait(self) -> None:
        self.advance(self.pick(1000, 5000, 30_000, 45_000, 46_000, 60_000))

    def topics(self) -> None:
        """A topic gets partitions, goes, or goes and comes again in one moment."""
        topic, other = self.random.choice(_TOPICS), self.random.choice(_TOPICS)
        wanted = self.random.choice(["set", "set", "set", "remove", "again", "both"])
        if wanted in ("remove", "again") or other == topic:
            self.steps.append({"op": "topics", "remove": [topic]})
        if wanted in ("set", "again"):
            self.steps.append({"op": "topics", "set": {topic: self.random.randint(1, 9)}})
        elif wanted == "both" and other != topic:
            self.steps.append({"op": "topics", "set": {topic: self.random.randint(1, 9)}, "remove": [other]})

    def describe(self) -> None:
        self.steps.append({"op": "describe_share", "group": self.random.choice(["g", "g", "g", "", "h"])})

    def configure(self) -> None:
        options = {
            "share.session.timeout.ms": self.random.choice(["45000", "50000", "60000"]),
            "share.assignment.interval.ms": self.random.choice(["0", "2000"]),
        }
        self.steps.append({"op": "group_config", "set": options})

    def delete(self) -> None:
        """Delete a group that may have members."""
        if self.chance(0.5):
            for member in range(self.members):
                self._heartbeat(member, epoch=-1)
        step: Step = {"op": "delete_groups"}
        if self.chance(0.3):
            step["persister"] = self.random.choice(_PERSISTER[:-1])
        if self.chance(0.3):
            step["groups"] = ["g", "h"]
        self.steps.append(step)

    def other(self) -> None:
        self.steps.append(dict(self.random.choice(_OTHERS)))

    def _heartbeat(self, label: int, /, **fields: Any) -> None:
        step: Step = {"op": "shb", "as": f"r{label}"}
        if self.chance(0.3):
            step["client_id"] = f"c{label}"
        if self.chance(0.05):
            step["append_error"] = self.random.choice(APPEND_ERRORS)
        if self.chance(0.15):
            step["persister"] = self.random.choice(_PERSISTER)
        self.steps.append(step | fields)

    def _topics(self) -> list[str]:
        if self._alike and self.chance(0.9):
            return self._usual
        return self.random.sample(_TOPICS, self.random.randint(1, 4))


#: Moves and their weights.
_WEIGHTS = {
    "join": 12, "beat": 38, "subscribe": 8, "leave": 4, "stray": 4, "wait": 8, "topics": 10,
    "describe": 3, "configure": 3, "delete": 4, "other": 6,
}  # fmt: skip


def _config(generator: random.Random) -> dict[str, Any]:
    names = generator.sample(_TOPICS[:-1], generator.randint(1, 5))
    config: dict[str, Any] = {
        "topics": {name: generator.randint(1, 8) for name in names},
        "persister_log": True,
    }
    options = {
        "group.share.assignment.interval.ms": (0.7, [0, 0, 500, 5000, 15_000]),
        "group.share.max.size": (0.3, [1, 2, 3, 4]),
        "group.share.initialize.retry.interval.ms": (0.4, [1, 5000, 10_000]),
        "group.share.session.timeout.ms": (0.3, [45_000, 60_000]),
    }
    config |= draw_options(generator, options)
    if generator.random() < 0.2:
        config["groups"] = {
            "g": {
                "share.assignment.interval.ms": generator.choice(["0", "3000"]),
                "share.session.timeout.ms": generator.choice(["50000", "1000"]),
                "share.heartbeat.interval.ms": "7000",
            }
        }
    return config

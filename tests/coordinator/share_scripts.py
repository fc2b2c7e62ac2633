"""Random scripts of one share group: members come, go and return, topics grow and go, the persister fails."""

from __future__ import annotations

from random import Random
from typing import Any

_TOPICS = ("foo", "bar", "baz")


def random_share_script(number: int) -> dict[str, Any]:
    """The script with this number, the same at each call."""
    random = Random(number)
    config = {
        "topics": {"foo": 4, "bar": random.randint(1, 3)},
        "group.share.assignment.interval.ms": random.choice([0, 0, 1000]),
        "group.share.initialize.retry.interval.ms": 5000,
    }
    steps = [_join(random, who) for who in range(random.randint(2, 6))]
    for _ in range(60):
        steps.append(_step(random))
        if random.random() < 0.1:
            steps[-1]["persister"] = random.choice(["lost", "REQUEST_TIMED_OUT"])
    return {"id": f"share-{number}", "config": config, "steps": steps}


def _join(random: Random, who: int) -> dict[str, Any]:
    topics = random.choice([["foo", "bar"], ["foo", "bar"], ["foo"], ["bar", "baz"]])
    return {"op": "shb", "as": f"r{who}", "member": f"member-{who}", "epoch": 0, "topics": topics}


def _step(random: Random) -> dict[str, Any]:
    who = random.randrange(6)
    heartbeat: dict[str, Any] = {"op": "shb", "as": f"r{who}"}
    others: list[dict[str, Any]] = [
        _join(random, who),
        {**heartbeat, "epoch": -1},
        {**heartbeat, "topics": random.choice([["foo"], ["bar", "baz"], []])},
        {**heartbeat, "append_error": "NOT_ENOUGH_REPLICAS"},
        {"op": "advance", "ms": random.choice([1, 1000, 5000, 46_000])},
        {"op": "topics", "set": {random.choice(_TOPICS): random.randint(1, 6)}},
        {"op": "topics", "remove": [random.choice(_TOPICS)]},
    ]
    return random.choice([*others, *[heartbeat] * 14])

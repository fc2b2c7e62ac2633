"""Random scripts of one streams group in which members, topics and options change."""

from __future__ import annotations

from random import Random
from typing import Any

TOPOLOGY = {
    "epoch": 1,
    "subtopologies": [
        {"id": "0", "sources": ["in"], "sinks": ["rep"]},
        {"id": "1", "repartition": ["rep"], "changelogs": ["store"]},
    ],
}
OWNED = {"active": "$", "standby": "$", "warmup": "$"}
NOTHING: dict[str, Any] = {"active": {}, "standby": {}, "warmup": {}}


def random_streams_script(number: int) -> dict[str, Any]:
    """The script with this number, the same at each call."""
    random = Random(number)
    steps: list[dict[str, Any]] = []
    for _ in range(60):
        steps.append(_step(random))
    config = {
        "topics": {"in": 3, "rep": 3, "store": 3},
        "topologies": {"T": TOPOLOGY},
        "group.streams.initial.rebalance.delay.ms": random.choice([0, 0, 2000]),
        "group.streams.assignment.interval.ms": random.choice([0, 500]),
        "group.streams.num.standby.replicas": random.choice([0, 1, 2]),
    }
    return {"id": f"streams-{number}", "config": config, "steps": steps}


def _step(random: Random) -> dict[str, Any]:
    who = random.randrange(4)
    heartbeat: dict[str, Any] = {"op": "streams", "as": f"r{who}", "version": 1}
    if who == 0:
        heartbeat["instance"] = "i0"
    join = {
        **heartbeat,
        **NOTHING,
        "epoch": 0,
        "member": f"member-{who}" if who else f"member-0.{random.randrange(3)}",
        "process": f"p{who // 2}",
        "rebalance": 5000,
        "topology": "T",
        "endpoint": random.choice([None, [f"host{who}", 9000]]),
    }
    replicas = str(random.randrange(3))
    offsets = {"1": {str(random.randrange(3)): random.randrange(100)}}
    others: list[dict[str, Any]] = [
        join,
        join,
        {**heartbeat, "epoch": random.choice([-1, -2] if who == 0 else [-1])},
        {"op": "advance", "ms": random.choice([1, 500, 5000, 46_000])},
        {"op": "group_config", "set": {"streams.num.standby.replicas": replicas}},
        {**heartbeat, "task_offsets": offsets},
        {**heartbeat, **dict.fromkeys(OWNED, "$prev")},
    ]
    usual = [{**heartbeat, **OWNED}] * 5
    return random.choice([*others, *usual])

"""A broker under requests and faults for long, and what it holds from one sample to the next."""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from groupstorm.broker.embedded import EmbeddedBroker
from tests.broker import wire
from tests.broker.frames.harness import World
from tests.broker.frames.requests import Requests
from tests.broker.frames.trying import frames_of
from tests.broker.wire import RawClient
from tests.waiting import wait_until

#: A broker whose records, groups and topics stay few whatever is asked of it.
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.bytes": "100000",
    "groupstorm.max.groups": "100",
    "groupstorm.max.topics": "50",
    "groupstorm.max.partitions": "500",
}
#: As many different requests as a broker keeps decoded: they take the places of larger ones, so that each
#: hour ends with the same.
_HEARTBEATS = [
    wire.framed(
        wire.request(
            wire.HEARTBEAT, 3, group_id=f"g-{n}", generation_id=1, member_id="m", group_instance_id=None
        )
    )
    for n in range(1_000)
]


class Sample(NamedTuple):
    """Counts of what the process holds. ``timers`` are asyncio's, in whatever state."""

    objects: int
    tasks: int
    timers: int
    files: int


def virtual_hours(hours: int, seed: int) -> Iterator[int]:
    """Let time pass on a broker without sockets, with mutated and whole requests; give the number of the
    process's objects after every hour, when all members have gone."""
    world = World()
    for hour in range(hours):
        for number, data in enumerate(frames_of(seed * 1_000 + hour, world)):
            world.try_bytes(data)
            if number % 10 == 0:
                world.advance(15_000)
                del world.kept[:-100]
        world.advance(600_000)
        for data in _HEARTBEATS:
            world.try_bytes(data)
        world.closed.clear()
        gc.collect()
        yield len(gc.get_objects())


def rounds(count: int, frames: int, seed: int) -> Iterator[Sample]:
    """Clients of a broker in this process. In each round so many frames come, the same in all, each over a
    connection of its own; give a sample when all have closed their connections."""
    with EmbeddedBroker(OPTIONS, {"orders": 3}) as broker:
        for _ in range(count):
            _send_faults(broker, frames, seed)
            yield _sample(broker)


def _send_faults(broker: EmbeddedBroker, frames: int, seed: int) -> None:
    """Whole requests, halves of requests and bytes that are none, each over a connection that is closed at
    once or after the answer."""
    draw = random.Random(seed)
    requests = Requests(draw, [])
    for _ in range(frames):
        with RawClient((broker.host, broker.port)) as client, suppress(ConnectionError):
            frame = requests.frame()
            client.send((len(frame) + draw.choice((0, 0, 5, 2**30))).to_bytes(4, "big") + frame)
            client.socket.settimeout(0.05)
            with suppress(TimeoutError):
                client.socket.recv(10)


def _sample(broker: EmbeddedBroker) -> Sample:
    wait_until(lambda: not broker.open_connections(), "connections that nobody holds are closed")
    broker.events.clear()
    broker.closed.clear()
    gc.collect()

    async def count_tasks() -> int:
        return len(asyncio.all_tasks())

    objects = gc.get_objects()
    timers = sum(isinstance(one, asyncio.TimerHandle) for one in objects)
    files = len(os.listdir("/proc/self/fd"))
    return Sample(len(objects), broker.run(count_tasks()), timers, files)

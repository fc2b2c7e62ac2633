"""A broker under joins, leaves and faults for long, and what it holds from one sample to the next."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from groupstorm.broker.embedded import EmbeddedBroker
from tests.broker import wire
from tests.broker.frames.harness import World
from tests.broker.frames.requests import Requests
from tests.broker.frames.trying import frames_of, rss_kib
from tests.broker.kills.load import Acknowledged, commit, join, produce, transact
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
#: Requests over one connection before the client closes it, at times within a request.
_REQUESTS = 40


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
    rss_kib: int


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
    """Real clients of a broker in this process. In each round so many frames come, the same in all, each over
    a connection of its own, while others work; give a sample when all have closed their connections."""
    with EmbeddedBroker(OPTIONS, {"orders": 3}) as broker:
        for _ in range(count):
            _let_clients_work(broker, frames, seed)
            yield _sample(broker)


def _let_clients_work(broker: EmbeddedBroker, frames: int, seed: int) -> None:
    told, is_over = Acknowledged(), threading.Event()
    acts: tuple[Callable[[RawClient, Acknowledged], None], ...] = (produce, commit, join, transact)
    threads = [threading.Thread(target=_act, args=(broker, act, told, is_over)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        _send_faults(broker, frames, seed)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert told.problems == []


def _act(
    broker: EmbeddedBroker,
    act: Callable[[RawClient, Acknowledged], None],
    told: Acknowledged,
    is_over: threading.Event,
) -> None:
    try:
        while not is_over.is_set():
            with RawClient((broker.host, broker.port)) as client:
                for _ in range(_REQUESTS):
                    act(client, told)
    except AssertionError as problem:
        told.problems.append(problem)


def _send_faults(broker: EmbeddedBroker, frames: int, seed: int) -> None:
    """Whole requests, halves of requests and bytes that are none, each over a connection that is closed at
    once or after the answer."""
    draw = random.Random(seed)
    requests = Requests(draw, [])
    for _ in range(frames):
        with RawClient((broker.host, broker.port)) as client, suppress(ConnectionError):
            frame = requests.frame()
            if frame[:2] in _DESTRUCTIVE:
                continue
            client.send((len(frame) + draw.choice((0, 0, 5, 2**30))).to_bytes(4, "big") + frame)
            client.socket.settimeout(0.05)
            with suppress(TimeoutError):
                client.socket.recv(10)


#: DeleteTopics, CreatePartitions, IncrementalAlterConfigs, DeleteGroups: the other clients would notice.
_DESTRUCTIVE = {key.to_bytes(2, "big") for key in (20, 21, 22, 24, 25, 26, 28, 37, 42, 44, 47)}


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
    return Sample(len(objects), broker.run(count_tasks()), timers, files, rss_kib())

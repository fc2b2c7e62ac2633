"""While a simulation runs, the clocks and the random numbers that libraries read belong to it."""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch
from zlib import crc32

from groupstorm.simulation.loop import never_waits, not_simulated
from groupstorm.storms.scenario.randomness import Stream

#: When a simulation begins, in seconds since 1970: 2026-01-01 00:00 UTC.
BEGIN_S = 1_767_225_600

#: At one instant the clocks are read so often at most: a loop that never waits would read them for ever.
MOST_READINGS = 1_000_000

_SECOND_US = 1_000_000
_US_NS = 1000
_BEGIN_NS = BEGIN_S * 1_000_000_000
_PARTITION_STEP = 1_000_003


@contextmanager
def virtual_clocks(now_us: Callable[[], int], seed: int) -> Iterator[None]:
    """In the block `time`, `random` and `os.urandom` follow the simulation, and a call that would really wait
    raises NotSimulated. After the block, also if it raises, everything is as before.

    ``now_us``: microseconds since the simulation began; a loop that reads it without waiting raises Stuck.
    Other threads keep the real clocks. `datetime.now` and names that were imported from `time` (from time
    import monotonic) keep the real clock, too: Python offers no way to change them.
    """
    thread = threading.get_ident()

    def here(ours: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        """``ours`` in the simulation's thread, ``real`` in the others."""

        def call(*arguments: Any, **options: Any) -> Any:
            chosen = ours if threading.get_ident() == thread else real
            return chosen(*arguments, **options)

        return call

    readings, read_us = 0, -1

    def now() -> int:
        """The time; raises Stuck if nothing but readings happens."""
        nonlocal readings, read_us
        found = now_us()
        readings, read_us = readings + 1 if found == read_us else 0, found
        if readings > MOST_READINGS:
            readings = 0
            raise never_waits()
        return found

    def seconds(begin_s: float, real: Callable[[], float]) -> Callable[[], float]:
        """As `here`; the clocks are read too often for two more calls."""
        get_ident = threading.get_ident
        return lambda: begin_s + now() / _SECOND_US if get_ident() == thread else real()

    def nanoseconds(begin_ns: int, real: Callable[[], int]) -> Callable[[], int]:
        get_ident = threading.get_ident
        return lambda: begin_ns + now() * _US_NS if get_ident() == thread else real()

    clocks: dict[str, Callable[[], float]] = {
        "monotonic": seconds(0, time.monotonic),
        "monotonic_ns": nanoseconds(0, time.monotonic_ns),
        "perf_counter": seconds(0, time.perf_counter),
        "perf_counter_ns": nanoseconds(0, time.perf_counter_ns),
        "time": seconds(BEGIN_S, time.time),
        "time_ns": nanoseconds(_BEGIN_NS, time.time_ns),
    }
    replaced: list[tuple[Any, str, Callable[..., Any]]] = [
        (time, "sleep", _sleep),
        (os, "urandom", _seeded_bytes(seed)),
        (socket.socket, "connect", _connect),
        (socket.socket, "connect_ex", _connect),
        (threading.Thread, "start", _start),
        (threading.Condition, "wait", _wait),
    ]
    accumulator = sys.modules.get("aiokafka.producer.message_accumulator")
    if accumulator is not None:  # its extension in C reads the real clock
        replaced.append((accumulator.BatchBuilder, "append", _stamped(accumulator.BatchBuilder.append)))
    before, collects = random.getstate(), gc.isenabled()
    with ExitStack() as patches:
        for name, clock in clocks.items():
            patches.enter_context(patch.object(time, name, clock))
        for owner, name, ours in replaced:
            patches.enter_context(patch.object(owner, name, here(ours, getattr(owner, name))))
        for kind in _partition_types():
            patches.enter_context(patch.object(kind, "__hash__", _partition_hash))
        random.seed(seed)
        gc.disable()  # finalizers of connections would run at moments that memory determines
        try:
            yield
        finally:
            random.setstate(before)
            if collects:
                gc.enable()


def _sleep(seconds: float) -> None:
    raise not_simulated(f"time.sleep({seconds})", "it stops every instance; await asyncio.sleep instead")


def _connect(_socket: socket.socket, address: Any) -> None:
    raise not_simulated(
        f"a real socket to {address}",
        "connect with asyncio to world.bootstrap_servers, or replace the client in the test",
    )


def _start(thread: threading.Thread) -> None:
    raise not_simulated(
        f"the thread {thread.name}", "threads run in real time; call the function directly, or replace it"
    )


def _wait(_condition: threading.Condition, _timeout: float | None = None) -> None:
    raise not_simulated("a wait for another thread", "await instead: group.stable() for group.wait_stable()")


def _partition_types() -> Iterator[type]:
    """aiokafka's TopicPartition, if aiokafka is imported. aiokafka keeps partitions in sets and sends
    requests in their order, which Python would derive from hashes of texts, other ones in every process."""
    structs = sys.modules.get("aiokafka.structs")
    if structs is not None:
        yield structs.TopicPartition


def _stamped(append: Callable[..., Any]) -> Callable[..., Any]:
    """`BatchBuilder.append` of aiokafka that gives a record without a timestamp the simulation's time."""

    def stamp(builder: Any, *, timestamp: int | None, **record: Any) -> Any:
        at_ms = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        return append(builder, timestamp=at_ms, **record)

    return stamp


def _partition_hash(partition: tuple[str, int]) -> int:
    return _topic_hash(partition[0]) + partition[1] * _PARTITION_STEP


@cache
def _topic_hash(topic: str) -> int:
    return crc32(topic.encode())


def _seeded_bytes(seed: int) -> Callable[[int], bytes]:
    """`os.urandom` by counter: member ids and other values of uuid4() follow from the seed."""
    stream, drawn = Stream(seed, "urandom"), 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        words = -(-size // 4)
        drawn += words
        return b"".join(stream.at(drawn - word).to_bytes(4, "big") for word in range(words))[:size]

    return draw

"""While a simulation runs, the clocks and the randomness that libraries read are its own."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from groupstorm.simulation.errors import not_simulated
from groupstorm.storms.randomness import Stream

#: When a simulation begins, in seconds since 1970: 2026-01-01 00:00 UTC.
BEGIN_S = 1_767_225_600

_NANOSECONDS = 1000  # per microsecond
_SECOND_US = 1_000_000


@contextmanager
def virtual_clocks(now_us: Callable[[], int], seed: int) -> Iterator[None]:
    """In the block `time`, `random` and `os.urandom` follow the simulation; what would really wait raises
    NotSimulated. All of it is as before afterwards.

    ``now_us``: microseconds since the simulation began. `datetime.now` and names that were imported from
    `time` itself (from time import monotonic) keep their real clock: Python offers no way to change them.
    """
    before = random.getstate()
    clocks: dict[str, Callable[..., Any]] = {
        "monotonic": lambda: now_us() / _SECOND_US,
        "monotonic_ns": lambda: now_us() * _NANOSECONDS,
        "perf_counter": lambda: now_us() / _SECOND_US,
        "perf_counter_ns": lambda: now_us() * _NANOSECONDS,
        "time": lambda: BEGIN_S + now_us() / _SECOND_US,
        "time_ns": lambda: BEGIN_S * 1_000_000_000 + now_us() * _NANOSECONDS,
        "sleep": _sleep,
    }
    with (
        patch.multiple(time, **clocks),
        patch.object(os, "urandom", _seeded_bytes(seed)),
        patch.object(socket.socket, "connect", _connect),
    ):
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(before)


def _sleep(seconds: float) -> None:
    raise not_simulated(f"time.sleep({seconds})", "it would stop every instance; await asyncio.sleep instead")


def _connect(_socket: socket.socket, address: Any) -> None:
    raise not_simulated(
        f"a real socket to {address}",
        "connect with asyncio to world.bootstrap_servers, or replace the client",
    )


def _seeded_bytes(seed: int) -> Callable[[int], bytes]:
    """`os.urandom` by counter: member ids and other uuid4() are the same with the same seed."""
    stream, drawn = Stream(seed, "urandom"), 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        words = -(-size // 4)
        drawn += words
        return b"".join(stream.at(drawn - word).to_bytes(4, "big") for word in range(words))[:size]

    return draw

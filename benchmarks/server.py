"""Requests per second of `groupstorm serve`, over loopback, one process each for broker and clients.

    python -m benchmarks.server [--connections 50] [--seconds 3]

Heartbeats of members that the broker does not know, one in flight per connection: what a request costs
apart from what it does. CPU microseconds of the broker's process per request, with asyncio's own event
loop and, where it is installed, with uvloop.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import multiprocessing
import struct
import time
from multiprocessing.connection import Connection
from typing import NamedTuple

from groupstorm.coordinator.server.assembly import make_broker
from groupstorm.coordinator.server.codec import encoder, request_type
from groupstorm.coordinator.server.shell import Server

_HEARTBEAT, _VERSION = 12, 4


class Load(NamedTuple):
    requests_per_s: float
    broker_us_per_request: float


def _broker(pipe: Connection, loop_name: str) -> None:
    """The broker's process: says its port, then its CPU time whenever asked, until told to end."""

    async def serve() -> None:
        server = Server(make_broker({}, {}), lambda _time, _events: None, lambda _peer, _why: None)
        endpoint = await server.start("127.0.0.1", 0)
        pipe.send(endpoint.port)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, pipe.recv):
            pipe.send(time.process_time_ns())
        await server.stop()

    if loop_name == "uvloop":
        import uvloop

        uvloop.run(serve())
    else:
        asyncio.run(serve())


async def _client(port: int, frame: bytes, until_s: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answered = 0
    while time.monotonic() < until_s:
        writer.write(frame)
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        await reader.readexactly(length)
        answered += 1
    writer.close()
    return answered


def _heartbeat() -> bytes:
    kind = request_type(_HEARTBEAT, _VERSION)
    message = kind(group_id="group", generation_id=1, member_id="member-" + "x" * 36)
    header = struct.pack(">hhih", _HEARTBEAT, _VERSION, 1, 5) + b"bench" + b"\x00"
    payload = header + b"".join(encoder(kind)(message))
    return struct.pack(">i", len(payload)) + payload


def measure(loop_name: str, connections: int, seconds: float) -> Load:
    """Load one broker for so long."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_broker, args=(theirs, loop_name), daemon=True)
    process.start()
    port = ours.recv()

    async def load() -> int:
        until_s = time.monotonic() + seconds
        clients = (_client(port, _heartbeat(), until_s) for _ in range(connections))
        return sum(await asyncio.gather(*clients))

    ours.send(True)
    before_ns = ours.recv()
    answered = asyncio.run(load())
    ours.send(True)
    used_ns = ours.recv() - before_ns
    ours.send(False)
    process.join()
    return Load(answered / seconds, used_ns / answered / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    loops = ["asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else [])]
    print(f"{'event loop':12}{'requests/s':>14}{'broker CPU us/request':>24}")
    for name in loops:
        load = measure(name, options.connections, options.seconds)
        print(f"{name:12}{load.requests_per_s:>14,.0f}{load.broker_us_per_request:>24.1f}", flush=True)


if __name__ == "__main__":
    main()

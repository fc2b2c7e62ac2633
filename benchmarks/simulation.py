"""The cost of a seeded schedule of three aiokafka consumers.

    python -m benchmarks.simulation [--schedules 10] [--seconds 600] [--profile] [--beside CHECKOUT]

Three instances with aiokafka's defaults, a record a second for the first minute, a rolling restart, then
nothing to read until the virtual seconds are over. The rows say how many CPU milliseconds a schedule takes,
the median of the schedules, and how long a thousand schedules take on two cores. The second row is the same
with a longer fetch.max.wait.ms: the difference is what idle fetches cost. `--profile` says in which library
the CPU time is spent. `--beside` sets another checkout of groupstorm beside this one instead: a process for
each, which take turns schedule by schedule, so that both meet the same load of the machine.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from aiokafka import AIOKafkaConsumer

from groupstorm.simulation import World
from groupstorm.simulation.schedule import drawn
from groupstorm.simulation.simulate import Options, Run, run_once

PARTITIONS = 6
INSTANCES = ("one", "two", "three")
#: How long an idle Fetch waits: aiokafka's default, and a longer time.
MAX_WAITS_MS = (500, 5_000)
_BUSY_S = 60
#: Of the first schedule of a process, which imports.
_WARM_UP_S = 100.0
_SAMPLE_S = 0.001


async def _service(servers: str, name: str, max_wait_ms: int, read: list[bytes | None]) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="billing",
        client_id=name,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=max_wait_ms,
    )
    await consumer.start()
    try:
        async for record in consumer:
            read.append(record.value)
    finally:
        await consumer.stop()


async def rolling_restart(world: World, duration_s: float, max_wait_ms: int) -> None:
    """One instance after the other restarts while there are records."""
    read: list[bytes | None] = []
    instances = [
        await world.start(_service, world.bootstrap_servers, name, max_wait_ms, read, name=name)
        for name in INSTANCES
    ]
    await world.run_for(10)
    for number in range(_BUSY_S):
        world.broker.produce("orders", f"order-{number}")
        if number % 15 == 0 and number:
            await instances[number // 15 - 1].restart()
        await world.run_for(1)
    await world.run_for(duration_s - world.now_s)
    assert len(set(read)) == _BUSY_S, f"{len(set(read))} of {_BUSY_S} records were read"


def schedule_of(seed: int, duration_s: float, max_wait_ms: int) -> Run:
    """The run of one seed; no failures but the restarts, so that all seeds have as much to do."""
    run = run_once(
        lambda world: rolling_restart(world, duration_s, max_wait_ms),
        drawn(seed, (), 0),
        Options({"orders": PARTITIONS}),
    )
    if run.problem is not None:
        raise run.problem
    return run


def cpu_ms(seed: int, duration_s: float, max_wait_ms: int) -> float:
    began = time.process_time_ns()
    schedule_of(seed, duration_s, max_wait_ms)
    return (time.process_time_ns() - began) / 1_000_000


@contextmanager
def _sampled(counts: Counter[str]) -> Iterator[None]:
    """Count, each millisecond of CPU, in whose code the process is."""

    def sample(_number: int, frame: FrameType | None) -> None:
        assert frame is not None
        counts[_library(frame.f_code.co_filename)] += 1

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_S, _SAMPLE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _library(file: str) -> str:
    for name in ("groupstorm/simulation", "groupstorm", "aiokafka"):
        if f"/{name}/" in file:
            return name
    return "asyncio" if "/asyncio/" in file else "others"


def _answer_seeds(duration_s: float) -> None:
    """In a process of `_beside`: for each seed on standard input, the milliseconds of its schedule."""
    cpu_ms(0, _WARM_UP_S, MAX_WAITS_MS[0])
    for line in sys.stdin:
        print(cpu_ms(int(line), duration_s, MAX_WAITS_MS[0]), flush=True)


def _beside(other: Path, schedules: int, duration_s: float) -> None:
    command = [sys.executable, __file__, "--answer-seeds", "--seconds", str(duration_s)]
    checkouts = (other.resolve(), Path(__file__).parents[1])
    processes = [
        subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for checkout in checkouts
    ]
    costs: list[list[float]] = [[], []]
    for seed in range(schedules):
        for process, found in zip(processes, costs, strict=True):
            assert process.stdin is not None
            assert process.stdout is not None
            print(seed, file=process.stdin, flush=True)
            found.append(float(process.stdout.readline()))
    for checkout, process, found in zip(checkouts, processes, costs, strict=True):
        process.communicate()
        print(f"{statistics.median(found):>9,.0f} ms, at least {min(found):,.0f} ms: {checkout}")
    ratio, least = (of(costs[0]) / of(costs[1]) for of in (statistics.median, min))
    print(f"ratio of the medians {ratio:.2f}, of the least {least:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation")
    parser.add_argument("--schedules", type=int, default=10, help="how many of each row")
    parser.add_argument("--seconds", type=float, default=600.0, help="virtual seconds of each")
    parser.add_argument("--profile", action="store_true", help="in whose code the time is spent")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with another checkout")
    parser.add_argument("--answer-seeds", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.disable(logging.ERROR)  # aiokafka's warnings of the restarts
    if options.answer_seeds:
        _answer_seeds(options.seconds)
        return 0
    if options.beside is not None:
        _beside(options.beside, options.schedules, options.seconds)
        return 0
    cpu_ms(0, _WARM_UP_S, MAX_WAITS_MS[0])
    print(f"{'fetch_max_wait_ms':>17} {'CPU ms a schedule':>18} {'min for 1,000 on 2 cores':>25}")
    for max_wait_ms in MAX_WAITS_MS:
        costs = [cpu_ms(seed, options.seconds, max_wait_ms) for seed in range(options.schedules)]
        median = statistics.median(costs)
        print(f"{max_wait_ms:>17,} {median:>18,.0f} {median * 500 / 60_000:>25.1f}", flush=True)
    if options.profile:
        counts: Counter[str] = Counter()
        with _sampled(counts):
            for seed in range(options.schedules):
                schedule_of(seed, options.seconds, MAX_WAITS_MS[0])
        for library, count in counts.most_common():
            print(f"{library:>25} {count / counts.total():>6.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

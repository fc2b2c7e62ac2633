"""The time that a group of real consumers takes to settle: the emulator beside Kafka's own broker, in one
run.

    python -m benchmarks.settling [--consumers 50 200 500] [--delays 0 3000] [--appends 0 5] [--repeats 3]

confluent-kafka's consumers in one process, which subscribe all at once to a topic with as many partitions;
settled is the group when each of them has been given one. Seconds from the first subscribe, the median of the
repeats, and its ratio to the first broker's; `delay`: group.initial.rebalance.delay.ms. The emulator runs
once for each of `--appends` (groupstorm.append.latency.ms). All brokers are warmed up by a small group first.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from benchmarks.brokers import KAFKA, Start, brokers
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.wire.admin import await_coordinator, create_topics
from groupstorm.clients.wire.cluster import ClusterClient

#: How members divide partitions, and what the row says.
STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}

_PATIENCE_S = 180.0
_POLL_S = 0.001
WARM_UP_CONSUMERS = 10


class Case(NamedTuple):
    protocol: str
    delay_ms: int
    consumers: int


class _Member:
    """A consumer and how many partitions it has."""

    def __init__(self, address: str, group: str, protocol: str) -> None:
        from confluent_kafka import Consumer

        self.partitions = 0
        self._adds = protocol == "cooperative"
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "partition.assignment.strategy": STRATEGIES[protocol],
                "enable.auto.commit": False,
            }
        )

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def poll(self) -> None:
        self._consumer.poll(0)

    def _assigned(self, _: Any, partitions: Sequence[Any]) -> None:
        self.partitions = len(partitions) + (self.partitions if self._adds else 0)

    def _revoked(self, _: Any, partitions: Sequence[Any]) -> None:
        self.partitions -= len(partitions)


def _settle(pipe: Connection, address: str, topic: str, consumers: int, protocol: str) -> None:
    """The consumers' process: says how long it took them, None if they had no patience any more."""
    members = [_Member(address, f"group-of-{topic}", protocol) for _ in range(consumers)]
    begin_s = time.monotonic()
    for member in members:
        member.subscribe(topic)
    elapsed_s = 0.0
    while elapsed_s < _PATIENCE_S and not all(member.partitions == 1 for member in members):
        for member in members:
            member.poll()
        time.sleep(_POLL_S)
        elapsed_s = time.monotonic() - begin_s
    pipe.send(elapsed_s if elapsed_s < _PATIENCE_S else None)
    pipe.close()
    os._exit(0)  # not one by one: each that leaves makes the others begin again


async def _measure(broker: RunningBroker, case: Case, topic: str) -> float:
    """Raises TimeoutError for a group that does not settle."""
    cluster = ClusterClient(broker.bootstrap, "benchmark", 60_000)
    await create_topics(cluster, {topic: case.consumers})
    await await_coordinator(cluster, f"group-of-{topic}")
    cluster.close()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    arguments = (theirs, broker.address, topic, case.consumers, case.protocol)
    process = context.Process(target=_settle, args=arguments, daemon=True)
    process.start()
    theirs.close()
    took_s: float | None = await asyncio.to_thread(ours.recv)
    process.join()
    if took_s is None:
        raise TimeoutError(f"{case.consumers} consumers have not settled within {_PATIENCE_S:.0f} s")
    return took_s


async def _beside_each_other(
    running: Mapping[str, RunningBroker], cases: Sequence[Case], repeats: int
) -> None:
    for case in cases:
        took_s: dict[str, list[float]] = {name: [] for name in running}
        for repeat in range(repeats):
            for name, broker in running.items():
                topic = f"{case.protocol}-{case.consumers}-{repeat}"
                took_s[name].append(await _measure(broker, case, topic))
        medians = [statistics.median(times) for times in took_s.values()]
        ratios = "".join(f"{median / medians[0]:8.2f}" for median in medians[1:])
        seconds = "".join(f"{_spread(times):>28}" for times in took_s.values())
        print(f"{case.protocol:12}{case.delay_ms:>8}{case.consumers:>11}{seconds}{ratios}", flush=True)


def _spread(times: Sequence[float]) -> str:
    """The median, and from where to where."""
    return f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})"


def _columns(appends_ms: Sequence[int]) -> dict[str, tuple[Start, dict[str, str]]]:
    """Kafka first, then the emulator (on the fastest loop there is) with each latency of an append."""
    known = brokers()
    emulator = list(known)[-1]
    columns: dict[str, tuple[Start, dict[str, str]]] = {KAFKA: (known[KAFKA], {})}
    for latency_ms in appends_ms:
        name = f"{emulator}, appends {latency_ms} ms" if latency_ms else emulator
        columns[name] = (known[emulator], {"groupstorm.append.latency.ms": str(latency_ms)})
    return columns


async def _run(
    consumers: Sequence[int], delays_ms: Sequence[int], appends_ms: Sequence[int], repeats: int
) -> None:
    headed = False
    for delay_ms in delays_ms:
        delay = {"group.initial.rebalance.delay.ms": str(delay_ms)}
        async with AsyncExitStack() as stack:
            running = {}
            for name, (start, options) in _columns(appends_ms).items():
                try:
                    running[name] = await stack.enter_async_context(start(delay | options))
                except BrokerUnavailable as missing:
                    print(f"{name} is not measured: {missing}", flush=True)
            if not headed:
                names = "".join(f"{name + ', s':>28}" for name in running)
                print(f"{'protocol':12}{'delay':>8}{'consumers':>11}{names}   ratios", flush=True)
                headed = True
            for broker in running.values():
                _ = await _measure(broker, Case("eager", delay_ms, WARM_UP_CONSUMERS), "warm-up")
            cases = [Case(protocol, delay_ms, count) for protocol in STRATEGIES for count in consumers]
            await _beside_each_other(running, cases, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--consumers", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--delays", type=int, nargs="+", default=[0, 3000], help="ms")
    parser.add_argument("--appends", type=int, nargs="+", default=[0, 5], help="ms")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(_run(given.consumers, given.delays, given.appends, given.repeats))


if __name__ == "__main__":
    main()

"""The processes and the forwarder around one run with real clients, from its beginning to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.wire.security import PLAINTEXT
from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.live.clock import Spawn
from groupstorm.storms.live.real_clients.forwarder import Forwarder
from groupstorm.storms.live.real_clients.libraries import JAVA, Library, java_command, order
from groupstorm.storms.live.real_clients.processes import Report, WorkerPool, WorkerProcess, python_command
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.world.member_settings import consumer_config

#: With more members, several share a process.
PROCESSES_MAX = 8

#: Before the run every process lets a consumer join a group of its own. The first consumer of a process takes
#: seconds, which a process of the scenario spends in `start_ms`; so does the first member of a new broker.
_WARM_UP = "warm-up"
_WARM_UP_TIMEOUT_S = 180.0


class Parts(NamedTuple):
    """The parts of a run with real clients beside its broker. ``bootstrap``: the forwarder's address."""

    forwarder: Forwarder
    pool: WorkerPool
    producer: WorkerProcess
    bootstrap: str


@asynccontextmanager
async def client_parts(
    library: Library,
    scenario: ResolvedScenario,
    broker: RunningBroker,
    topics: Mapping[str, int],
    spawn: Spawn,
) -> AsyncIterator[Parts]:
    """Start the forwarder, the producer and the first worker processes; kill them at the end.

    Raises InputError for a cluster that wants TLS or SASL, and CheckFailed if a process does not start.
    """
    if broker.security is not PLAINTEXT:
        raise InputError(f"--with {library.name}: the clients speak plain text: leave out --client-config")
    members = scenario.settings.integer("members")
    per_process = -(-members // PROCESSES_MAX)
    forwarder = Forwarder(broker.bootstrap)
    name = f"the {library.name} worker"
    pool = WorkerPool(name, worker_command(library), per_process, spawn)
    producer = WorkerProcess("the producer", python_command("producer", broker.address), spawn)
    try:
        endpoints = await forwarder.start()
        await producer.start()
        processes = await pool.prepare(_processes_needed(scenario))
        parts = Parts(forwarder, pool, producer, ",".join(f"{one.host}:{one.port}" for one in endpoints))
        if not broker.prefix:
            orders = [_warm_up_order(library, scenario, topics, parts, n) for n in range(len(processes))]
            await asyncio.gather(*map(_warm_up, processes, orders))
        yield parts
    finally:
        await pool.stop()
        await producer.reap()
        await forwarder.stop()


def worker_command(library: Library) -> Sequence[str]:
    """The command of a process that hosts consumers of the library. Raises InputError."""
    return java_command() if library.name == JAVA else python_command("host", library.name)


def _processes_needed(scenario: ResolvedScenario) -> int:
    """For the first members, those that are added, and the successors of those that crash."""
    settings = scenario.settings
    needed = min(settings.integer("members"), PROCESSES_MAX)
    for step in scenario.steps:
        if step.do == "add":
            needed += step.count
        elif step.do == "crash-restart":
            needed += settings.integer("members") if step.members is None else len(step.members)
    return min(needed + 1, 2 * PROCESSES_MAX)


def _warm_up_order(
    library: Library, scenario: ResolvedScenario, topics: Mapping[str, int], parts: Parts, number: int
) -> Mapping[str, Any]:
    config = consumer_config(scenario.settings, _WARM_UP, tuple(topics), f"{_WARM_UP}-{number}", 0)
    return order(library, scenario.settings, config, parts.bootstrap, scenario.seed)


async def _warm_up(process: WorkerProcess, ordered: Mapping[str, Any]) -> None:
    """Let a consumer join and leave the group of the warm-up. Raises CheckFailed if that takes too long."""
    name = ordered["member"]
    left = asyncio.Event()

    def on_report(report: Report) -> None:
        if report["event"] == "assigned":
            process.command("stop", name)
        elif report["event"] in ("closed", "failed"):
            left.set()

    process.listen(name, on_report)
    process.command("start", **ordered)
    try:
        async with asyncio.timeout(_WARM_UP_TIMEOUT_S):
            await left.wait()
    except TimeoutError as late:
        raise CheckFailed(
            f"{process.name}: a consumer has not joined within {_WARM_UP_TIMEOUT_S:.0f} s"
        ) from late
    process.forget(name)

"""The processes and the forwarder around one run with real clients, from its beginning to its end.

Worker processes are started ahead of their use, commanded over pipes, and stopped by signals.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import groupstorm
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.wire.security import PLAINTEXT
from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.live.clock import Spawn
from groupstorm.storms.live.forwarding import MemberForwarder
from groupstorm.storms.live.real_clients import workers
from groupstorm.storms.live.real_clients.libraries import JAVA, Library, java_command, order
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.world.member_settings import consumer_config

#: The time that a process may take until it is ready.
READY_TIMEOUT_S = 120.0

#: The longest line of a report: positions of ten thousand partitions.
_LINE_BYTES = 2**20

_WORKERS = workers.__name__
_ERROR_LINES = 20

Report = Mapping[str, Any]


def python_command(program: str, *arguments: str) -> list[str]:
    """The command of one of our worker programs."""
    return [sys.executable, "-m", f"{_WORKERS}.{program}", *arguments]


class WorkerProcess:
    """One process; a process that ends by itself ends the run."""

    def __init__(self, name: str, command: Sequence[str], spawn: Spawn) -> None:
        self.name = name
        #: Consumers that live in it.
        self.load = 0
        self._listeners: dict[str, Callable[[Report], None]] = {}
        self._command = command
        self._spawn = spawn
        self._process: asyncio.subprocess.Process | None = None
        self._ending = False
        self._errors: deque[str] = deque(maxlen=_ERROR_LINES)

    async def start(self) -> None:
        """Raises CheckFailed if the process does not become ready."""
        package = Path(groupstorm.__file__).parent.parent
        path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._spawn(self._keep_errors(process))
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                line = await process.stdout.readline()
        except TimeoutError as late:
            raise CheckFailed(f"{self.name}: not ready after {READY_TIMEOUT_S:.0f} s") from late
        if self._ending:
            return
        if not line:
            raise await self._ended(process)
        self._spawn(self._read(process))

    def listen(self, member: str, on_report: Callable[[Report], None]) -> None:
        """Reports of ``member`` go to ``on_report`` ("": of a process without consumers)."""
        self._listeners[member] = on_report

    def forget(self, member: str) -> None:
        self._listeners.pop(member, None)

    def command(self, do: str, member: str, **about: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "member": member, **about}).encode() + b"\n")

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL. No report of it arrives any more."""
        self._ending = True
        self._listeners.clear()
        self._send(signal.SIGKILL)

    async def reap(self) -> None:
        """Kill it and wait for its end."""
        self.kill()
        if self._process is not None:
            await self._process.wait()

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            report = json.loads(line)
            listener = self._listeners.get(report["member"])
            if listener is not None:
                listener(report)
        if not self._ending:
            raise await self._ended(process)

    async def _keep_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            self._errors.append(line.decode(errors="replace").strip())

    async def _ended(self, process: asyncio.subprocess.Process) -> CheckFailed:
        code = await process.wait()
        said = next((line for line in reversed(self._errors) if line), "it wrote nothing on standard error")
        return CheckFailed(f"{self.name} ended with {code}: {said}")


class WorkerPool:
    """The processes that host the consumers of one library.

    ``per_process``: how many consumers share a process at most; a consumer that will be killed or
    stopped by a signal has one of its own.
    """

    def __init__(self, name: str, command: Sequence[str], per_process: int, spawn: Spawn) -> None:
        self._name = name
        self._command = command
        self._per_process = per_process
        self._spawn = spawn
        self._processes: list[WorkerProcess] = []
        self._spare: list[WorkerProcess] = []
        self._shared: list[WorkerProcess] = []

    async def prepare(self, count: int) -> Sequence[WorkerProcess]:
        """Start so many processes ahead of their use. Raises CheckFailed."""
        try:
            async with asyncio.TaskGroup() as group:  # it ends when each of them has, also if it is cancelled
                starting = [group.create_task(self._start()) for _ in range(count)]
        except* CheckFailed as failed:
            raise failed.exceptions[0] from None
        self._spare += [task.result() for task in starting]
        return tuple(self._spare)

    async def take(self, alone: bool) -> WorkerProcess:
        """A process for one more consumer."""
        if not alone:
            least = min(self._shared, key=lambda process: process.load, default=None)
            if least is not None and least.load < self._per_process:
                least.load += 1
                return least
        if self._spare:
            process = self._spare.pop()
        else:
            process = await self._start()
        process.load = 1
        if not alone and self._per_process > 1:
            self._shared.append(process)
        return process

    def give_back(self, process: WorkerProcess) -> None:
        """A consumer has ended in it. The next consumer may have the process if no other lives in it."""
        process.load -= 1
        if process.load == 0 and process not in self._shared:
            self._spare.append(process)

    async def stop(self) -> None:
        await asyncio.gather(*(process.reap() for process in self._processes))

    async def _start(self) -> WorkerProcess:
        process = WorkerProcess(self._name, self._command, self._spawn)
        self._processes.append(process)
        await process.start()
        return process


#: With more members, several share a process.
PROCESSES_MAX = 8

#: Before the run every process lets a consumer join a group of its own. The first consumer of a process takes
#: seconds, which a process of the scenario spends in `start_ms`; so does the first member of a new broker.
_WARM_UP = "warm-up"
_WARM_UP_TIMEOUT_S = 180.0


class Parts(NamedTuple):
    """The parts of a run with real clients beside its broker. ``bootstrap``: the forwarder's address."""

    forwarder: MemberForwarder
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
    forwarder = MemberForwarder(broker.bootstrap)
    name = f"the {library.name} worker"
    pool = WorkerPool(name, worker_command(library), per_process, spawn)
    producer = WorkerProcess("the producer", python_command("producer", broker.address), spawn)
    try:
        await forwarder.start()
        await producer.start()
        processes = await pool.prepare(_processes_needed(scenario))
        parts = Parts(forwarder, pool, producer, ",".join(map(str, forwarder.bootstrap)))
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

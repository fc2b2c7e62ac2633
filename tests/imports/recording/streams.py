"""A recording of a streams group (KIP-1071): a broker and two instances of a word count."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import kafka_jars
from groupstorm.clients.brokers.jvm import jvm, logging_option
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.programs.building import ProgramUnavailable, word_count
from tests.imports.recording.logging_files import broker_logging, member_logging
from tests.imports.recording.members import RecordingFailed
from tests.imports.recording.recording import DATA, RECORDED, SERVER_LOG

RELEASE: Final = "4.4.0"
GROUP: Final = "count"
PARTITIONS: Final = 2
SESSION_TIMEOUT_MS: Final = 6_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
_TOPICS: Final = ("lines", "counts")
_TIMEOUT_S, _LOOK_S = 90.0, 0.25


async def record_streams(out: Path) -> None:
    """Record two instances: one is killed and started again, and then both are stopped.

    Raises BrokerUnavailable if something is not installed, RecordingFailed if the instances do not do what
    they are asked for.
    """
    if DATA.exists():
        raise RecordingFailed(f"{DATA} exists: is another recording running?")
    with tempfile.TemporaryDirectory(prefix="groupstorm-recording-") as temporary:
        folder = Path(temporary)
        logs = folder / "logs"
        logs.mkdir()
        options = {
            "group.streams.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "group.streams.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "group.streams.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
            "group.streams.min.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
            "num.partitions": str(PARTITIONS),
            "log.dirs": str(DATA),
        }
        logging = broker_logging(RELEASE, folder, logs / SERVER_LOG)
        async with jvm(options, RELEASE, logging) as broker:
            pair = _Pair(broker.address, folder, logs)
            try:
                await _situation(pair, broker.address)
            finally:
                await pair.end()
                shutil.rmtree(DATA, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for log in sorted(logs.iterdir()):
            kept = log.read_bytes().replace(str(folder).encode(), b"/tmp/streams")
            (out / f"{log.name}.gz").write_bytes(gzip.compress(kept, mtime=0))
        text = json.dumps({"kafka": RELEASE, "actions": pair.actions}, indent=1).encode()
        (out / f"{RECORDED}.gz").write_bytes(gzip.compress(text, mtime=0))


async def _situation(pair: _Pair, address: str) -> None:
    lines = [(number % PARTITIONS, f"some words {number % 10}") for number in range(100)]
    await asyncio.to_thread(produce_with_confluent, address, lines, _TOPICS[0])
    await pair.start("counter-a")
    await pair.runs("counter-a", 4)
    await pair.start("counter-b")
    await pair.runs("counter-b", 2)
    await pair.kill("counter-b")
    await pair.runs("counter-a", 4)
    await pair.start("counter-b")
    await pair.runs("counter-b", 2)
    await pair.stop("counter-b")
    await pair.runs("counter-a", 4)
    await pair.stop("counter-a")


class _Pair:
    """``actions``: what the harness did."""

    def __init__(self, bootstrap: str, folder: Path, logs: Path) -> None:
        self.actions: list[dict[str, int | str]] = []
        self._bootstrap, self._folder, self._logs = bootstrap, folder, logs
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        #: Where the present process's lines begin in its log.
        self._begun: dict[str, int] = {}

    async def start(self, name: str) -> None:
        """Start an instance; its log goes on if it had one before."""
        self._note("start", name)
        file = self._logs / f"{name}.log"
        file.touch()
        self._begun[name] = len(file.read_text("utf-8"))
        with file.open("ab") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                *self._command(name),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
            )

    async def runs(self, name: str, tasks: int) -> None:
        """Wait until an instance runs so many active tasks, by its own log since it was started."""
        await _until(lambda: self._running(name) == tasks, f"{name} does not run {tasks} tasks")

    def _running(self, name: str) -> int:
        said = (self._logs / f"{name}.log").read_text("utf-8")[self._begun[name] :]
        return said.count("] Restored and ready to run") - said.count("] Suspended from RUNNING")

    async def stop(self, name: str) -> None:
        self._note("stop", name)
        process = self._processes.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()

    async def kill(self, name: str) -> None:
        self._note("kill", name)
        self._processes[name].kill()
        await self._processes.pop(name).wait()

    async def end(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()

    def _note(self, do: str, name: str) -> None:
        self.actions.append({"time_ms": time.time_ns() // 1_000_000, "do": do, "member": name})

    def _command(self, name: str) -> list[str]:
        try:
            java = word_count()
        except ProgramUnavailable as unavailable:
            raise BrokerUnavailable(str(unavailable)) from unavailable
        settings = {
            "application.id": GROUP,
            "client.id": name,
            "bootstrap.servers": self._bootstrap,
            "group.protocol": "streams",
            "state.dir": str(self._folder / f"state-{name}"),
            "commit.interval.ms": "1000",
        }
        # Kafka's own folder of jars has log4j; that of Kafka Streams has a logger that knows no pattern.
        path = f"{kafka_jars(RELEASE)}/*:{java.classpath}"
        option = logging_option(RELEASE, member_logging(RELEASE, self._folder))
        words = [f"{key}={value}" for key, value in settings.items()]
        return [str(java.java), "-Xmx192m", option, "-cp", path, "WordCount", *_TOPICS, *words]


async def _until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not await asyncio.to_thread(condition):
        if time.monotonic() > deadline_s:
            raise RecordingFailed(otherwise)
        await asyncio.sleep(_LOOK_S)

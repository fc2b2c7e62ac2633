"""A recording of a streams group (KIP-1071): a broker and two instances of a word count."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from pathlib import Path
from typing import Final

from groupstorm.clients.brokers.jars import kafka_jars
from groupstorm.clients.brokers.jvm import jvm, logging_option
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.programs.building import word_count
from tests.imports.recording.logging_files import broker_logging, member_logging
from tests.imports.recording.pair import Pair, until
from tests.imports.recording.recording import DATA, SERVER_LOG, folder_of_recording, keep

RELEASE: Final = "4.4.0"
GROUP: Final = "count"
PARTITIONS: Final = 2
SESSION_TIMEOUT_MS: Final = 6_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
_TOPICS: Final = ("lines", "counts")


async def record_streams(out: Path) -> None:
    """Record two instances: one is killed and started again, and then both are stopped.

    Raises BrokerUnavailable or ProgramUnavailable if something is not installed, RecordingFailed if the
    instances do not do what they are asked for.
    """
    options = {
        "group.streams.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.streams.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.streams.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
        "group.streams.min.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
        "num.partitions": str(PARTITIONS),
        "log.dirs": str(DATA),
    }
    with folder_of_recording() as (folder, logs):
        logging = broker_logging(RELEASE, folder, logs / SERVER_LOG)
        async with jvm(options, RELEASE, logging) as broker:
            pair = _Instances(broker.address, folder, logs)
            try:
                await _situation(pair, broker.address)
            finally:
                await pair.end()
        here = str(folder).encode()
        seen = {"kafka": RELEASE, "actions": pair.actions}
        keep(logs, seen, out, lambda log: log.replace(here, b"/tmp/streams"))


async def _situation(pair: _Instances, address: str) -> None:
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


class _Instances(Pair):
    def __init__(self, bootstrap: str, folder: Path, logs: Path) -> None:
        super().__init__(logs)
        self._bootstrap, self._folder = bootstrap, folder
        #: Where the present process's lines begin in its log.
        self._begun: dict[str, int] = {}

    async def start(self, name: str) -> None:
        file = self._logs / f"{name}.log"
        file.touch()
        self._begun[name] = len(file.read_text("utf-8"))
        await self.run(name, self._command(name))

    async def runs(self, name: str, tasks: int) -> None:
        """Wait until an instance runs so many active tasks, by its own log since it was started."""
        await until(lambda: self._running(name) == tasks, f"{name} does not run {tasks} tasks")

    def _running(self, name: str) -> int:
        said = (self._logs / f"{name}.log").read_text("utf-8")[self._begun[name] :]
        return said.count("] Restored and ready to run") - said.count("] Suspended from RUNNING")

    def ask_to_stop(self, process: Process) -> None:
        assert process.stdin is not None
        process.stdin.close()

    def _command(self, name: str) -> list[str]:
        java = word_count()
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

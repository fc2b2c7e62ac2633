"""A recording of Kafka Connect: a broker, two distributed workers, and three connectors that they share."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import KAFKA_VERSION
from groupstorm.clients.brokers.jvm import jvm, logging_option
from groupstorm.storms.live.real_clients.libraries import built_once
from tests.conformance.programs.building import kafka_java
from tests.imports.recording.logging_files import broker_logging, member_logging
from tests.imports.recording.members import RecordingFailed
from tests.imports.recording.pair import LOOK_S, TIMEOUT_S, Pair, now_ms, until
from tests.imports.recording.recording import DATA, SERVER_LOG, folder_of_recording, keep
from tests.processes import run_build

GROUP: Final = "connect-pair"
#: Each has one task: six pieces of work for two workers.
CONNECTORS: Final = ("lines-0", "lines-1", "lines-2")
SESSION_TIMEOUT_MS: Final = 6_000
#: For so long a group of Connect leaves work unassigned whose worker has gone.
DELAY_MS: Final = 10_000

_JVM = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PORTS: Final[Mapping[str, int]] = {"worker-a": 18083, "worker-b": 18084}
_QUIET_S: Final = 3.0


async def record_connect(out: Path) -> None:
    """Record two workers: one is restarted, then killed and not started again, and the other is stopped.

    Raises BrokerUnavailable if something is not installed, RecordingFailed if the workers do not do what
    they are asked for.
    """
    options = {
        "group.initial.rebalance.delay.ms": "1000",
        "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "log.dirs": str(DATA),
    }
    with folder_of_recording() as (folder, logs):
        logging = broker_logging(KAFKA_VERSION, folder, logs / SERVER_LOG)
        async with jvm(options, KAFKA_VERSION, logging) as broker:
            pair = _Workers(broker.address, folder, logs)
            try:
                await _situation(pair)
            finally:
                await pair.end()
        seen = {"kafka": KAFKA_VERSION, "groups": {GROUP: {"actions": pair.actions, "work": pair.work}}}
        keep(logs, seen, out, lambda log: _without_machine(log, folder))


def _without_machine(log: bytes, folder: Path) -> bytes:
    """A log without what only this machine has: the folders of jars and of the recording."""
    lines = [line for line in log.splitlines(keepends=True) if not line.startswith(b"\tjvm.")]
    return b"".join(lines).replace(str(folder).encode(), b"/tmp/connect")


async def _situation(pair: _Workers) -> None:
    await pair.start("worker-a")
    await pair.start("worker-b")
    await pair.create_connectors()
    await pair.settled("worker-a", "worker-b")
    await pair.stop("worker-b")
    await pair.start("worker-b")
    await pair.settled("worker-a", "worker-b")
    await pair.kill("worker-b")
    await pair.settled("worker-a")
    await pair.stop("worker-a")


class _Workers(Pair):
    """``work``: who had which connectors and tasks when all settled."""

    def __init__(self, bootstrap: str, folder: Path, logs: Path) -> None:
        super().__init__(logs)
        self.work: list[Mapping[str, Any]] = []
        self._bootstrap, self._folder = bootstrap, folder
        self._input = folder / "lines.txt"
        self._input.write_text("one\n", "utf-8")

    async def start(self, name: str) -> None:
        """Start a worker, and wait until it answers."""
        properties = self._folder / f"{name}.properties"
        properties.write_text(self._properties(name), "utf-8")
        await self.run(name, [*_command(self._folder), str(properties)])
        await until(lambda: _get(name, "/connectors") is not None, f"{name} does not answer")

    async def create_connectors(self) -> None:
        for name in CONNECTORS:
            config = {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
                "tasks.max": "1",
                "file": str(self._input),
                "topic": "lines",
            }
            body = json.dumps({"name": name, "config": config}).encode()
            await until(partial(_post, "worker-a", "/connectors", body), f"{name} is refused")

    async def settled(self, *workers: str) -> None:
        """Wait until all work runs on these workers, and has done so for a while."""
        since_s = time.monotonic()
        before: dict[str, list[str]] | None = None
        deadline_s = since_s + TIMEOUT_S
        while True:
            work = await asyncio.to_thread(_work, workers[0])
            if work != before:
                since_s, before = time.monotonic(), work
            found = work or {}
            everything = sum(map(len, found.values())) == 2 * len(CONNECTORS)
            if everything and {*found} == {*workers} and time.monotonic() - since_s > _QUIET_S:
                self.work.append({"time_ms": now_ms(), "work": work})
                return
            if time.monotonic() > deadline_s:
                raise RecordingFailed(f"the workers have not settled: {work}")
            await asyncio.sleep(LOOK_S)

    def _properties(self, name: str) -> str:
        topics = {f"{kind}.storage.topic": f"connect-{kind}s" for kind in ("offset", "config", "status")}
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": GROUP,
            "client.id": name,
            "listeners": f"http://127.0.0.1:{_PORTS[name]}",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "heartbeat.interval.ms": "1000",
            "scheduled.rebalance.max.delay.ms": str(DELAY_MS),
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            **topics,
            **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "config", "status")},
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


def _command(folder: Path) -> list[str]:
    java = kafka_java()._replace(classes=(_connector_jar() / "*",))
    option = logging_option(KAFKA_VERSION, member_logging(KAFKA_VERSION, folder))
    return [
        str(java.java),
        *_JVM,
        option,
        "-cp",
        java.classpath,
        "org.apache.kafka.connect.cli.ConnectDistributed",
    ]


def _connector_jar() -> Path:
    """A folder with Kafka's own connector for files, which no other jar brings."""
    artifact = f"org.apache.kafka:connect-file:{KAFKA_VERSION}"

    def fetch_into(folder: Path) -> None:
        command = [
            "mvn",
            "-B",
            "-q",
            "dependency:copy",
            f"-Dartifact={artifact}",
            f"-DoutputDirectory={folder}",
        ]
        answer = run_build(command)
        if answer.returncode != 0:
            raise BrokerUnavailable(f"Maven cannot fetch {artifact}: {answer.stdout.strip()}")

    return built_once("connect-file", artifact.encode(), fetch_into)


def _work(worker: str) -> dict[str, list[str]] | None:
    """Worker -> the connectors and tasks that run on it, by one worker's word."""
    found = _get(worker, "/connectors?expand=status")
    if found is None:
        return None
    names = {f"127.0.0.1:{port}": name for name, port in _PORTS.items()}
    work: dict[str, list[str]] = {}
    for name, one in sorted(found.items()):
        status = one["status"]
        parts = [(name, status["connector"])]
        parts += [(f"{name}-{task['id']}", task) for task in status["tasks"]]
        for part, state in parts:
            if state["state"] == "RUNNING":
                work.setdefault(names[state["worker_id"]], []).append(part)
    return work


def _get(worker: str, path: str) -> Any:
    """The answer to a request; None if there is none yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{_PORTS[worker]}{path}", timeout=10) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None


def _post(worker: str, path: str, body: bytes) -> bool:
    url = f"http://127.0.0.1:{_PORTS[worker]}{path}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30):
            return True
    except urllib.error.HTTPError as refused:
        if refused.code == 409:  # the workers rebalance
            return False
        raise RecordingFailed(refused.read().decode()) from refused
    except OSError:
        return False

"""Real Kafka as a process: one node that is broker and controller (KRaft), on the loopback interface."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers.contract import BrokerFailed, BrokerUnavailable, RunningBroker
from groupstorm.clients.brokers.jars import (
    HEAP,
    INTERNAL_TOPICS,
    KAFKA_VERSION,
    START_TIMEOUT_S,
    archiving,
    has_log4j_1,
    kafka_classpath,
    kafka_jars,
    keep_archive,
    quick_start,
)
from groupstorm.javaruntime import runtimes
from groupstorm.protocol.endpoints import Endpoint

#: Kafka 4's brokers are compiled for Java 17.
MINIMUM_JAVA = 17

#: The time limit of a broker's end after SIGTERM; the first one writes an archive of classes.
STOP_TIMEOUT_S = 20.0

#: The attempts to start a broker if another process takes one of its ports meanwhile. Kafka cannot choose
#: them: its controller's is part of controller.quorum.voters.
PORT_ATTEMPTS = 3

#: The time limit of Kafka's tool that formats the data's folder.
FORMAT_TIMEOUT_S = 60.0

_STARTED = "Kafka Server started"
_PORT_TAKEN = "Address already in use"
_NOTHING = "it printed nothing"
_LOGGING = Path(__file__).with_name("kafka")

#: The options of a single node.
_SINGLE_NODE: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    **INTERNAL_TOPICS,
}


@asynccontextmanager
async def jvm(
    options: Mapping[str, str], version: str = KAFKA_VERSION, logging: Path | None = None
) -> AsyncIterator[RunningBroker]:
    """Start a broker with ``options`` over its defaults; its data is removed when the context ends.

    ``logging``: a configuration file of log4j 2, or before Kafka 4 of log4j 1, that sends INFO to standard
    output and perhaps elsewhere, too.

    Raises BrokerUnavailable without Java or, to fetch Kafka, Maven, and BrokerFailed if it does not start.
    """
    java = _java()
    jars = await asyncio.to_thread(kafka_jars, version)
    command = _Command(java, jars, logging_option(version, logging))
    async with AsyncExitStack() as stack:
        for attempt in range(1, PORT_ATTEMPTS + 1):
            try:
                running = await stack.enter_async_context(_node(command, options, f"Kafka {version}"))
                break
            except PortTaken:
                if attempt == PORT_ATTEMPTS:
                    raise
        yield running


class PortTaken(BrokerFailed):
    """Another process listens on a port that was chosen for the broker."""


@dataclass(frozen=True)
class _Command:
    """Starts programs of Kafka's ``jars``; ``logging`` is an option of Java."""

    java: Path
    jars: Path
    logging: str

    def of(self, main: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        options = [HEAP, self.logging, *quick_start(self.java, self.jars), *options]
        return [str(self.java), *options, "-cp", kafka_classpath(self.jars), main, *arguments]


@asynccontextmanager
async def _node(command: _Command, options: Mapping[str, str], name: str) -> AsyncIterator[RunningBroker]:
    """Start a broker on ports that are free now."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="groupstorm-kafka-"))
    try:
        with held_ports(2) as (port, controller_port):
            properties = folder / "server.properties"
            properties.write_text(_properties(options, folder, port, controller_port), "utf-8")
            await _format(command, properties)
            archive = folder / "classes.jsa"
            writing = archiving(command.java, command.jars, archive)
            process = await _process(*command.of("kafka.Kafka", str(properties), options=writing))
            said: deque[str] = deque(maxlen=1)
            starting = asyncio.ensure_future(_until_started(process, said))
            output: asyncio.Future[Any] = starting
            try:
                await _started(starting, said)
                output = asyncio.ensure_future(_drain(process))
                yield RunningBroker(name, (Endpoint("127.0.0.1", port),), pid=process.pid)
            finally:
                await stop_process(process, STOP_TIMEOUT_S)
                await asyncio.wait([output])  # a pipe is closed when it has been read to its end
                if process.returncode is not None and process.returncode >= 0:  # no signal has ended it
                    await asyncio.to_thread(keep_archive, command.java, command.jars, archive)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


async def _process(*command: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


def logging_option(version: str, configuration: Path | None = None) -> str:
    """Java's option that names the configuration of the logs of this release; by default one of ours."""
    if has_log4j_1(version):
        return f"-Dlog4j.configuration=file:{configuration or _LOGGING / 'log4j.properties'}"
    return f"-Dlog4j2.configurationFile={configuration or _LOGGING / 'log4j2.yaml'}"


def _java() -> Path:
    too_old: list[str] = []
    for runtime in runtimes(MINIMUM_JAVA, too_old):
        return runtime.java
    have = ", ".join(too_old) or "no java was found"
    raise BrokerUnavailable(
        f"{have}: Kafka needs Java {MINIMUM_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
    )


def _properties(options: Mapping[str, str], folder: Path, port: int, controller_port: int) -> str:
    settings = {
        **_SINGLE_NODE,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(folder / "log"),
        **options,
    }
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    """Escape ``value`` for java.util.Properties."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


async def _format(command: _Command, properties: Path) -> None:
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    if cluster_id.startswith("-"):
        cluster_id = "A" + cluster_id[1:]  # the tool would read it as an option
    process = await _process(
        *command.of("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties))
    )
    try:
        async with asyncio.timeout(FORMAT_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError as late:
        raise BrokerFailed(f"Kafka did not format its data within {FORMAT_TIMEOUT_S:.0f} s") from late
    finally:
        await stop_process(process, 0)
    if process.returncode != 0:
        lines = output.decode(errors="replace").strip().splitlines() or [_NOTHING]
        why = next((line for line in lines if "Exception" in line), lines[-1])
        raise BrokerFailed(f"Kafka refuses its configuration: {why.strip()}")


async def _until_started(process: asyncio.subprocess.Process, said: deque[str]) -> str | None:
    """The reason that the log gives for the broker's end; None if it has started. ``said`` gets the lines.

    Of the end: the first error and the line behind it, which names the exception. The rest is the shutdown.
    """
    assert process.stdout is not None
    errors: list[str] = []
    last = _NOTHING
    while line := (await process.stdout.readline()).decode(errors="replace"):
        if _STARTED in line:
            return None
        last = line.strip()
        said.append(last)
        if len(errors) == 1 or (not errors and (" ERROR " in last or " FATAL " in last)):
            errors.append(last)
    return ": ".join(errors) or last


async def _started(reading: asyncio.Future[str | None], said: Sequence[str]) -> None:
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            why = await asyncio.shield(reading)
    except TimeoutError as late:
        last = said[-1] if said else _NOTHING
        raise BrokerFailed(f"Kafka did not start within {START_TIMEOUT_S:.0f} s: {last}") from late
    if why is not None:
        kind = PortTaken if _PORT_TAKEN in why else BrokerFailed
        raise kind(f"Kafka ended before it had started: {why}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Read the log on: a full pipe would block the broker."""
    assert process.stdout is not None
    while await process.stdout.read(65_536):
        pass


async def stop_process(process: asyncio.subprocess.Process, timeout_s: float) -> None:
    """Send SIGTERM, and SIGKILL to a process that is still there after ``timeout_s``."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


_LOOPBACK = "127.0.0.1"


@contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """Ports that are kept for whoever is told of them, as long as the context lasts.

    A socket is bound to each and never listens. Linux then gives the port to nobody who asks for a free one,
    and a server that sets SO_REUSEADDR, as Java's, Go's and asyncio's do, may listen there, end and start
    again. Other systems refuse the server while the socket is there: with them the ports are only free when
    the context begins.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((_LOOPBACK, 0))
        ports = [int(one.getsockname()[1]) for one in sockets]
        if sys.platform != "linux":
            held.close()
        yield ports

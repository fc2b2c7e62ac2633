"""Several brokers of Kafka, each in a JVM: many tests of librdkafka make topics with three replicas."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.brokers.jars import KAFKA_VERSION
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.security import ClientSecurity
from groupstorm.protocol.endpoints import Endpoint
from tests.client_libraries.secured import Access
from tests.client_suites.access import client_security
from tests.client_suites.kafka_security import listener_settings, scram_options
from tests.conformance.programs.building import kafka_java

_HEAP = "512m"
_CLUSTER_ID = "Z3JvdXBzdG9ybS1zdWl0ZQ"
_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 20.0
_REQUEST_TIMEOUT_MS = 5_000


@asynccontextmanager
async def kafka_cluster(
    settings: Mapping[str, str], access: Access, brokers: int, logs: Path
) -> AsyncIterator[RunningBroker]:
    """Brokers on the loopback interface, the first of which is the controller. Their data goes at the end.

    Clients and the brokers themselves use one listener of each, which demands what ``access`` has.

    Raises BrokerUnavailable, and ProgramUnavailable without Java or Kafka's jars.
    """
    folder = Path(tempfile.mkdtemp(prefix="kafka-cluster-"))
    controller, *ports = _free_ports(brokers + 1)
    endpoints = tuple(Endpoint("127.0.0.1", port) for port in ports)
    processes: list[asyncio.subprocess.Process] = []
    security = client_security(access)
    try:
        for number, port in enumerate(ports, 1):
            properties = folder / f"{number}.properties"
            data = folder / f"data-{number}"
            options = _options(number, access.protocol, port, controller, len(ports), data) | dict(settings)
            options |= listener_settings(access, folder)
            properties.write_text("".join(f"{name}={value}\n" for name, value in options.items()), "utf-8")
            formatting = ["format", "-t", _CLUSTER_ID, "-c", str(properties)]
            if number == 1:
                formatting += scram_options(access)
            process = await _started(logs / f"format-{number}.log", "kafka.tools.StorageTool", *formatting)
            if await process.wait() != 0:
                raise BrokerUnavailable(f"Kafka refuses its configuration: see {logs}/format-{number}.log")
            processes.append(await _started(logs / f"kafka-{number}.log", "kafka.Kafka", str(properties)))
        await _until_all_are_there(endpoints, security, processes)
        yield RunningBroker(f"Kafka {KAFKA_VERSION}", endpoints, security=security)
    finally:
        for process in reversed(processes):
            await _stopped(process)
        shutil.rmtree(folder, ignore_errors=True)


def _options(
    number: int, protocol: str, port: int, controller: int, brokers: int, data: Path
) -> dict[str, str]:
    replicas = str(min(3, brokers))
    in_sync = str(min(2, brokers))
    listener = f"{protocol}://127.0.0.1:{port}"
    is_controller = number == 1
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": str(number),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": protocol,
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocol}:{protocol}",
        "listeners": f"{listener},CONTROLLER://127.0.0.1:{controller}" if is_controller else listener,
        "advertised.listeners": listener,
        "log.dirs": str(data),
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


async def _started(log: Path, main: str, *arguments: str) -> asyncio.subprocess.Process:
    with log.open("wb") as output:
        return await asyncio.create_subprocess_exec(
            *kafka_java().command(main, *arguments, heap=_HEAP),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )


async def _until_all_are_there(
    endpoints: tuple[Endpoint, ...], security: ClientSecurity, processes: list[asyncio.subprocess.Process]
) -> None:
    client = ClusterClient(
        endpoints[:1], "client-suites", _REQUEST_TIMEOUT_MS, security, may_create_topics=False
    )
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            while len(client.node_ids()) < len(endpoints):
                if any(process.returncode is not None for process in processes):
                    raise BrokerUnavailable("a broker of Kafka ended before it had started")
                with contextlib.suppress(ConnectionLost):  # it does not listen yet
                    await client.refresh(["__none"])
                await asyncio.sleep(0.2)
    except TimeoutError as late:
        raise BrokerUnavailable(f"{len(endpoints)} brokers of Kafka were not there in time") from late
    finally:
        client.close()


async def _stopped(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()

"""Several brokers of Kafka, each in a JVM: many tests of librdkafka make topics with three replicas."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.brokers.jars import KAFKA_VERSION
from groupstorm.clients.brokers.jvm import FORMAT_TIMEOUT_S, held_ports, stop_process
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.security import ClientSecurity
from groupstorm.protocol.endpoints import Endpoint
from tests.client_libraries.secured import Access
from tests.client_suites.access import client_security
from tests.client_suites.kafka_security import listener_settings, scram_options
from tests.conformance.programs.building import kafka_java
from tests.processes import last_lines

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
    processes: list[asyncio.subprocess.Process] = []
    security = client_security(access)
    with held_ports(brokers + 1) as (controller, *ports):
        endpoints = tuple(Endpoint("127.0.0.1", port) for port in ports)
        try:
            for number, port in enumerate(ports, 1):
                properties = folder / f"{number}.properties"
                data = folder / f"data-{number}"
                options = _options(number, access.protocol, port, controller, brokers, data) | dict(settings)
                options |= listener_settings(access, folder)
                lines = [f"{name}={value}\n" for name, value in options.items()]
                properties.write_text("".join(lines), "utf-8")
                await _format(properties, scram_options(access) if number == 1 else [], logs, number)
                log = logs / f"kafka-{number}.log"
                processes.append(await _started(log, "kafka.Kafka", str(properties)))
            await _until_all_are_there(endpoints, security, processes, logs)
            yield RunningBroker(f"Kafka {KAFKA_VERSION}", endpoints, security=security)
        finally:
            for process in reversed(processes):
                await stop_process(process, _STOP_TIMEOUT_S)
            shutil.rmtree(folder, ignore_errors=True)


async def _format(properties: Path, options: list[str], logs: Path, number: int) -> None:
    log = logs / f"format-{number}.log"
    formatting = ["format", "-t", _CLUSTER_ID, "-c", str(properties), *options]
    process = await _started(log, "kafka.tools.StorageTool", *formatting)
    try:
        async with asyncio.timeout(FORMAT_TIMEOUT_S):
            code = await process.wait()
    except TimeoutError:
        code = None
    finally:
        await stop_process(process, 0)
    if code != 0:
        raise BrokerUnavailable(f"Kafka refuses its configuration: {_end(log)}")


def _end(log: Path) -> str:
    return f"{log} ends with{last_lines(log.read_bytes())}"


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
    endpoints: tuple[Endpoint, ...],
    security: ClientSecurity,
    processes: list[asyncio.subprocess.Process],
    logs: Path,
) -> None:
    client = ClusterClient(
        endpoints[:1], "client-suites", _REQUEST_TIMEOUT_MS, security, may_create_topics=False
    )
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            while len(client.node_ids()) < len(endpoints):
                for number, process in enumerate(processes, 1):
                    if process.returncode is not None:
                        end = _end(logs / f"kafka-{number}.log")
                        raise BrokerUnavailable(f"a broker of Kafka ended before it had started: {end}")
                with contextlib.suppress(ConnectionLost):  # it does not listen yet
                    await client.refresh(["__none"])
                await asyncio.sleep(0.2)
    except TimeoutError as late:
        ends = "\n".join(_end(logs / f"kafka-{number}.log") for number in range(1, len(endpoints) + 1))
        raise BrokerUnavailable(f"{len(endpoints)} brokers of Kafka were not there in time: {ends}") from late
    finally:
        client.close()

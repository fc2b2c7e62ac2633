"""Two brokers of one release: the first is the controller, the second the coordinator until it stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from groupstorm.clients.brokers.contract import BrokerFailed, BrokerUnavailable
from groupstorm.clients.brokers.jars import HEAP, INTERNAL_TOPICS, kafka_jars
from groupstorm.clients.brokers.jvm import (
    FORMAT_TIMEOUT_S,
    MINIMUM_JAVA,
    held_ports,
    logging_option,
    stop_process,
)
from groupstorm.clients.wire.admin import CREATE_TOPICS
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost, RequestTypes
from groupstorm.javaruntime import runtimes
from groupstorm.protocol.endpoints import Endpoint
from tests.imports.recording.group import PARTITIONS
from tests.imports.recording.logging_files import broker_logging

_NODES: Final = (1, 2)
_CLUSTER_ID: Final = "Z3JvdXBzdG9ybS1yZWNvcmQ"
#: The replicas of each partition, the leader's first.
_PLACES: Final[Mapping[str, tuple[int, list[int]]]] = {
    "__consumer_offsets": (1, [2, 1]),
    "orders": (len(PARTITIONS), [1]),
}
_START_S, _STOP_S, _LOOK_S = 240.0, 20.0, 0.2


class TwoBrokers:
    """``address``: the value of bootstrap.servers."""

    def __init__(self, address: str, processes: list[asyncio.subprocess.Process]) -> None:
        self.address = address
        self._processes = processes

    async def fail_over(self) -> None:
        """Stop the groups' coordinator in order: the other broker takes its place."""
        await stop_process(self._processes[1], _STOP_S)


@asynccontextmanager
async def two_brokers(
    options: Mapping[str, str], release: str, folder: Path, logs: Path, data: Path
) -> AsyncIterator[TwoBrokers]:
    """Start both on the loopback interface, and create the topics. Files go into ``folder``, the logs are
    ``logs``/server-1.log and server-2.log.

    Raises BrokerUnavailable without Java or Kafka's jars, BrokerFailed if a broker does not start.
    """
    runtime = next(runtimes(MINIMUM_JAVA, []), None)
    if runtime is None:
        raise BrokerUnavailable(f"needs Java {MINIMUM_JAVA} or newer (Debian: openjdk-17-jre-headless)")
    classes = f"{await asyncio.to_thread(kafka_jars, release)}{os.sep}*"
    processes: list[asyncio.subprocess.Process] = []
    with held_ports(len(_NODES) + 1) as (controller, *ports):
        endpoints = [Endpoint("127.0.0.1", port) for port in ports]
        try:
            for node, port in zip(_NODES, ports, strict=True):
                own = folder / f"node-{node}"
                own.mkdir()
                logging = broker_logging(release, own, logs / f"server-{node}.log")
                java = [str(runtime.java), HEAP, logging_option(release, logging), "-cp", classes]
                properties = own / "server.properties"
                settings = _settings(node, port, controller, data / str(node)) | dict(options)
                properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
                await _format(java, properties)
                processes.append(await _process(*java, "kafka.Kafka", str(properties)))
            await _create_topics(endpoints)
            yield TwoBrokers(",".join(f"127.0.0.1:{port}" for port in ports), processes)
        finally:
            for process in reversed(processes):
                await stop_process(process, _STOP_S)


def _settings(node: int, port: int, controller: int, data: Path) -> dict[str, str]:
    listener, is_controller = f"PLAINTEXT://127.0.0.1:{port}", node == _NODES[0]
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": str(node),
        "controller.quorum.voters": f"{_NODES[0]}@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"{listener},CONTROLLER://127.0.0.1:{controller}" if is_controller else listener,
        "advertised.listeners": listener,
        "log.dirs": str(data),
        **INTERNAL_TOPICS,
    }


async def _process(*command: str) -> asyncio.subprocess.Process:
    nothing = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=nothing, stderr=nothing)


async def _format(java: list[str], properties: Path) -> None:
    tool = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties))
    process = await _process(*java, *tool)
    try:
        async with asyncio.timeout(FORMAT_TIMEOUT_S):
            code = await process.wait()
    finally:
        await stop_process(process, 0)
    if code != 0:
        raise BrokerFailed(f"Kafka refuses {properties}")


async def _create_topics(endpoints: list[Endpoint]) -> None:
    """Create them with replicas of our choice as soon as both brokers have registered."""

    def build(types: RequestTypes) -> Any:
        topics = tuple(
            types.make(
                "CreatableTopic",
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    types.make(
                        "CreatableReplicaAssignment", partition_index=number, broker_ids=tuple(replicas)
                    )
                    for number in range(partitions)
                ),
                configs=(),
            )
            for name, (partitions, replicas) in _PLACES.items()
        )
        return types.make(
            types.root.__name__, topics=topics, timeout=timedelta(seconds=30), validate_only=False
        )

    client = ClusterClient(endpoints[:1], "recording", 30_000, may_create_topics=False)
    try:
        async with asyncio.timeout(_START_S):
            while len(client.node_ids()) < len(_NODES):
                with contextlib.suppress(ConnectionLost):  # it does not listen yet
                    await client.refresh(["__none"])
                await asyncio.sleep(_LOOK_S)
            answer = await client.ask_any(CREATE_TOPICS, build)
            refused = [topic for topic in answer.topics if topic.error_code]
            if refused:
                raise BrokerFailed(f"the cluster refuses topics: {refused}")
            while not all(client.led(topic) == count for topic, (count, _) in _PLACES.items()):
                await client.refresh([*_PLACES])
                await asyncio.sleep(_LOOK_S)
    except TimeoutError as late:
        raise BrokerFailed(f"two brokers were not there within {_START_S:.0f} s") from late
    finally:
        client.close()

"""The brokers that a suite runs on: those of `groupstorm serve`, Kafka in JVMs or a container, an address."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from groupstorm.clients.brokers import EMULATOR, JVM, BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.protocol.endpoints import Endpoint
from tests.client_suites.kafka_cluster import kafka_cluster
from tests.command import ROOT

_READY = "listening on 127.0.0.1:"


@asynccontextmanager
async def broker_of_suite(
    kind: BrokerKind, settings: Mapping[str, str], brokers: int, folder: Path
) -> AsyncIterator[RunningBroker]:
    """So many brokers with these settings. Those at an address keep their own; a container has one broker.

    ``folder`` receives the logs. Raises BrokerUnavailable, and ProgramUnavailable without Java.
    """
    if kind.name == EMULATOR:
        async with _serve(settings, brokers, folder / "serve.log") as running:
            yield running
    elif kind.name == JVM:
        async with kafka_cluster(settings, brokers, folder) as running:
            yield running
    else:
        async with open_broker(kind, settings, lambda _events: None) as running:
            yield running


@asynccontextmanager
async def _serve(settings: Mapping[str, str], brokers: int, log: Path) -> AsyncIterator[RunningBroker]:
    options = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "groupstorm",
                "serve",
                "--port",
                "0",
                "--brokers",
                str(brokers),
                *options,
            ),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    try:
        lines = [(await process.stdout.readline()).decode() for _ in range(brokers)]
        if not all(line.startswith(_READY) for line in lines):
            raise BrokerUnavailable(f"groupstorm serve did not start: see {log}")
        endpoints = tuple(Endpoint("127.0.0.1", int(line.removeprefix(_READY))) for line in lines)
        yield RunningBroker("groupstorm serve", endpoints, pid=process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()

"""The brokers that a suite runs on: those of `groupstorm serve`, Kafka in JVMs or a container, an address."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from groupstorm.clients.brokers import EMULATOR, JVM, BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.brokers.jvm import STOP_TIMEOUT_S, stop_process
from groupstorm.protocol.endpoints import Endpoint
from tests.client_libraries.secured import Access
from tests.client_suites.access import client_security
from tests.client_suites.kafka_cluster import kafka_cluster
from tests.command import ROOT
from tests.processes import last_lines

#: How long it may take to print its addresses.
_START_TIMEOUT_S = 120.0

_READY = "listening on 127.0.0.1:"


def can_be_secured(kind: BrokerKind) -> bool:
    """Whether the listeners of such brokers can demand certificates or users."""
    return kind.name in (EMULATOR, JVM)


@asynccontextmanager
async def broker_of_suite(
    kind: BrokerKind, settings: Mapping[str, str], access: Access, brokers: int, folder: Path
) -> AsyncIterator[RunningBroker]:
    """So many brokers with these settings, whose listeners demand what ``access`` has.

    Those at an address keep their own; a container has one broker.

    ``folder`` receives the logs. Raises BrokerUnavailable, and ProgramUnavailable without Java.
    """
    if kind.name == EMULATOR:
        async with _serve(settings, access, brokers, folder) as running:
            yield running
    elif kind.name == JVM:
        async with kafka_cluster(settings, access, brokers, folder) as running:
            yield running
    else:
        async with open_broker(kind, settings, lambda _events: None) as running:
            yield running


@asynccontextmanager
async def _serve(
    settings: Mapping[str, str], access: Access, brokers: int, folder: Path
) -> AsyncIterator[RunningBroker]:
    options = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    log = folder / "serve.log"
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
                *listener_options(access, folder),
            ),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(_START_TIMEOUT_S):
                for _ in range(brokers):
                    lines.append((await process.stdout.readline()).decode())
        if len(lines) < brokers or not all(line.startswith(_READY) for line in lines):
            said = last_lines(log.read_bytes())
            raise BrokerUnavailable(f"groupstorm serve did not start: {log} ends with{said}")
        endpoints = tuple(Endpoint("127.0.0.1", int(line.removeprefix(_READY))) for line in lines)
        security = client_security(access)
        yield RunningBroker("groupstorm serve", endpoints, security=security, pid=process.pid)
    finally:
        await stop_process(process, STOP_TIMEOUT_S)


def listener_options(access: Access, folder: Path) -> list[str]:
    """The options of `groupstorm serve` for such clients; ``folder`` receives the file of users."""
    options = []
    if access.certificates is not None:
        files = access.certificates
        options += ["--tls-cert", str(files.server), "--tls-key", str(files.server_key)]
        options += ["--tls-client-ca", str(files.authority)]
    if access.mechanism:
        users = folder / "users"
        users.write_text(f"{access.username}={access.password}\n", "utf-8")
        options += ["--sasl-users", str(users)]
    return options

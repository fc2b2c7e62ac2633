"""The brokers that a suite runs on: a process of `groupstorm serve`, Kafka in a JVM or a container, an address."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from groupstorm.clients.brokers import EMULATOR, BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.protocol.endpoints import Endpoint
from tests.command import ROOT

_READY = "listening on 127.0.0.1:"


@asynccontextmanager
async def broker_of_suite(
    kind: BrokerKind, settings: Mapping[str, str], folder: Path
) -> AsyncIterator[RunningBroker]:
    """A broker with these settings; that of an address keeps its own. ``folder`` receives the emulator's log.

    Raises BrokerUnavailable.
    """
    if kind.name == EMULATOR:
        async with _serve(settings, folder / "serve.log") as running:
            yield running
    else:
        async with open_broker(kind, settings, lambda _events: None) as running:
            yield running


@asynccontextmanager
async def _serve(settings: Mapping[str, str], log: Path) -> AsyncIterator[RunningBroker]:
    options = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "groupstorm", "serve", "--port", "0", *options),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    try:
        first = (await process.stdout.readline()).decode()
        if not first.startswith(_READY):
            raise BrokerUnavailable(f"groupstorm serve did not start: see {log}")
        endpoint = Endpoint("127.0.0.1", int(first.removeprefix(_READY)))
        yield RunningBroker("emulator", (endpoint,), pid=process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()

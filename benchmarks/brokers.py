"""Brokers as processes of their own: `groupstorm serve` on either event loop, and Kafka in a JVM."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from groupstorm.clients.brokers.contract import BrokerContext, RunningBroker
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.protocol.endpoints import Endpoint

KAFKA = "Kafka (JVM)"
EMULATOR = "groupstorm"
EMULATOR_UVLOOP = "groupstorm, uvloop"

_SERVE = "import sys; {}from groupstorm.cli.app import main; main()"
_WITHOUT_UVLOOP = "sys.modules['uvloop'] = None; "  # as if it were not installed

Start = Callable[[Mapping[str, str]], BrokerContext]


@asynccontextmanager
async def _served(options: Mapping[str, str], uvloop: bool) -> AsyncIterator[RunningBroker]:
    command = [sys.executable, "-c", _SERVE.format("" if uvloop else _WITHOUT_UVLOOP), "serve", "--port", "0"]
    for name, value in options.items():
        command += ["--set", f"{name}={value}"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        port = int((await process.stdout.readline()).rpartition(b":")[2])
        name = EMULATOR_UVLOOP if uvloop else EMULATOR
        yield RunningBroker(name, (Endpoint("127.0.0.1", port),), pid=process.pid)
    finally:
        process.terminate()
        await process.wait()


def brokers() -> dict[str, Start]:
    """By name; Kafka raises BrokerUnavailable where it cannot be had. uvloop only where it is installed."""
    found: dict[str, Start] = {KAFKA: jvm, EMULATOR: lambda options: _served(options, False)}
    if importlib.util.find_spec("uvloop"):
        found[EMULATOR_UVLOOP] = lambda options: _served(options, True)
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, all its threads together (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

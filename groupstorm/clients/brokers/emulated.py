"""The emulator as a broker, in this process and on this event loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.brokers.contract import OnCoordinatorEvents, RunningBroker
from groupstorm.trace.events.coordinator import Event


@asynccontextmanager
async def emulated(
    options: Mapping[str, str], on_events: OnCoordinatorEvents
) -> AsyncIterator[RunningBroker]:
    """Listen on a free port of the loopback interface. ``options``: Kafka's, as of `groupstorm serve`."""

    def emit(_time_us: int, events: Sequence[Event]) -> None:
        on_events(events)

    start_ms = time.time_ns() // 1_000_000
    broker = make_broker(options, {}, now_ms=start_ms)
    server = Server(broker, emit, lambda *_: None, start_ms=start_ms)
    endpoint = await server.start("127.0.0.1", 0)
    try:
        yield RunningBroker("emulator", (endpoint,), emits_events=True)
    finally:
        await server.stop()

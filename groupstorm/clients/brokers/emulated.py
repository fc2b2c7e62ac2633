"""The emulator as a broker, in this process and on this event loop."""

from __future__ import annotations

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

    server = Server(make_broker(options, {}), emit, lambda *_: None)
    endpoint = await server.start("127.0.0.1", 0)
    try:
        yield RunningBroker("emulator", (endpoint,), emits_events=True)
    finally:
        await server.stop()

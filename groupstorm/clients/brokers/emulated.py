"""The emulator as a broker, in this process and on this event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from groupstorm.clients.brokers.contract import OnCoordinatorEvents, RunningBroker
from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.assembly import make_broker
from groupstorm.coordinator.server.shell import Server


@asynccontextmanager
async def emulated(
    options: Mapping[str, str], on_events: OnCoordinatorEvents
) -> AsyncIterator[RunningBroker]:
    """Listens on a free port of the loopback interface. ``options``: Kafka's, see `groupstorm serve`."""

    def tell(_time_us: int, events: Sequence[Event]) -> None:
        on_events(events)

    server = Server(make_broker(options, {}), tell, lambda *_: None)
    endpoint = await server.start("127.0.0.1", 0)
    try:
        yield RunningBroker("emulator", (endpoint,), tells_events=True)
    finally:
        await server.stop()

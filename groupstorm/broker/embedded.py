"""A broker inside this process, on a thread of its own: for tests and notebooks whose clients block.

with EmbeddedBroker({"group.initial.rebalance.delay.ms": "0"}, {"orders": 3}) as broker:
    consumer = KafkaConsumer("orders", bootstrap_servers=broker.address)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.broker import Broker
from groupstorm.broker.config import NEWEST
from groupstorm.broker.security.connection import connections
from groupstorm.broker.security.listener import PLAINTEXT, ListenerSecurity, secure
from groupstorm.broker.shell import Server
from groupstorm.trace.events.coordinator import Event

_T = TypeVar("_T")


class BrokerThread(Protocol):
    """The thread of a broker, with a running event loop (`LoopThread`)."""

    @property
    def is_running(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def call(self, function: Callable[[], _T]) -> _T: ...

    def run(self, work: Coroutine[Any, Any, _T]) -> _T: ...


class EmbeddedBroker:
    """Listens on a free port of the loopback interface as long as the context lasts.

    ``events`` collects the coordinator's events, with microseconds since the start. The broker's state may be
    touched on its own thread only: ``call`` runs a function there.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        topics: Mapping[str, int] | None = None,
        brokers: int = 1,
        release: str = NEWEST,
        port: int = 0,
        security: ListenerSecurity = PLAINTEXT,
        thread: BrokerThread | None = None,
    ) -> None:
        """``brokers``: how many; ``release``: the Kafka whose highest versions are advertised; ``port``: of
        the first broker, 0: a free one; ``security``: what clients have to prove; ``thread``: the
        broker's; None: a new one."""
        start_ms = time.time_ns() // 1_000_000
        self.broker: Broker = make_broker(options or {}, topics or {}, brokers, release, now_ms=start_ms)
        secure(self.broker.state, security)
        self.events: list[tuple[int, Event]] = []
        self.closed: list[tuple[str, str]] = []
        self.host = "127.0.0.1"
        self.port = port
        self._thread = LoopThread("embedded-broker") if thread is None else thread
        self.server = Server(
            self.broker,
            self._on_events,
            lambda *closed: self.closed.append(closed),
            start_ms=start_ms,
            make_connection=connections(security),
        )

    @property
    def address(self) -> str:
        """For the clients' bootstrap servers: the first broker names the others."""
        return f"{self.host}:{self.port}"

    def move_coordinator(self, group: str, node: int | None = None) -> None:
        """See `Broker.move_coordinator`."""
        self.call(
            lambda: self.server.apply(lambda broker, now_ms: broker.move_coordinator(group, node, now_ms))
        )

    def __enter__(self) -> EmbeddedBroker:
        self._thread.start()
        try:
            self.port = self._thread.run(self.server.start(self.host, self.port)).port
        except OSError:
            self._thread.stop()
            raise
        return self

    def __exit__(self, *_problem: object) -> None:
        self._thread.run(self.server.stop())
        self._thread.stop()

    @property
    def is_running(self) -> bool:
        return self._thread.is_running

    def call(self, function: Callable[[], _T]) -> _T:
        """Run a function on the broker's thread and give its result."""
        return self._thread.call(function)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the broker's thread and give its result."""
        return self._thread.run(work)

    def open_connections(self) -> int:
        """The number of connections, those in their handshake included."""
        return len(self.server.connections)

    def _on_events(self, time_us: int, events: Sequence[Event]) -> None:
        self.events.extend((time_us, event) for event in events)


class LoopThread:
    """Runs from `start` to `stop`, once."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the loop and everything that still runs on it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, function: Callable[[], _T]) -> _T:
        """Run a function on the loop and return its result; on this thread if it is the loop's own or none
        runs."""
        if not self.is_running or threading.current_thread() is self._thread:
            return function()

        async def called() -> _T:
            return function()

        return self.run(called())

    def begin(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Run a coroutine on the loop, without waiting for its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

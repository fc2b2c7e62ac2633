"""A broker inside this process, on a thread of its own: for tests and notebooks whose clients block.

with EmbeddedBroker({"group.initial.rebalance.delay.ms": "0"}, {"orders": 3}) as broker:
    consumer = KafkaConsumer("orders", bootstrap_servers=broker.address)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.assembly import make_broker
from groupstorm.coordinator.server.broker import Broker
from groupstorm.coordinator.server.loop_thread import LoopThread
from groupstorm.coordinator.server.releases import NEWEST
from groupstorm.coordinator.server.security.connection import connections
from groupstorm.coordinator.server.security.listener import PLAINTEXT, Security, check_advertised
from groupstorm.coordinator.server.shell import Server

_T = TypeVar("_T")


class EmbeddedBroker:
    """Listens on a free port of the loopback interface from entering the context to leaving it.

    ``events`` collects what the coordinator did, with microseconds since the start. ``call`` runs a
    function on the broker's thread, where alone its state may be touched.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        topics: Mapping[str, int] | None = None,
        brokers: int = 1,
        release: str = NEWEST,
        port: int = 0,
        security: Security = PLAINTEXT,
    ) -> None:
        """``brokers``: how many; ``release``: whose highest versions of requests are advertised; ``port``:
        of the first broker, 0: a free one; ``security``: what clients have to do."""
        start_ms = time.time_ns() // 1_000_000
        self.broker: Broker = make_broker(options or {}, topics or {}, brokers, release, now_ms=start_ms)
        check_advertised(self.broker.state.config, security)
        self.events: list[tuple[int, Event]] = []
        self.closed: list[tuple[str, str]] = []
        self.host = "127.0.0.1"
        self.port = port
        self._thread = LoopThread("embedded-broker")
        self.server = Server(
            self.broker,
            self._on_events,
            lambda *closed: self.closed.append(closed),
            start_ms=start_ms,
            make_connection=connections(security),
        )

    @property
    def address(self) -> str:
        """What clients call bootstrap servers: the first broker is enough to find the others."""
        return f"{self.host}:{self.port}"

    def move_coordinator(self, group: str, node: int | None = None) -> None:
        """Another broker takes the group over, the next one unless one is named (with a single broker it is
        told NOT_COORDINATOR and finds it again), and with it all groups of that partition of the offsets
        topic.

        Raises ValueError for a broker that there is not.
        """
        self.call(lambda: self.server.move_coordinator(group, node))

    def __enter__(self) -> EmbeddedBroker:
        self._thread.start()
        try:
            self.port = self._thread.run(self.server.start(self.host, self.port)).port
        except OSError:
            self._thread.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.run(self.server.stop())
        self._thread.stop()

    def call(self, function: Callable[[], _T]) -> _T:
        """Run a function on the broker's thread and give its result."""
        return self._thread.call(function)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the broker's thread and give its result."""
        return self._thread.run(work)

    def open_connections(self) -> int:
        """How many there are, those included that have not come through their handshake."""
        return len(self.server.connections)

    def unsent_bytes(self) -> int:
        """How much waits for clients that do not read, sockets' own buffers not counted."""
        return sum(connection.unsent_bytes for connection in self.server.connections.values())

    def _on_events(self, time_us: int, events: Sequence[Event]) -> None:
        self.events.extend((time_us, event) for event in events)

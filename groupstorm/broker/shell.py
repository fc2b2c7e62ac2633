"""The asyncio shell around the broker: listeners, connections, one timer. It decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change
from groupstorm.broker.connection import Connection, shut_down
from groupstorm.broker.requests import BrokerEffects, Peer
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events.coordinator import Event

#: Receives every event with the microseconds since the server started.
OnEvents = Callable[[int, Sequence[Event]], None]
#: Keeps the changes of a step; False if that was not possible: the step's request is refused then.
OnChanges = Callable[[Sequence[Change]], bool]
#: Receives the peer and the reason of every connection that the server closes.
OnClose = Callable[[str, str], None]
#: Receives every new connection.
OnConnection = Callable[[Connection], None]
#: Makes a connection of a server, its number and the broker's id.
MakeConnection = Callable[["Server", int, int], Connection]
#: Is asked before a request is served. True: it serves or refuses the request, or closes the connection.
Intercept = Callable[[int, Peer, bytes], bool]

#: The time for which a stopping server waits for clients to read their responses.
GRACE_S = 1.0
#: The longest interval between two searches for idle connections.
SWEEP_S = 10.0
#: The shortest wait of a timer. Timers come behind requests that have arrived (`storms.world.clock.Kind`).
#: uvloop would call a shorter timer first.
TICK_S = 0.001
#: The most clients that wait to be accepted.
BACKLOG = 4096


class Server:
    """Listening brokers. One timer stands for all deadlines, another one closes idle connections."""

    def __init__(
        self,
        broker: Broker,
        on_events: OnEvents,
        on_close: OnClose,
        on_changes: OnChanges | None = None,
        start_ms: int = 0,
        make_connection: MakeConnection = Connection,
    ) -> None:
        """``on_changes`` keeps the changes of a step before a client gets its answer; ``start_ms``: the
        broker's time when it starts, in milliseconds since 1970 if clients produce or anything is kept over a
        restart; ``make_connection``: see `security.connection`."""
        self.broker = broker
        self.on_close = on_close
        self.connections: dict[int, Connection] = {}
        self.endpoints: list[Endpoint] = []
        #: For faults that a test asks for, see `groupstorm.testing`.
        self.intercept: Intercept | None = None
        self.on_connection: OnConnection | None = None
        self._on_events = on_events
        self._on_changes = on_changes
        self._start_ms = start_ms
        self._make_connection = make_connection
        self._next_number = 0
        self._listeners: list[asyncio.Server] = []
        self._of_node: Counter[int] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started_ns = 0
        self._latest_ms = start_ms
        #: Changes could not be kept: every request is refused until the broker has ended.
        self._has_failed = False
        self._has_stopped = False

    @property
    def started_us(self) -> int:
        """The time of the first event on the clock of `time.monotonic_ns`, in microseconds."""
        return self._started_ns // 1000

    def add_observer(self, observer: OnEvents) -> None:
        """From now on ``observer`` receives every event as well."""
        first = self._on_events

        def both(time_us: int, events: Sequence[Event]) -> None:
            first(time_us, events)
            observer(time_us, events)

        self._on_events = both

    async def start(self, host: str, port: int) -> Endpoint:
        """Listen; return the address of the first broker. If ``port`` is 0, every broker takes a free port;
        otherwise the brokers take consecutive ports from ``port`` on. Raises OSError.
        """
        self._loop = asyncio.get_running_loop()
        self._started_ns = time.monotonic_ns()
        cluster = self.broker.state.cluster
        try:
            for index, node in enumerate(cluster.nodes):
                endpoint = await self._listen(host, port + index if port else 0, node)
                cluster.ports[node] = endpoint.port
                self.endpoints.append(endpoint)
        except OSError:
            for listener in self._listeners:
                listener.close()
            raise
        if self.broker.loaded:
            self._on_events(0, self.broker.loaded)
        self.arm()
        self._sweep_idle()
        return self.endpoints[0]

    async def _listen(self, host: str, port: int, node: int) -> Endpoint:
        assert self._loop is not None
        listener = await self._loop.create_server(
            lambda: self._accept(node), host, port, reuse_address=True, backlog=BACKLOG
        )
        self._listeners.append(listener)
        bound: Any = listener.sockets[0].getsockname()
        return Endpoint(bound[0], bound[1])

    async def stop(self) -> None:
        """Close the listeners, answer every parked request, then close every connection."""
        self._has_stopped = True
        for timer in (self._timer, self._sweep):
            if timer is not None:
                timer.cancel()
        for listener in self._listeners:
            for one in listener.sockets:
                shut_down(one)
            listener.close()
        if self._loop is not None:
            self._carry_out(self.broker.stop(self._now_ms()))
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self.connections.values()):
            connection.close("the server stops")
        try:
            async with asyncio.timeout(GRACE_S):
                for listener in self._listeners:
                    await listener.wait_closed()
        except TimeoutError:
            for connection in list(self.connections.values()):
                connection.abort()

    def made(self, number: int, connection: Connection) -> None:
        """Count a new connection; close it if there are too many."""
        self.connections[number] = connection
        connection.used_at_s = self.now_s()
        self._of_node[connection.node] += 1
        most = self.broker.state.config.max_connections
        if self._of_node[connection.node] > most:
            connection.close(f"max.connections={most} are there")
        elif self.on_connection is not None:
            self.on_connection(connection)

    def now_s(self) -> float:
        """The clock that idle connections are measured with."""
        return time.monotonic()

    def call_later(self, delay_s: float, act: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_later(delay_s, act)

    def _sweep_idle(self) -> None:
        idle_ms = self.broker.state.config.connections_max_idle_ms
        if idle_ms < 0 or self._loop is None:
            return
        since_s = self.now_s() - idle_ms / 1000
        for connection in list(self.connections.values()):
            if connection.is_idle and connection.used_at_s < since_s:
                connection.close("connections.max.idle.ms are over")
        self._sweep = self._loop.call_later(min(idle_ms / 1000 + 0.01, SWEEP_S), self._sweep_idle)

    def received(self, number: int, peer: Peer, frame: bytes) -> None:
        """Serve a request of a client unless `intercept` takes it."""
        if self.intercept is None or not self.intercept(number, peer, frame):
            self.serve(number, peer, frame)

    def serve(self, number: int, peer: Peer, frame: bytes) -> None:
        """Carry out a request. The caller calls `arm` behind the last of the requests that came together."""
        now_ms = self._now_ms()
        if self._has_failed or not self._carry_out(self.broker.receive(number, peer, frame, now_ms)):
            # the broker ends: its state has changes that a restart forgets, and nobody may see them
            self._has_failed = True
            self._send(self.broker.refuse_unkept(number, peer, frame, now_ms))

    def apply(self, act: Callable[[Broker, int], BrokerEffects]) -> None:
        """Call the broker with the present time, between two requests, and carry out the effects."""
        self._carry_out(act(self.broker, self._now_ms()))
        self.arm()

    def lost(self, number: int) -> None:
        connection = self.connections.pop(number, None)
        if connection is not None:
            self._of_node[connection.node] -= 1
        self._carry_out(self.broker.forget(number, self._now_ms()))
        if not self._has_stopped:
            self.arm()  # what the client held is another one's now, until its locks end

    def _accept(self, node: int) -> Connection:
        self._next_number += 1
        return self._make_connection(self, self._next_number, node)

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._started_ns) // 1000  # a loop's own clock may tick in milliseconds

    def _now_ms(self, at_least_ms: int = 0) -> int:
        """The broker's time. It never goes back, even behind a timer that fired a moment too early."""
        self._latest_ms = max(self._latest_ms, at_least_ms, self._start_ms + self._now_us() // 1000)
        return self._latest_ms

    def _carry_out(self, effects: BrokerEffects) -> bool:
        """Send the outputs behind the changes; False: the changes could not be kept, and nothing is sent."""
        if effects.changes and self._on_changes is not None and not self._on_changes(effects.changes):
            return False
        if effects.events:
            self._on_events(self._now_us(), effects.events)
        self._send(effects)
        return True

    def _send(self, effects: BrokerEffects) -> None:
        for output in effects.outputs:
            connection = self.connections.get(output.connection)
            if connection is not None:
                connection.write(output)
                if len(effects.outputs) > 1:
                    connection.send()  # members receive their answers in the coordinator's order

    def arm(self) -> None:
        """Set the timer to the next deadline."""
        assert self._loop is not None
        deadline_ms = self.broker.next_deadline()
        if deadline_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timer_ms = deadline_ms
        if deadline_ms is not None:
            delay_s = ((deadline_ms - self._start_ms) * 1000 - self._now_us()) / 1_000_000
            least_s = 0 if self.broker.has_unfinished else TICK_S
            self._timer = self._loop.call_later(max(least_s, delay_s), self._fire, deadline_ms)

    def _fire(self, deadline_ms: int) -> None:
        self._timer = None
        self._timer_ms = None
        try:
            self._carry_out(self.broker.fire(self._now_ms(at_least_ms=deadline_ms)))
        finally:
            self.arm()

"""The asyncio shell around the broker: sockets, one timer, nothing that decides."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.addresses import java_address
from groupstorm.coordinator.server.broker import Answer, Broker, Peer, Step
from groupstorm.coordinator.server.changes import Change
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.coordinator.server.framing import FrameBuffer, FrameError

#: Is told of every event with the microseconds since the server started.
OnEvents = Callable[[int, Sequence[Event]], None]
#: Keeps what a step has changed; False where that was not possible: nobody is told of the step then.
OnChanges = Callable[[Sequence[Change]], bool]
#: Is told why a connection was closed by us.
OnClose = Callable[[str, str], None]
#: Makes a connection of a server, its number and the broker's id.
MakeConnection: TypeAlias = "Callable[[Server, int, int], Connection]"


#: Is asked before a request is served; True: it has taken it over and calls `Server.serve` or `Server.refuse`
#: some time, or closes the connection.
Intercept = Callable[[int, Peer, bytes], bool]


#: How long a stopping server waits for clients to take what was written for them.
GRACE_S = 1.0
#: How often, at most, idle connections are looked for.
SWEEP_S = 10.0
#: A timer waits so long at least: it comes behind the requests that have arrived, as in Kafka, whose timers
#: tick in milliseconds (SystemTimer) and queue up behind requests. uvloop would call it before it reads any.
TICK_S = 0.001
#: Answers to requests that came together leave together, as soon as they are so many bytes.
SEND_BYTES = 65_536
#: Clients that arrive together and wait to be accepted.
BACKLOG = 4096


class Connection(asyncio.Protocol):
    """One client. While a request of it is served nothing more is read from it, as Kafka mutes a channel.

    A muted connection's end is not seen before its request is answered, which is Kafka's way as well.
    """

    def __init__(self, server: Server, number: int, node: int) -> None:
        """``node``: the broker that the client has connected to."""
        self._server = server
        self._number = number
        self.node = node
        #: What it called itself in its last request, where somebody intercepts requests.
        self.client_id: str | None = None
        self.used_at_s = 0.0
        self._frames = FrameBuffer(server.broker.state.config.socket_request_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._peer = Peer("", Endpoint("", 0))
        self._in_flight = False
        self._can_write = True
        self._reading = True
        self._advancing = False
        self._paused = False
        self._held: Answer | None = None
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of that class
        remote: Any = transport.get_extra_info("peername")
        local: Any = transport.get_extra_info("sockname")
        self._peer = Peer(java_address(remote[0]), Endpoint(local[0], local[1]), self.node)
        self._keep_alive(transport)
        self._server.made(self._number, self)

    def _keep_alive(self, transport: asyncio.BaseTransport) -> None:
        """Hosts that are gone without a word are noticed in the end, as Kafka's sockets do."""
        connected: Any = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size() + self._unsent_bytes

    @property
    def is_idle(self) -> bool:
        """Nothing is asked, and nothing is on its way to the client."""
        return not self._in_flight and self._can_write and not self._paused

    def pause(self) -> None:
        """Read nothing and answer nothing until `resume`."""
        self._paused = True
        self._mute_or_unmute()

    def resume(self) -> None:
        self._paused = False
        held, self._held = self._held, None
        if held is not None:
            self.take(held)
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._server.lost(self._number)

    def data_received(self, data: bytes) -> None:
        self.used_at_s = self._server.now_s()
        self._frames.feed(data)
        self._advance()

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._advance()

    def take(self, answer: Answer) -> None:
        """The request in flight is answered."""
        if self._transport is None:
            return
        if self._paused:
            self._held = answer
            return
        if answer.payload is not None:
            self._unsent.append(answer.payload)
            self._unsent_bytes += len(answer.payload)
            if not self._advancing or self._unsent_bytes >= SEND_BYTES:
                self.send()
        if answer.close is not None:
            self.close(answer.close)
            return
        self._in_flight = False
        if self._advancing:
            return
        self.used_at_s = self._server.now_s()
        if not self._reading or len(self._frames):
            # not here and now: a round that completes answers thousands, and each may have sent more
            asyncio.get_running_loop().call_soon(self._advance)

    def send(self) -> None:
        """What was taken while requests were served."""
        unsent, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if unsent and self._transport is not None:
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def close(self, why: str) -> None:
        if self._transport is not None:
            self._server.on_close(self._peer.host, why)
            self.send()
            self._transport.close()

    def abort(self) -> None:
        """Close without sending what is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _advance(self) -> None:
        self._advancing = True
        try:
            self._serve_frames()
        finally:
            self._advancing = False
            self.send()
            self._server.arm()
        self._mute_or_unmute()

    def _serve_frames(self) -> None:
        while self._transport is not None and not self._transport.is_closing():
            if self._in_flight or not self._can_write or self._paused:
                break
            try:
                frame = self._frames.next_frame()
            except FrameError as problem:
                self.close(str(problem))
                break
            if frame is None:
                break
            self._in_flight = True
            self._hear(frame)

    def _hear(self, frame: bytes) -> None:
        self._server.received(self._number, self._peer, frame)

    def _mute_or_unmute(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        wanted = not self._in_flight and self._can_write and not self._paused
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif self._reading and not wanted:
            self._transport.pause_reading()
        self._reading = wanted


class Server:
    """Listening brokers. One timer stands for all deadlines, another one closes what is idle."""

    def __init__(
        self,
        broker: Broker,
        on_events: OnEvents,
        on_close: OnClose,
        on_changes: OnChanges | None = None,
        start_ms: int = 0,
        make_connection: MakeConnection = Connection,
    ) -> None:
        """``on_changes`` keeps what a step has changed, before anybody is told; ``start_ms``: the broker's
        time when it starts, milliseconds since 1970 where that matters; ``make_connection``: what clients
        have to do, see `security.connection`."""
        self.broker = broker
        self.on_close = on_close
        self.connections: dict[int, Connection] = {}
        self.endpoints: list[Endpoint] = []
        self.intercept: Intercept | None = None
        #: Ids of the brokers that read and answer nothing.
        self.paused: set[int] = set()
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

    def tell_also(self, observer: OnEvents) -> None:
        """From now on ``observer`` is told of every event as well."""
        first = self._on_events

        def both(time_us: int, events: Sequence[Event]) -> None:
            first(time_us, events)
            observer(time_us, events)

        self._on_events = both

    async def start(self, host: str, port: int) -> Endpoint:
        """Listen; gives the address of the first broker, with the port that was free if ``port`` is 0.

        Further brokers have the ports behind it, or free ones. Raises OSError.
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
        """Close the listeners, answer what is parked, and close every connection when it has its answer."""
        for timer in (self._timer, self._sweep):
            if timer is not None:
                timer.cancel()
        for listener in self._listeners:
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

    def move_coordinator(self, group: str, node: int | None = None) -> None:
        """See `Broker.move_coordinator`."""
        self._carry_out(self.broker.move_coordinator(group, node, self._now_ms()))
        self.arm()

    def expire_session(self, group: str, member_id: str) -> None:
        """See `Broker.expire_session`."""
        self._carry_out(self.broker.expire_session(group, member_id, self._now_ms()))
        self.arm()

    def pause(self, node: int) -> None:
        """This broker accepts connections, reads nothing and answers nothing until `resume`. Time goes on."""
        self.paused.add(node)
        for connection in self._of(node):
            connection.pause()

    def resume(self, node: int) -> None:
        """It reads and answers again, what it owes first."""
        self.paused.discard(node)
        for connection in self._of(node):
            connection.resume()

    def _of(self, node: int) -> list[Connection]:
        return [connection for connection in self.connections.values() if connection.node == node]

    def move_every_coordinator(self) -> None:
        """See `Broker.move_every_coordinator`."""
        for step in self.broker.move_every_coordinator(self._now_ms()):
            self._carry_out(step)
        self.arm()

    def made(self, number: int, connection: Connection) -> None:
        """A client has connected; there may be too many of them."""
        self.connections[number] = connection
        connection.used_at_s = self.now_s()
        self._of_node[connection.node] += 1
        most = self.broker.state.config.max_connections
        if self._of_node[connection.node] > most:
            connection.close(f"max.connections={most} are there")
        elif connection.node in self.paused:
            connection.pause()

    def now_s(self) -> float:
        """For measuring how long a connection has been idle."""
        return time.monotonic()

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
        """Take a request from a client; a fault may take it first."""
        if self.intercept is None or not self.intercept(number, peer, frame):
            self.serve(number, peer, frame)

    def serve(self, number: int, peer: Peer, frame: bytes) -> None:
        """Carry out a request. Whoever hands over the last one of those that came together calls `arm`."""
        self._carry_out(self.broker.receive(number, peer, frame, self._now_ms()))

    def refuse(self, number: int, peer: Peer, frame: bytes, error: Error) -> None:
        """Answer a request with an error instead."""
        self._carry_out(self.broker.refuse(number, peer, frame, error, self._now_ms()))

    def lost(self, number: int) -> None:
        connection = self.connections.pop(number, None)
        if connection is not None:
            self._of_node[connection.node] -= 1
        self.broker.forget(number)

    def _accept(self, node: int) -> Connection:
        self._next_number += 1
        return self._make_connection(self, self._next_number, node)

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._started_ns) // 1000  # a loop's own clock may tick in milliseconds

    def _now_ms(self, at_least_ms: int = 0) -> int:
        """The broker's time, which never goes back, even behind a timer that came a moment too early."""
        self._latest_ms = max(self._latest_ms, at_least_ms, self._start_ms + self._now_us() // 1000)
        return self._latest_ms

    def _carry_out(self, step: Step) -> None:
        if step.changes and self._on_changes is not None and not self._on_changes(step.changes):
            return
        if step.events:
            self._on_events(self._now_us(), step.events)
        for answer in step.answers:
            connection = self.connections.get(answer.connection)
            if connection is not None:
                connection.take(answer)
                if len(step.answers) > 1:
                    connection.send()  # members hear of a round in the coordinator's order

    def arm(self) -> None:
        """Set the timer to what is due next."""
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
            self._timer = self._loop.call_later(max(TICK_S, delay_s), self._fire, deadline_ms)

    def _fire(self, deadline_ms: int) -> None:
        self._timer = None
        self._timer_ms = None
        try:
            self._carry_out(self.broker.fire(self._now_ms(at_least_ms=deadline_ms)))
        finally:
            self.arm()

"""A process's connection to the coordinator: latencies, muting, time-outs, loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.messages import Request, Response
from groupstorm.storms.randomness import Stream

if TYPE_CHECKING:
    from groupstorm.storms.consumer import VirtualConsumer
    from groupstorm.storms.world import World

OnResult = Callable[[Response | Disconnected], None]

_DISCONNECTED = Disconnected()


class Exchange:
    """One request on its way, and its answer; the coordinator keeps it as its token.

    Its answer goes to ``on_result`` or, where that is None, to the step of the process that waits for it.
    """

    __slots__ = (
        "_answer_draw",
        "connection",
        "done",
        "due_us",
        "epoch",
        "on_result",
        "request",
        "response",
        "step",
        "timeout_ms",
    )

    def __init__(
        self,
        connection: Connection,
        request: Request,
        timeout_ms: int,
        on_result: OnResult | None,
        step: int,
        answer_draw: int,
    ) -> None:
        self.connection = connection
        self.request = request
        self.timeout_ms = timeout_ms
        self.on_result = on_result
        self.step = step
        self.epoch = connection.epoch
        self.done = False
        self.response: Response | Disconnected = _DISCONNECTED
        #: Until when the client waits for the answer.
        self.due_us = connection.world.clock.now_us + timeout_ms * 1000
        self._answer_draw = answer_draw

    def arrive(self) -> None:
        """The request has come to the coordinator, unless it was lost with its connection."""
        connection = self.connection
        if self.epoch != connection.epoch:
            return
        if connection.parked is None:
            connection.handle(self)
        else:
            connection.read_later(self)
        if not self.done:
            connection.world.watch(self)

    def answered(self, response: Response) -> None:
        """The coordinator has answered: the answer is under way, and the next request is read."""
        self.done = True
        connection = self.connection
        if self.epoch == connection.epoch:
            self.response = response
            world = connection.world
            world.clock.at(world.answer_leaves_us() + world.latency.at(self._answer_draw), self.deliver)
        if connection.parked is self:
            connection.read_on()

    def deliver(self) -> None:
        """The answer has come to the client, which may have given up before."""
        in_flight = self.connection.in_flight
        if self in in_flight:
            in_flight.remove(self)
            self.end()

    def end(self) -> None:
        """Tell whoever waits for it."""
        if self.on_result is None:
            self.connection.consumer.completed(self.step, self.response)
        else:
            self.on_result(self.response)


class Connection:
    """Kafka serves one connection's requests one by one: a parked JoinGroup or SyncGroup mutes it."""

    __slots__ = (
        "_exchanges",
        "_latencies",
        "_unread",
        "broken_until_us",
        "consumer",
        "epoch",
        "in_flight",
        "parked",
        "world",
    )

    def __init__(self, world: World, consumer: VirtualConsumer, incarnation: int) -> None:
        self.world = world
        self.consumer = consumer
        self.epoch = 0
        self.parked: Exchange | None = None
        #: Sent and not answered, in the order of sending.
        self.in_flight: list[Exchange] = []
        self.broken_until_us = 0
        self._unread: list[Exchange] = []
        self._latencies = Stream(world.seed, "net", consumer.name, incarnation)
        self._exchanges = 0

    @property
    def broken(self) -> bool:
        return self.world.clock.now_us < self.broken_until_us

    def heartbeat_latency_us(self, sent_us: int) -> int:
        """The way to the coordinator of a request sent at a fixed interval: by its time alone."""
        return self.world.latency.at(self._latencies.at(2 * sent_us))

    def heartbeat_answer_latency_us(self, sent_us: int) -> int:
        return self.world.latency.at(self._latencies.at(2 * sent_us + 1))

    def _draws(self) -> tuple[int, int]:
        """For the way of a request and the way of its answer."""
        # Negative: disjoint from the indexes of the heartbeats, so that these do not change them.
        self._exchanges += 1
        return self._latencies.pair(-self._exchanges)

    def send(
        self, request: Request, timeout_ms: int, on_result: OnResult | None = None, step: int = 0
    ) -> None:
        """Send; ``on_result``, or else the process's ``step``, gets the response, or `Disconnected` if
        connection or patience is lost."""
        world = self.world
        clock = world.clock
        now_us = clock.now_us
        if now_us < self.broken_until_us:
            clock.at(now_us, Exchange(self, request, timeout_ms, on_result, step, 0).end)
            return
        request_draw, answer_draw = self._draws()
        exchange = Exchange(self, request, timeout_ms, on_result, step, answer_draw)
        self.in_flight.append(exchange)
        clock.at(now_us + world.latency.at(request_draw), exchange.arrive)

    def find_coordinator(self, on_found: Callable[[], None]) -> None:
        """A round trip to any broker, once there is a way to one."""
        clock, latency = self.world.clock, self.world.latency
        self.world.count("FindCoordinator", None, 1)
        reachable_us = max(clock.now_us, self.broken_until_us)
        there, back = self._draws()
        clock.at(reachable_us + latency.at(there) + latency.at(back), on_found)

    def handle(self, exchange: Exchange) -> None:
        self.parked = exchange
        self.world.handle(exchange.request, exchange)

    def read_later(self, exchange: Exchange) -> None:
        """A parked request mutes the connection."""
        self._unread.append(exchange)

    def read_on(self) -> None:
        """The request that muted the connection has been answered."""
        self.parked = None
        while self._unread and self.parked is None:
            self.handle(self._unread.pop(0))

    def timed_out(self, exchange: Exchange) -> None:
        """request.timeout.ms has passed since it was sent: the client closes the connection; the broker
        does not notice."""
        if exchange in self.in_flight:
            self._abandon()

    def break_for(self, duration_us: int) -> None:
        """Nothing passes for ``duration_us``; what is under way is lost."""
        self.broken_until_us = self.world.clock.now_us + duration_us
        self._abandon()

    def _abandon(self) -> None:
        """A connection is over: whoever waits is told; a request that is parked stays parked."""
        self.epoch += 1
        self.parked = None
        self._unread.clear()
        waiting, self.in_flight = self.in_flight, []
        for exchange in waiting:
            exchange.response = _DISCONNECTED
            self.world.clock.after(0, exchange.end)

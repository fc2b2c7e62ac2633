"""A process's connection to the coordinator: latencies, muting, time-outs, loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.messages import Request, Response
from groupstorm.storms.randomness import Stream

if TYPE_CHECKING:
    from groupstorm.storms.consumer import VirtualConsumer
    from groupstorm.storms.world import World

OnResult = Callable[[Response | Disconnected], None]


class Exchange:
    """One request on its way; the coordinator keeps it as its token."""

    __slots__ = ("answer_draw", "connection", "done", "epoch", "on_result", "request", "sent_us")

    def __init__(
        self, connection: Connection, request: Request, on_result: OnResult, sent_us: int, answer_draw: int
    ) -> None:
        self.connection = connection
        self.request = request
        self.on_result = on_result
        self.epoch = connection.epoch
        self.sent_us = sent_us
        self.answer_draw = answer_draw
        self.done = False


class Connection:
    """Kafka serves one connection's requests one by one: a parked JoinGroup or SyncGroup mutes it."""

    __slots__ = (
        "_exchanges",
        "_in_flight",
        "_latencies",
        "_queue",
        "broken_until_us",
        "consumer",
        "epoch",
        "parked",
        "world",
    )

    def __init__(self, world: World, consumer: VirtualConsumer, incarnation: int) -> None:
        self.world = world
        self.consumer = consumer
        self.epoch = 0
        self.parked: Exchange | None = None
        self._queue: deque[Exchange] = deque()
        self._in_flight: dict[Exchange, None] = {}  # in the order of sending
        self.broken_until_us = 0
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

    def send(self, request: Request, timeout_ms: int, on_result: OnResult) -> None:
        """Send; ``on_result`` gets the response, or `Disconnected` if connection or patience is lost."""
        world = self.world
        clock, now_us = world.clock, world.clock.now_us
        if now_us < self.broken_until_us:
            clock.after(0, on_result, Disconnected())
            return
        request_draw, answer_draw = self._draws()
        exchange = Exchange(self, request, on_result, now_us, answer_draw)
        self._in_flight[exchange] = None
        clock.at(now_us + world.latency.at(request_draw), self._arrive, exchange, timeout_ms)

    def find_coordinator(self, on_found: Callable[[], None]) -> None:
        """A round trip to any broker, once there is a way to one."""
        clock, latency = self.world.clock, self.world.latency
        self.world.count("FindCoordinator", None, 1)
        reachable_us = max(clock.now_us, self.broken_until_us)
        there, back = self._draws()
        clock.at(reachable_us + latency.at(there) + latency.at(back), on_found)

    def _arrive(self, exchange: Exchange, timeout_ms: int) -> None:
        if exchange.epoch != self.epoch:
            return  # lost with the connection
        if self.parked is None:
            self._handle(exchange)
        else:
            self._queue.append(exchange)
        if not exchange.done:
            self.world.watch(exchange, timeout_ms)

    def _handle(self, exchange: Exchange) -> None:
        self.parked = exchange
        self.world.handle(exchange.request, exchange)

    def answered(self, exchange: Exchange, response: Response) -> None:
        """The coordinator has answered: the answer is under way, and the next request is read."""
        exchange.done = True
        if exchange.epoch == self.epoch:
            world = self.world
            answer_us = world.answer_leaves_us() + world.latency.at(exchange.answer_draw)
            world.clock.at(answer_us, self._deliver, exchange, response)
        if self.parked is exchange:
            self.parked = None
            while self._queue and self.parked is None:
                self._handle(self._queue.popleft())

    def _deliver(self, exchange: Exchange, response: Response) -> None:
        if exchange in self._in_flight:
            del self._in_flight[exchange]
            exchange.on_result(response)

    def timed_out(self, exchange: Exchange) -> None:
        """request.timeout.ms has passed since it was sent: the client closes the connection; the broker
        does not notice."""
        if exchange in self._in_flight:
            self._abandon()

    def break_for(self, duration_us: int) -> None:
        """Nothing passes for ``duration_us``; what is under way is lost."""
        self.broken_until_us = self.world.clock.now_us + duration_us
        self._abandon()

    def _abandon(self) -> None:
        """A connection is over: whoever waits is told; a request that is parked stays parked."""
        self.epoch += 1
        self.parked = None
        self._queue.clear()
        waiting = tuple(self._in_flight)
        self._in_flight.clear()
        for exchange in waiting:
            self.world.clock.after(0, exchange.on_result, Disconnected())

"""A process's connection to the coordinator: latencies, muting, time-outs, loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.messages import Request, Response
from groupstorm.storms.randomness import Stream

if TYPE_CHECKING:
    from groupstorm.storms.consumer import VirtualConsumer
    from groupstorm.storms.patience import Patience
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
        "epoch",
        "on_result",
        "patience",
        "request",
        "response",
        "sent_us",
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
        sent_us: int,
    ) -> None:
        self.connection = connection
        self.request = request
        self.timeout_ms = timeout_ms
        self.on_result = on_result
        self.step = step
        self.epoch = connection.epoch
        self.done = False
        #: Where it waits while it has no answer.
        self.patience: Patience | None = None
        self.response: Response | Disconnected = _DISCONNECTED
        self.sent_us = sent_us
        self._answer_draw = answer_draw

    def arrive(self) -> None:
        """The request has come to the coordinator, unless it was lost with its connection."""
        connection = self.connection
        if self.epoch != connection.epoch:
            return
        if connection.parked is None:
            connection.parked = self
            connection.world.handle(self.request, self)
        else:
            connection.unread.append(self)
        if not self.done:
            self.patience = patience = connection.world.patience(self.timeout_ms)
            patience.begin(self)

    def answered(self, response: Response) -> None:
        """The coordinator has answered: the answer is under way, and the next request is read."""
        self.done = True
        if self.patience is not None:
            self.patience.forget_answered()
        connection = self.connection
        if self.epoch == connection.epoch:
            self.response = response
            world = connection.world
            world.clock.at(world.answer_leaves_us() + world.latency.at(self._answer_draw), self.deliver)
        if connection.parked is self:
            connection.parked = None
            if connection.unread:
                connection.read_on()

    def deliver(self) -> None:
        """The answer has come to the client, which may have given up before."""
        connection = self.connection
        in_flight = connection.in_flight
        if self in in_flight:
            in_flight.remove(self)
            if self.on_result is None:
                connection.consumer.completed(self.step, self.response)
            else:
                self.on_result(self.response)

    def fail(self) -> None:
        """There will be no answer: tell whoever waits for it."""
        if self.on_result is None:
            self.connection.consumer.completed(self.step, _DISCONNECTED)
        else:
            self.on_result(_DISCONNECTED)


class Connection:
    """Kafka serves one connection's requests one by one: a parked JoinGroup or SyncGroup mutes it."""

    __slots__ = (
        "_exchanges",
        "_latencies",
        "broken_until_us",
        "consumer",
        "epoch",
        "in_flight",
        "parked",
        "unread",
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
        #: What has arrived behind a parked request, which mutes the connection.
        self.unread: list[Exchange] = []
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
            clock.at(now_us, Exchange(self, request, timeout_ms, on_result, step, 0, now_us).fail)
            return
        request_draw, answer_draw = self._draws()
        exchange = Exchange(self, request, timeout_ms, on_result, step, answer_draw, now_us)
        self.in_flight.append(exchange)
        clock.at(now_us + world.latency.at(request_draw), exchange.arrive)

    def find_coordinator(self, on_found: Callable[[], None]) -> None:
        """A round trip to any broker, once there is a way to one."""
        clock, latency = self.world.clock, self.world.latency
        self.world.count(("FindCoordinator", None), 1)
        reachable_us = max(clock.now_us, self.broken_until_us)
        there, back = self._draws()
        clock.at(reachable_us + latency.at(there) + latency.at(back), on_found)

    def read_on(self) -> None:
        """The request that muted the connection has been answered."""
        while self.unread and self.parked is None:
            self.parked = exchange = self.unread.pop(0)
            self.world.handle(exchange.request, exchange)

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
        self.unread.clear()
        waiting, self.in_flight = self.in_flight, []
        for exchange in waiting:
            self.world.clock.after(0, exchange.fail)

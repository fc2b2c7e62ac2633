"""A process's connection to the coordinator: latencies, muting, timeouts, loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse, Request, Response
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse
from groupstorm.storms.scenario.randomness import Distribution, Stream
from groupstorm.storms.world.broker import VirtualBroker
from groupstorm.storms.world.clock import ClientClock, Clock, Kind, order_of

OnResult = Callable[[Response | Disconnected], None]

_DISCONNECTED = Disconnected()

_HEARTBEATS: Final = (ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse)


class Network:
    """The parts that all connections of a run share: the broker, the latency of one way, timeouts."""

    def __init__(self, clock: Clock, broker: VirtualBroker, latency: Distribution, seed: int) -> None:
        self.clock = clock
        self.broker = broker
        self.latency = latency
        self.seed = seed
        #: Nobody reaches a coordinator before.
        self.down_until_us = 0
        self._timeouts: dict[int, RequestTimeouts] = {}

    def request_timeouts(self, timeout_us: int) -> RequestTimeouts:
        """The requests of all processes that wait so long for a response."""
        timeouts = self._timeouts.get(timeout_us)
        if timeouts is None:
            timeouts = self._timeouts[timeout_us] = RequestTimeouts(self.clock, timeout_us)
        return timeouts


class RequestInFlight:
    """One request on its way to the coordinator, and its response on the way back.

    ``on_result`` gets the response. If it is None, the step of the process that waits for the response does.
    """

    __slots__ = (
        "_response_draw",
        "answered",
        "connection",
        "epoch",
        "on_result",
        "request",
        "response",
        "sent_us",
        "step",
        "timeout_us",
        "timeouts",
    )

    def __init__(
        self,
        connection: VirtualConnection,
        request: Request,
        timeout_us: int,
        on_result: OnResult | None,
        step: int,
        response_draw: int,
        sent_us: int,
    ) -> None:
        self.connection = connection
        self.request = request
        self.timeout_us = timeout_us
        self.on_result = on_result
        self.step = step
        self.epoch = connection.epoch
        self.answered = False
        #: Where the request waits as long as it has no response.
        self.timeouts: RequestTimeouts | None = None
        self.response: Response | Disconnected = _DISCONNECTED
        self.sent_us = sent_us
        self._response_draw = response_draw

    def arrive(self) -> None:
        """The request has come to the coordinator, unless it was lost with its connection."""
        connection = self.connection
        if self.epoch != connection.epoch:
            return
        if connection.parked is None:
            connection.parked = self
            connection.broker.handle(self.request, self.respond)
        else:
            connection.unread.append(self)
        if not self.answered:
            self.timeouts = timeouts = connection.network.request_timeouts(self.timeout_us)
            timeouts.add(self)

    def respond(self, response: Response) -> None:
        """The coordinator has answered: its response is under way, and it reads the next request."""
        self.answered = True
        if self.timeouts is not None:
            self.timeouts.release_answered()
        connection = self.connection
        if self.epoch == connection.epoch:
            self.response = response
            leaves_us = self._leaves_us(response)
            if connection.no_responses_until_us > leaves_us:
                leaves_us = connection.no_responses_until_us
                if (late_us := self.sent_us + self.timeout_us) < leaves_us:
                    connection.clock.at(max(late_us, connection.clock.now_us), self.time_out)
            due_us = leaves_us + connection.latency.at(self._response_draw)
            if not isinstance(response, _HEARTBEATS):
                connection.responses_until_us = due_us = max(due_us, connection.responses_until_us)
            connection.clock.in_order(due_us, connection.response_order, self.deliver)
        if connection.parked is self:
            connection.parked = None
            if connection.unread:
                connection.read_on()

    def _leaves_us(self, response: Response) -> int:
        """A heartbeat that brings nothing does not keep the coordinator busy: most of them are computed."""
        if not isinstance(response, _HEARTBEATS):
            return self.connection.broker.response_leaves_us()
        if response.error or response.assignment:
            return self.connection.broker.response_leaves_us()
        return self.connection.clock.now_us

    def deliver(self) -> None:
        """The response has come to the client, which may have given up before."""
        connection = self.connection
        in_flight = connection.in_flight
        if self in in_flight:
            in_flight.remove(self)
            if self.on_result is None:
                connection.complete_step(self.step, self.response)
            else:
                self.on_result(self.response)

    def fail(self) -> None:
        """There will be no response: the step or ``on_result`` gets `Disconnected`."""
        if self.on_result is None:
            self.connection.complete_step(self.step, _DISCONNECTED)
        else:
            self.on_result(_DISCONNECTED)

    def time_out(self) -> None:
        """request.timeout.ms has passed since the request was sent: the client closes the connection; the
        broker does not notice."""
        if self in self.connection.in_flight:
            self.connection.abandon()


class VirtualConnection:
    """Kafka serves one connection's requests one by one: a parked JoinGroup or SyncGroup mutes it.

    ``index``, ``name`` and ``incarnation`` are the process's; ``complete_step`` gets the results of its
    steps.
    """

    def __init__(
        self,
        network: Network,
        index: int,
        name: str,
        incarnation: int,
        complete_step: Callable[[int, Response | Disconnected], None],
        client_clock: ClientClock,
    ) -> None:
        self.network = network
        self.broker = network.broker
        self.clock = network.clock
        self.latency = network.latency
        self.complete_step = complete_step
        self.index = index
        self.request_order = order_of(Kind.REQUEST_ARRIVES, index)
        self.response_order = order_of(Kind.RESPONSE_ARRIVES, index)
        #: The number of times that the connection was lost; a request of an earlier epoch is lost, too.
        self.epoch = 0
        self.parked: RequestInFlight | None = None
        #: Sent and not answered, in the order of sending.
        self.in_flight: list[RequestInFlight] = []
        self.broken_until_us = network.down_until_us
        #: The number of times that it was lost otherwise than by the client: periodic requests under way
        #: never arrive.
        self.losses = 0
        #: The network swallows the bytes of one side until then: TCP sends them again at that time.
        self.no_requests_until_us = self.no_responses_until_us = 0
        #: When the last one arrives that is under way: TCP keeps the order, and no later one comes before.
        #: Periodic requests, which may be computed, count only when their series has ended.
        self.requests_until_us = self.responses_until_us = 0
        #: Requests that have arrived behind a parked one, which mutes the connection.
        self.unread: list[RequestInFlight] = []
        self._latencies = Stream(network.seed, "net", name, incarnation)
        #: The requests whose draws lie at negative indexes: disjoint from those of the periodic requests,
        #: which may be computed, so that these change no others.
        self._sent = 0
        self._client_clock = client_clock

    @property
    def broken(self) -> bool:
        return self.clock.now_us < self.broken_until_us

    @property
    def passes(self) -> bool:
        """Whether requests and responses get through."""
        blocked_until_us = max(self.no_requests_until_us, self.no_responses_until_us)
        return not self.broken and self.clock.now_us >= blocked_until_us

    def response_passes_us(self, sent_us: int) -> int:
        """When a response that is sent at ``sent_us`` sets out, if the network lets it pass."""
        return max(sent_us, self.no_responses_until_us)

    def _draws_at(self, sent_us: int) -> tuple[int, int]:
        """For both ways of a request that is sent at a fixed interval."""
        return self._latencies.at(2 * sent_us), self._latencies.at(2 * sent_us + 1)

    def periodic_latency_us(self, sent_us: int) -> int:
        """The way to the coordinator of a request that is sent at a fixed interval: by its time alone."""
        return self.latency.at(self._latencies.at(2 * sent_us))

    def periodic_response_latency_us(self, sent_us: int) -> int:
        """The way back of the response to such a request."""
        return self.latency.at(self._latencies.at(2 * sent_us + 1))

    def send(
        self,
        request: Request,
        timeout_ms: int,
        on_result: OnResult | None = None,
        step: int = 0,
        periodic: bool = False,
    ) -> None:
        """Send; ``on_result``, or else the process's ``step``, gets the response, or `Disconnected` if the
        connection is lost or the request times out. ``periodic``: its latencies depend on the time alone."""
        clock = self.clock
        now_us = clock.now_us
        if now_us < self.broken_until_us:
            clock.at(now_us, RequestInFlight(self, request, 0, on_result, step, 0, now_us).fail)
            return
        if periodic:
            request_draw, response_draw = self._draws_at(now_us)
        else:
            self._sent += 1
            request_draw, response_draw = self._latencies.pair(-self._sent)
        timeout_us = self._client_clock.timer_us(timeout_ms)
        sent = RequestInFlight(self, request, timeout_us, on_result, step, response_draw, now_us)
        self.in_flight.append(sent)
        leaves_us = now_us
        if self.no_requests_until_us > now_us:
            leaves_us = self.no_requests_until_us
            if (late_us := now_us + timeout_us) < leaves_us:
                clock.at(late_us, sent.time_out)
        arrives_us = leaves_us + self.latency.at(request_draw)
        if not periodic:
            self.requests_until_us = arrives_us = max(arrives_us, self.requests_until_us)
        clock.in_order(arrives_us, self.request_order, sent.arrive)

    def overtake(
        self, request: Request, sent_us: int, timeout_ms: int, on_result: OnResult, response: Response | None
    ) -> None:
        """A periodic request was sent at ``sent_us``, and only computed until now: it is under way, or its
        ``response`` is."""
        request_draw, response_draw = self._draws_at(sent_us)
        timeout_us = self._client_clock.timer_us(timeout_ms)
        sent = RequestInFlight(self, request, timeout_us, on_result, 0, response_draw, sent_us)
        self.in_flight.append(sent)
        due_us = sent_us + self.latency.at(request_draw)
        if response is None:
            self.clock.in_order(due_us, self.request_order, sent.arrive)
        else:
            sent.response = response
            self.clock.in_order(due_us + self.latency.at(response_draw), self.response_order, sent.deliver)

    def find_coordinator(self, on_found: Callable[[], None]) -> None:
        """A round trip to any broker, once there is a way to one."""
        clock, latency = self.clock, self.latency
        self.broker.count(("FindCoordinator", None), 1)
        reachable_us = max(
            clock.now_us, self.broken_until_us, self.no_requests_until_us, self.no_responses_until_us
        )
        self._sent += 1
        there, back = self._latencies.pair(-self._sent)
        clock.at(reachable_us + latency.at(there) + latency.at(back), on_found)

    def read_on(self) -> None:
        """The request that muted the connection has been answered: the broker reads the ones behind it."""
        while self.unread and self.parked is None:
            self.parked = request = self.unread.pop(0)
            self.broker.handle(request.request, request.respond)

    def break_for(self, duration_us: int) -> None:
        """Nothing passes for ``duration_us``; requests and responses under way are lost.

        A shorter loss within a longer one does not end that.
        """
        self.broken_until_us = max(self.broken_until_us, self.clock.now_us + duration_us)
        self.losses += 1
        self.abandon()

    def abandon(self) -> None:
        """The client closes the connection: all its requests fail; a parked request stays parked."""
        self.epoch += 1
        self.requests_until_us = self.responses_until_us = 0
        self.parked = None
        self.unread.clear()
        waiting, self.in_flight = self.in_flight, []
        for request in waiting:
            self.clock.after(0, request.fail)


class RequestTimeouts:
    """Requests whose senders wait ``timeout_us`` for a response, in the order of their arrival.

    One scheduled check of the first request stands for all: most are answered long before.
    """

    def __init__(self, clock: Clock, timeout_us: int) -> None:
        self._clock = clock
        self._timeout_us = timeout_us
        self._waiting: deque[RequestInFlight] = deque()
        self._check_scheduled = False

    def add(self, request: RequestInFlight) -> None:
        """The request has arrived, and there is no response yet."""
        self._waiting.append(request)
        if not self._check_scheduled:
            self._schedule_check(request)

    def release_answered(self) -> None:
        """Release answered requests from the front of the queue."""
        waiting = self._waiting
        while waiting and waiting[0].answered:
            waiting.popleft()

    def _schedule_check(self, first: RequestInFlight) -> None:
        self._check_scheduled = True
        self._clock.at(max(first.sent_us + self._timeout_us, self._clock.now_us), self._check)

    def _check(self) -> None:
        self._check_scheduled = False
        self.release_answered()
        while self._waiting:
            first = self._waiting[0]
            if first.sent_us + self._timeout_us > self._clock.now_us:
                self._schedule_check(first)
                return
            self._waiting.popleft()
            first.time_out()
            self.release_answered()

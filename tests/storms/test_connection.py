"""A connection by itself: a broker that answers when the test says so, and one millisecond each way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse, Request, Response
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.broker import VirtualBroker
from groupstorm.storms.world.client_timers import ClientTimers
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.connection import Network, VirtualConnection
from groupstorm.storms.world.request_timeouts import RequestTimeouts

MS = 1_000
TIMEOUT_MS = 30_000
ANSWER = HeartbeatResponse(NO_ERROR)


class Broker:
    """Keeps what arrived, with its time; `answer` responds to a request."""

    def __init__(self, clock: Clock, service_us: int = 0) -> None:
        self.arrived: list[tuple[int, str]] = []
        self.counted: list[tuple[tuple[str, str | None], int]] = []
        self._clock = clock
        self._service_us = service_us
        self._respond: dict[str, Callable[[Response], None]] = {}

    def handle(self, request: Request, respond: Callable[[Response], None]) -> None:
        assert isinstance(request, Heartbeat)
        self.arrived.append((self._clock.now_us, request.member_id))
        self._respond[request.member_id] = respond

    def response_leaves_us(self) -> int:
        return self._clock.now_us + self._service_us

    def count(self, response: tuple[str, str | None], number: int) -> None:
        self.counted.append((response, number))

    def answer(self, name: str, response: Response = ANSWER) -> None:
        self._respond[name](response)


class Wire:
    """One connection; ``results`` are the steps that were completed, with time and result."""

    def __init__(self, latency: Any = 1, service_us: int = 0, name: str = "m", incarnation: int = 1) -> None:
        self.clock = Clock()
        self.broker = Broker(self.clock, service_us)
        way = distributions.parse("net_latency_ms", latency)
        self.network = Network(self.clock, cast(VirtualBroker, self.broker), way, 1)
        self.results: list[tuple[int, int | str, Any]] = []
        self.connection = VirtualConnection(self.network, name, incarnation, self._completed, ClientTimers(0))

    def _completed(self, step: int, result: Response | Disconnected) -> None:
        self.results.append((self.clock.now_us, step, result))

    def send(self, name: str, step: int = 0, timeout_ms: int = TIMEOUT_MS) -> None:
        self.connection.send(Heartbeat("g", name, None, 1, 4), timeout_ms, None, step)

    def send_with_receiver(self, name: str) -> None:
        def receive(result: Response | Disconnected) -> None:
            self.results.append((self.clock.now_us, name, result))

        self.connection.send(Heartbeat("g", name, None, 1, 4), TIMEOUT_MS, receive)

    def muted(self) -> bool:
        return self.connection.parked is not None

    def broken(self) -> bool:
        return self.connection.broken

    def until(self, ms: float) -> None:
        """Everything that is due by then."""
        end_us = int(ms * MS)
        self.clock.limit_us = end_us + 1
        self.clock.run()
        self.clock.advance_to(end_us)


def test_a_request_arrives_after_one_way_and_its_response_after_another() -> None:
    wire = Wire(service_us=100)
    wire.send("a", step=7)
    wire.until(5)
    assert wire.broker.arrived == [(1 * MS, "a")]
    wire.broker.answer("a")
    wire.until(10)
    assert wire.results == [(5 * MS + 100 + 1 * MS, 7, ANSWER)]
    assert wire.connection.in_flight == []
    assert not wire.muted()


def test_a_receiver_gets_the_response_in_place_of_the_step() -> None:
    wire = Wire()
    wire.send_with_receiver("a")
    wire.until(1)
    wire.broker.answer("a")
    wire.until(2)
    assert wire.results == [(2 * MS, "a", ANSWER)]


def test_the_broker_reads_one_request_of_a_connection_at_a_time_in_their_order() -> None:
    wire = Wire()
    for name in ("a", "b", "c"):
        wire.send(name)
    wire.until(10)
    assert wire.broker.arrived == [(1 * MS, "a")]
    assert wire.muted()
    wire.broker.answer("a")
    assert wire.broker.arrived == [(1 * MS, "a"), (10 * MS, "b")]
    wire.until(20)
    wire.broker.answer("b")
    wire.broker.answer("c")
    assert wire.broker.arrived[2:] == [(20 * MS, "c")]
    assert not wire.muted()
    wire.until(30)
    assert [at_us for at_us, _, _ in wire.results] == [11 * MS, 21 * MS, 21 * MS]


def test_what_the_broker_has_not_read_is_lost_with_the_connection() -> None:
    wire = Wire()
    wire.send("parked")
    wire.send("unread")
    wire.until(1.5)
    wire.send("under way")
    wire.connection.abandon()
    wire.until(10)
    wire.broker.answer("parked")
    wire.until(100_000)
    assert wire.broker.arrived == [(1 * MS, "parked")]
    assert [type(result) for _, _, result in wire.results] == [Disconnected] * 3
    assert {at_us for at_us, _, _ in wire.results} == {1_500}, "at once, and not again after the time-out"


def test_a_new_connection_is_not_muted_by_the_parked_request_of_the_old_one() -> None:
    wire = Wire()
    wire.send("old")
    wire.until(2)
    wire.connection.abandon()
    wire.send("new", step=2)
    wire.until(4)
    assert wire.broker.arrived == [(1 * MS, "old"), (3 * MS, "new")]
    wire.send("behind", step=3)
    wire.until(6)
    wire.broker.answer("old")  # nobody waits for it, and the new connection stays muted
    assert len(wire.broker.arrived) == 2
    wire.broker.answer("new")
    assert wire.broker.arrived[2:] == [(6 * MS, "behind")]
    wire.until(7)
    assert [(step, result) for _, step, result in wire.results[1:]] == [(2, ANSWER)]


def test_a_response_under_way_is_lost_with_the_connection() -> None:
    wire = Wire()
    wire.send("a")
    wire.until(1)
    wire.broker.answer("a")
    wire.connection.abandon()
    wire.until(10)
    assert [(at_us, type(result)) for at_us, _, result in wire.results] == [(1 * MS, Disconnected)]


def test_while_the_way_is_broken_requests_fail_at_once_and_never_arrive() -> None:
    wire = Wire()
    wire.connection.break_for(10 * MS)
    wire.send("a", step=3)
    assert wire.broken()
    wire.until(9.999)
    assert wire.broken()
    assert [(at_us, step) for at_us, step, _ in wire.results] == [(0, 3)]
    wire.until(10)
    assert not wire.broken()
    wire.send("b")
    wire.until(20)
    assert wire.broker.arrived == [(11 * MS, "b")]


def test_a_coordinator_is_found_by_a_round_trip_once_there_is_a_way() -> None:
    wire = Wire()
    found: list[int] = []
    wire.connection.find_coordinator(lambda: found.append(wire.clock.now_us))
    wire.until(5)
    wire.connection.break_for(10 * MS)
    wire.connection.find_coordinator(lambda: found.append(wire.clock.now_us))
    wire.until(20)
    assert found == [2 * MS, 15 * MS + 2 * MS]
    assert wire.broker.counted == [(("FindCoordinator", None), 1)] * 2


def test_a_process_that_starts_while_there_is_no_coordinator_finds_it_when_it_is_there() -> None:
    wire = Wire()
    wire.network.down_until_us = 50 * MS
    later = VirtualConnection(wire.network, "n", 1, lambda _step, _result: None, ClientTimers(0))
    found: list[int] = []
    later.find_coordinator(lambda: found.append(wire.clock.now_us))
    wire.until(100)
    assert found == [52 * MS]
    assert not wire.broken(), "it was there before"


# -- time-outs ---------------------------------------------------------------------------------------


def test_a_request_without_a_response_fails_request_timeout_ms_after_it_was_sent() -> None:
    wire = Wire()
    wire.until(5)
    wire.send("a", step=4)
    wire.until(5 + TIMEOUT_MS - 0.001)
    assert wire.results == []
    wire.until(5 + TIMEOUT_MS)
    [(at_us, step, result)] = wire.results
    assert (at_us, step, type(result)) == ((5 + TIMEOUT_MS) * MS, 4, Disconnected)
    wire.broker.answer("a")
    wire.until(100_000)
    assert len(wire.results) == 1, "the response comes too late"


def test_a_time_out_closes_the_connection_with_all_its_requests() -> None:
    wire = Wire()
    wire.send("a", step=1)
    wire.until(10_000)
    wire.send("b", step=2)
    wire.until(TIMEOUT_MS)
    assert [(at_us, step) for at_us, step, _ in wire.results] == [
        (TIMEOUT_MS * MS, 1),
        (TIMEOUT_MS * MS, 2),
    ]
    wire.broker.answer("a")
    wire.until(100_000)
    assert wire.broker.arrived == [(1 * MS, "a")], "the broker never read the second one"


def test_an_answered_request_does_not_time_out() -> None:
    wire = Wire()
    wire.send("a")
    wire.until(TIMEOUT_MS - 2)
    wire.broker.answer("a")
    wire.send("b", step=2)
    wire.until(TIMEOUT_MS + 10)
    assert [result for _, _, result in wire.results] == [ANSWER]
    wire.until(2 * TIMEOUT_MS - 3)
    assert len(wire.results) == 1
    wire.until(2 * TIMEOUT_MS - 2)
    assert [(at_us, step) for at_us, step, _ in wire.results[1:]] == [((2 * TIMEOUT_MS - 2) * MS, 2)]


def test_a_request_behind_a_muted_one_times_out_by_its_own_time() -> None:
    wire = Wire()
    wire.send("a", step=1)
    wire.until(1_000)
    wire.send("b", step=2)
    wire.until(20_000)
    wire.broker.answer("a")
    wire.until(1_000 + TIMEOUT_MS)
    assert [(at_us, step) for at_us, step, _ in wire.results] == [
        (20_001 * MS, 1),
        ((1_000 + TIMEOUT_MS) * MS, 2),
    ]


def test_requests_of_several_time_outs_wait_by_themselves() -> None:
    wire = Wire()
    other = VirtualConnection(wire.network, "other", 1, wire._completed, ClientTimers(0))
    wire.send("long", step=1, timeout_ms=60_000)
    other.send(Heartbeat("g", "short", None, 1, 4), 1_000, None, 2)
    wire.until(100_000)
    assert [(at_us, step) for at_us, step, _ in wire.results] == [(1_000 * MS, 2), (60_000 * MS, 1)]


class Sent:
    """A request that waits."""

    def __init__(self, sent_us: int, failed: list[int], clock: Clock) -> None:
        self.sent_us = sent_us
        self.answered = False
        self._failed = failed
        self._clock = clock

    def time_out(self) -> None:
        self._failed.append(self._clock.now_us)


def test_one_check_stands_for_all_requests_that_wait() -> None:
    clock, failed = Clock(), list[int]()
    timeouts = RequestTimeouts(clock, 100)
    sent = [Sent(at_us, failed, clock) for at_us in (0, 10, 20, 30, 200)]
    for request in sent:
        timeouts.add(request)
    sent[1].answered = True  # behind the first one: nobody has released it when the first times out
    sent[2].answered = True
    clock.limit_us = 1_000
    clock.run()
    assert failed == [100, 130, 300]


def test_a_request_that_arrives_after_its_time_out_fails_when_it_arrives() -> None:
    clock, failed = Clock(), list[int]()
    timeouts = RequestTimeouts(clock, 100)
    clock.at(150, lambda: timeouts.add(Sent(10, failed, clock)))
    clock.limit_us = 1_000
    clock.run()
    assert failed == [150]


def test_a_request_whose_answer_nobody_has_noted_does_not_time_out() -> None:
    clock, failed = Clock(), list[int]()
    timeouts = RequestTimeouts(clock, 100)
    first = Sent(0, failed, clock)
    timeouts.add(first)
    timeouts.add(Sent(40, failed, clock))
    first.answered = True
    clock.limit_us = 1_000
    clock.run()
    assert failed == [140]


def test_released_requests_are_not_looked_at_again() -> None:
    clock, failed = Clock(), list[int]()
    timeouts = RequestTimeouts(clock, 100)
    first, second = Sent(0, failed, clock), Sent(40, failed, clock)
    timeouts.add(first)
    timeouts.add(second)
    first.answered = True
    timeouts.release_answered()
    clock.limit_us = 1_000
    clock.run()
    assert failed == [140]


# -- latencies ---------------------------------------------------------------------------------------

UNIFORM = {"uniform": [1, 9]}


def ways(name: str = "m", incarnation: int = 1, count: int = 400) -> list[tuple[int, int]]:
    """The ways there and back of requests that are answered at once."""
    wire = Wire(UNIFORM, name=name, incarnation=incarnation)
    found = []
    for number in range(count):
        wire.send("a")
        sent_us = wire.clock.now_us
        wire.until(100 * number + 50)
        arrived_us = wire.broker.arrived[-1][0]
        answered_us = wire.clock.now_us
        wire.broker.answer("a")
        wire.until(100 * number + 100)
        found.append((arrived_us - sent_us, wire.results[-1][0] - answered_us))
    return found


def test_each_way_is_drawn_for_itself() -> None:
    found = ways()
    assert ways() == found, "the same in every run"
    assert all(1 * MS <= way < 9 * MS for pair in found for way in pair)
    assert ways(name="n", count=10) != found[:10]
    assert ways(incarnation=2, count=10) != found[:10]
    for side in range(2):
        drawn = [pair[side] for pair in found]
        assert len(set(drawn)) > 350
        assert sum(drawn) / len(drawn) == pytest.approx(5 * MS, abs=400)
    there, back = zip(*found, strict=True)
    assert there != back
    assert there[1:] != back[:-1]


def test_the_way_of_a_periodic_request_depends_on_its_time_alone() -> None:
    one, other = Wire(UNIFORM), Wire(UNIFORM)
    for number in range(5):
        other.send(f"{number}")  # these draw latencies of their own
    times = range(0, 300_000_000, 3_000_000)
    for connection in (one.connection, other.connection):
        there = [connection.periodic_latency_us(sent_us) for sent_us in times]
        back = [connection.periodic_response_latency_us(sent_us) for sent_us in times]
        assert there == [one.connection.periodic_latency_us(sent_us) for sent_us in times]
        assert back == [one.connection.periodic_response_latency_us(sent_us) for sent_us in times]
        assert len({*there, *back}) > 190, "no draw is used twice"

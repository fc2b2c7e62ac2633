"""A connection that is lost, swallows messages or takes over a computed request; the draws of its ways."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse, Heartbeat
from groupstorm.storms.randomness import Stream
from groupstorm.storms.scenario import distributions
from tests.storms.test_connection import ANSWER, MS, TIMEOUT_MS, UNIFORM, Wire, ways


def test_what_one_connection_has_not_read_the_next_one_does_not_read_either() -> None:
    wire = Wire()
    wire.send("parked")
    wire.send("unread")
    wire.until(2)
    wire.connection.abandon()
    wire.send("new")
    wire.until(4)
    wire.broker.answer("new")
    wire.until(10)
    assert [name for _, name in wire.broker.arrived] == ["parked", "new"]


def test_a_break_loses_what_is_under_way_and_a_shorter_one_does_not_end_it() -> None:
    wire = Wire()
    wire.send("a", step=1)
    wire.connection.break_for(10 * MS)
    wire.connection.break_for(5 * MS)
    wire.until(9)
    assert wire.broken()
    assert [(at_us, step, type(result)) for at_us, step, result in wire.results] == [(0, 1, Disconnected)]
    assert wire.broker.arrived == []


@pytest.mark.parametrize("way", ["broken", "requests", "responses"])
def test_a_connection_passes_when_both_directions_do(way: str) -> None:
    wire = Wire()
    if way == "broken":
        wire.connection.break_for(10 * MS)
    elif way == "requests":
        wire.connection.no_requests_until_us = 10 * MS
    else:
        wire.connection.no_responses_until_us = 10 * MS
    found = []
    for at_ms in (9.999, 10):
        wire.until(at_ms)
        found.append(wire.connection.passes)
    assert found == [False, True]


# -- a network that swallows requests or responses: TCP sends them again


def test_a_request_leaves_when_the_network_lets_it_pass() -> None:
    wire = Wire()
    wire.connection.no_requests_until_us = 10 * MS
    wire.send("a")
    wire.until(20)
    assert wire.broker.arrived == [(11 * MS, "a")]


def test_a_response_leaves_when_the_network_lets_it_pass() -> None:
    wire = Wire()
    wire.connection.no_responses_until_us = 10 * MS
    wire.send("a", step=1)
    wire.until(2)
    wire.broker.answer("a")
    wire.until(20)
    assert wire.results == [(11 * MS, 1, ANSWER)]
    assert [wire.connection.response_passes_us(at_us) for at_us in (9, 10 * MS, 11 * MS)] == [
        10 * MS,
        10 * MS,
        11 * MS,
    ]


@pytest.mark.parametrize("side", ["requests", "responses"])
@pytest.mark.parametrize(("until_ms", "times_out"), [(TIMEOUT_MS, False), (TIMEOUT_MS + 1, True)])
def test_a_client_gives_up_what_the_network_swallows_beyond_request_timeout_ms(
    side: str, until_ms: int, times_out: bool
) -> None:
    """If the network lets it pass when the time is over, it is just in time."""
    wire = Wire()
    if side == "requests":
        wire.connection.no_requests_until_us = until_ms * MS
    else:
        wire.connection.no_responses_until_us = until_ms * MS
    wire.send("a", step=1)
    wire.until(1)
    if side == "responses":
        wire.broker.answer("a")
    wire.until(TIMEOUT_MS)
    expected = [(TIMEOUT_MS * MS, 1, Disconnected)] if times_out else []
    if side == "responses" or times_out:
        assert [(at_us, step, type(result)) for at_us, step, result in wire.results] == expected
    wire.until(until_ms + 5)
    assert len(wire.broker.arrived) == (side == "responses" or not times_out)


def test_a_response_that_is_under_way_in_time_is_taken() -> None:
    wire = Wire()
    wire.send("a", step=1)
    wire.until(TIMEOUT_MS - 0.5)
    wire.broker.answer("a")
    wire.until(2 * TIMEOUT_MS)
    assert wire.results == [((TIMEOUT_MS + 0.5) * MS, 1, ANSWER)]


# -- latencies, and requests that were only computed until now


def test_the_draws_of_periodic_requests_and_of_others_lie_apart_in_one_stream() -> None:
    """Those of the n-th request that is not periodic at -n; those of a periodic one at twice its time, for
    the way there, and behind that, for the way back."""
    stream, spread = Stream(1, "net", "m", 1), distributions.parse("net_latency_ms", UNIFORM)
    assert ways(count=3) == [
        (spread.at(there), spread.at(back)) for there, back in map(stream.pair, (-1, -2, -3))
    ]
    connection = Wire(UNIFORM).connection
    for sent_us in (0, 1, 5_004_000):
        there, back = spread.at(stream.at(2 * sent_us)), spread.at(stream.at(2 * sent_us + 1))
        assert connection.periodic_latency_us(sent_us) == there
        assert connection.periodic_response_latency_us(sent_us) == back


def test_a_periodic_request_that_is_sent_takes_as_long_as_one_that_is_computed() -> None:
    wire = Wire(UNIFORM)
    wire.until(7)
    connection = wire.connection
    there, back = connection.periodic_latency_us(7 * MS), connection.periodic_response_latency_us(7 * MS)
    wire.connection.send(Heartbeat("g", "a", None, 1, 4), TIMEOUT_MS, None, 1, periodic=True)
    wire.until(20)
    assert wire.broker.arrived == [(7 * MS + there, "a")]
    wire.broker.answer("a")
    wire.until(40)
    assert wire.results == [(20 * MS + back, 1, ANSWER)]


def test_a_computed_request_and_its_response_can_be_put_on_their_way() -> None:
    """The request left at 7 ms, which is known at 7.5 ms; its response takes the way back of that time."""
    wire = Wire(UNIFORM)
    wire.until(7.5)
    connection, taken = wire.connection, list[tuple[int, Any]]()
    there, back = connection.periodic_latency_us(7 * MS), connection.periodic_response_latency_us(7 * MS)
    request = Heartbeat("g", "a", None, 1, 4)
    connection.overtake(request, 7 * MS, TIMEOUT_MS, lambda result: taken.append((wire.clock.now_us, result)))
    assert len(connection.in_flight) == 1
    wire.until(20)
    assert wire.broker.arrived == [(7 * MS + there, "a")]
    wire.broker.answer("a")
    wire.until(40)
    assert taken.pop() == (20 * MS + back, ANSWER)
    connection.overtake_response(
        request, 39 * MS, 50 * MS, ANSWER, lambda result: taken.append((wire.clock.now_us, result))
    )
    assert len(connection.in_flight) == 1
    wire.until(100_000)
    assert taken == [(50 * MS, ANSWER)]
    assert connection.in_flight == []


def test_a_computed_request_without_a_response_times_out_by_the_time_at_which_it_left() -> None:
    wire = Wire()
    wire.until(7.5)
    failed: list[int] = []
    request = Heartbeat("g", "a", None, 1, 4)
    wire.connection.overtake(request, 7 * MS, TIMEOUT_MS, lambda _: failed.append(wire.clock.now_us))
    wire.until(100_000)
    assert failed == [(7 + TIMEOUT_MS) * MS]


def test_a_quiet_heartbeat_does_not_keep_the_coordinator_busy() -> None:
    """One that says nothing new is mostly computed; with an error or an assignment it takes its time."""
    for response, service_us in (
        (ConsumerGroupHeartbeatResponse(NO_ERROR, "m", 3, 5_000), 0),
        (ConsumerGroupHeartbeatResponse(Error.UNKNOWN_MEMBER_ID, "m", 3, 5_000), 100),
        (ConsumerGroupHeartbeatResponse(NO_ERROR, "m", 3, 5_000, {UUID(int=1): (0,)}), 100),
        (ANSWER, 100),
    ):
        wire = Wire(service_us=100)
        wire.send("a", step=1)
        wire.until(1)
        wire.broker.answer("a", response)
        wire.until(10)
        assert wire.results == [(2 * MS + service_us, 1, response)]

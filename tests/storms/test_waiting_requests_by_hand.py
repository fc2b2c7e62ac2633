"""Requests that wait for a response: the checks of their time, and responses that are in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.messages import Request, Response
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.request_timeouts import RequestTimeouts
from tests.storms.test_clients_by_hand import until
from tests.storms.test_connection import ANSWER, MS, TIMEOUT_MS, Sent, Wire


class NotingClock(Clock):
    """``scheduled``: the times of all calls that were ever scheduled."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduled: list[int] = []

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self.scheduled.append(time_us)
        super().at(time_us, action, *arguments)


def test_of_all_requests_that_wait_only_the_first_has_a_call_scheduled() -> None:
    """Sent at 0, 10 and 20 us, they fail after 100 us."""
    clock, failed = NotingClock(), list[int]()
    timeouts = RequestTimeouts(clock, 100)
    for sent_us in (0, 10, 20):
        timeouts.add(Sent(sent_us, failed, clock))
    assert clock.scheduled == [100]
    until(clock, 100)
    assert clock.scheduled == [100, 110]
    until(clock, 1_000)
    assert clock.scheduled == failed == [100, 110, 120]


@pytest.mark.parametrize("answered", [False, True])
def test_a_request_that_comes_when_no_other_waits_any_more_fails_in_its_time(answered: bool) -> None:
    clock, failed = Clock(), list[int]()
    timeouts = RequestTimeouts(clock, 100)
    first = Sent(0, failed, clock)
    timeouts.add(first)
    first.answered = answered
    until(clock, 500)
    timeouts.add(Sent(500, failed, clock))
    until(clock, 1_000)
    assert failed == ([600] if answered else [100, 600])


def test_a_request_that_is_answered_when_it_arrives_waits_no_longer() -> None:
    wire = Wire()
    broker: Any = wire.broker

    def answer(_request: Request, respond: Callable[[Response], None]) -> None:
        respond(ANSWER)

    broker.handle = answer
    wire.send("a", step=1)
    wire.send("b", step=2)
    wire.until(100_000)
    assert wire.results == [(2 * MS, 1, ANSWER), (2 * MS, 2, ANSWER)]
    assert wire.connection.in_flight == []


@pytest.mark.parametrize(
    ("passes_us", "results"),
    [
        (TIMEOUT_MS * MS + 50, [(TIMEOUT_MS * MS + 50 + 1 * MS, 1, type(ANSWER))]),
        (TIMEOUT_MS * MS + 51, [(TIMEOUT_MS * MS, 1, Disconnected)]),
    ],
)
def test_a_response_that_leaves_when_the_network_passes_again_was_not_held_up(
    passes_us: int, results: list[tuple[int, int, type]]
) -> None:
    """The coordinator answers 50 us before the time-out, and works on it for 100 us."""
    wire = Wire(service_us=100)
    wire.send("a", step=1)
    wire.until(TIMEOUT_MS - 0.05)
    wire.connection.no_responses_until_us = passes_us
    wire.broker.answer("a")
    wire.until(100_000)
    assert [(at_us, step, type(result)) for at_us, step, result in wire.results] == results

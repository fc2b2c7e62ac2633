"""When the listener of a classic member is called while its application works on records: at its next poll().

The application is at work at 10 ms and polls at 100 ms. The membership has waited since step 4.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.coordinator.messages import NO_GENERATION
from groupstorm.storms.world.classic_callbacks import VirtualCallbacks
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME
from tests.storms.test_clients_by_hand import until

MS = 1_000
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
REVOKED = RunCallback(CallbackKind.REVOKED, (P0,), "rebalance")
TAKEN_AWAY = RunCallback(CallbackKind.REVOKED, (P0,), "assignment")
ASSIGNED = RunCallback(CallbackKind.ASSIGNED, (P0,), "assignment")


class Process:
    """A process and its listener. ``said``: when (ms) the listener was called, and what came of it."""

    def __init__(self, returns: Any = None, polls_ms: int = 100) -> None:
        self.clock = Clock()
        self.clock.advance_to(10 * MS)
        self.said: list[tuple[int, Any]] = []
        self.alive, self.step, self.returns = True, 4, returns
        self.polls_ms = polls_ms
        self.membership: Any = SimpleNamespace(generation=Generation(3, "m"), lost_cause="", owned=(P0, P1))
        self.polls: Any = SimpleNamespace(next_us=lambda: max(self.clock.now_us, self.polls_ms * MS))
        self.work: Any = SimpleNamespace(loop=SimpleNamespace(processed_partitions=[P1]))
        calls: Any = SimpleNamespace(call=self._call, held=lambda: (P1,))
        self.callbacks = VirtualCallbacks(self.clock, self, calls)

    def _call(self, operation: RunCallback) -> Any:
        self.said.append((self.clock.now_us // MS, operation))
        return self.returns

    def completed(self, step: int, result: Any) -> None:
        self.said.append((self.clock.now_us // MS, f"completed {step} {result}"))

    def until(self, ms: int) -> list[tuple[int, Any]]:
        until(self.clock, ms * MS)
        return self.said


def test_the_listener_is_called_at_the_next_poll_and_the_membership_goes_on_when_it_returns() -> None:
    process = Process("done")
    assert process.callbacks.run(REVOKED) is TAKES_TIME
    assert process.until(99) == []
    assert process.until(500) == [(100, REVOKED), (100, "completed 4 done")]


def test_a_membership_does_not_go_on_before_a_listener_that_takes_time_has_returned() -> None:
    process = Process(TAKES_TIME)
    assert process.callbacks.run(REVOKED) is TAKES_TIME
    assert process.until(500) == [(100, REVOKED)]


@pytest.mark.parametrize("why", ["is inside poll()", "processes nothing"])
def test_the_listener_is_called_at_once_if_the_application(why: str) -> None:
    process = Process("done", polls_ms=10 if why == "is inside poll()" else 100)
    if why == "processes nothing":
        process.work.loop.processed_partitions = []
    assert process.callbacks.run(REVOKED) == "done"
    assert process.until(500) == [(10, REVOKED)]


def test_an_application_that_is_still_at_work_at_its_poll_calls_the_listener_at_the_next_one() -> None:
    process = Process()
    process.callbacks.run(REVOKED)
    process.polls_ms = 300
    assert process.until(299) == []
    assert process.until(500) == [(300, REVOKED), (300, "completed 4 None")]


@pytest.mark.parametrize("why", ["step", "alive"])
def test_the_listener_is_not_called_if_nobody_waits_for_it_any_more(why: str) -> None:
    process = Process()
    process.callbacks.run(REVOKED)
    if why == "step":
        process.step = 5
    else:
        process.alive = False
    assert process.until(500) == []


@pytest.mark.parametrize("kind", [CallbackKind.REVOKED, CallbackKind.LOST])
def test_partitions_that_a_response_has_cost_meanwhile_are_lost(kind: CallbackKind) -> None:
    process = Process()
    process.callbacks.run(RunCallback(kind, (P0,), "rebalance"))
    process.membership.lost_cause = "UNKNOWN_MEMBER_ID"
    [(_, called), _] = process.until(500)
    lost = RunCallback(CallbackKind.LOST, (P0,), "UNKNOWN_MEMBER_ID")
    assert called == (lost if kind is CallbackKind.REVOKED else RunCallback(kind, (P0,), "rebalance"))


def test_an_assignment_is_none_of_what_was_lost_before() -> None:
    """The member has joined again since, and has a generation."""
    process = Process()
    process.callbacks.run(ASSIGNED)
    process.membership.lost_cause = "UNKNOWN_MEMBER_ID"
    assert process.until(500)[0] == (100, ASSIGNED)


def test_before_it_joins_a_member_without_a_generation_calls_its_listener() -> None:
    process = Process()
    process.callbacks.run(REVOKED)
    process.membership.generation = Generation(NO_GENERATION, "m")
    assert process.until(500)[0] == (100, REVOKED)


def test_a_round_whose_generation_is_gone_at_the_poll_calls_no_listener_to_its_end() -> None:
    """The member keeps what it works on. The next round calls the listener."""
    process = Process()
    process.callbacks.run(TAKEN_AWAY)
    process.membership.generation = Generation(NO_GENERATION, "m")
    assert process.until(100) == [(100, "completed 4 None")]
    assert process.membership.owned == (P0, P1)
    process.membership.generation = Generation(4, "m")
    assert process.callbacks.run(ASSIGNED) is None
    assert process.membership.owned == (P1,)
    assert process.until(200) == [(100, "completed 4 None")]
    process.callbacks.run(REVOKED)
    assert process.until(300)[1:] == [(200, REVOKED)]


@pytest.mark.parametrize("operation", [ASSIGNED, RunCallback(CallbackKind.ASSIGNED, (), "")])
def test_an_assignment_whose_generation_is_gone_at_the_poll_is_not_taken(operation: RunCallback) -> None:
    process = Process()
    process.callbacks.run(operation)
    process.membership.generation = Generation(NO_GENERATION, "m")
    assert process.until(500) == [(100, "completed 4 None")]
    assert process.membership.owned == (P1,)
    process.callbacks.run(REVOKED)
    assert process.said[-1] == (500, REVOKED)

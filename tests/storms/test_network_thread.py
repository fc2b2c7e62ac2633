"""When the network thread of a member of a consumer group runs: a member that names its waits, and fakes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.consumer_group.client_clock import ClientClock
from groupstorm.storms.world.consumer_group.network_thread import NetworkThread
from groupstorm.storms.world.consumer_group.simultaneous_runs import SimultaneousRuns
from tests.storms.test_clients_by_hand import until

MS = 1_000


class Parts:
    """The process, its member and its environment at once. ``said``: when (ms) which of them was asked what.

    ``waits``: what the member answers, the last one again and again. ``busy``: how often it asks for
    something.
    """

    def __init__(self, *waits: int, busy: int = 0) -> None:
        self.clock = Clock()
        self.client_clock = ClientClock(0)
        self.said: list[tuple[int, str]] = []
        self.alive, self.closing, self.settled, self.topics_to_tell = True, False, True, False
        self.index = 3
        self.busy = busy
        self.connection: Any = SimpleNamespace(in_flight=[])
        self.pauses: Any = SimpleNamespace(paused_until_us=0)
        self.periodic_requests: Any = "requests"
        self.group_member: Any = SimpleNamespace(
            step=self._step,
            state=MemberState.STABLE,
            member_id="m-1",
            epoch=7,
            heartbeat_interval_ms=5_000,
            missed_an_answer=False,
            backs_off=lambda now_ms: False,
        )
        self.quiet = True
        environment: Any = SimpleNamespace(
            sends_heartbeats=False,
            broker=SimpleNamespace(
                is_quiet=lambda member_id, epoch: self.quiet and (member_id, epoch) == ("m-1", 7)
            ),
            sessions=SimpleNamespace(by_member_id={}),
            network_threads=SimultaneousRuns(self.clock),
        )
        self.environment = environment
        self._waits = [*waits]
        heartbeats: Any = SimpleNamespace(rest=lambda *what: self.note(f"rest {what}"))
        self.thread = NetworkThread(self.environment, self, heartbeats)

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us // MS, what))

    def _step(self, now_ms: int) -> int:
        self.note(f"step {now_ms}")
        return self._waits.pop(0) if len(self._waits) > 1 else self._waits[0]

    def carry_out(self) -> bool:
        self.note("carry out")
        self.busy -= 1
        return self.busy >= 0

    def note_polls(self) -> None:
        self.note("note polls")

    def nudge(self) -> None:
        self.note("nudge")

    def until(self, ms: int) -> list[str]:
        """What is said from now on until then, with the times."""
        before = len(self.said)
        until(self.clock, ms * MS)
        return [f"{at_ms} {what}" for at_ms, what in self.said[before:]]


def test_a_run_does_what_the_member_asks_for_until_that_is_nothing() -> None:
    """What it has asked for already comes first, whatever that was."""
    parts = Parts(1, 2_000, busy=2)
    parts.thread.turn()
    assert [what for _, what in parts.said] == [
        "carry out",
        "step 0",
        "carry out",
        "step 0",
        "carry out",
        "rest (2000, 5000)",
        "nudge",
    ]
    assert parts.environment.sessions.by_member_id == {"m-1": "requests"}
    assert parts.until(10_000) == [], "heartbeats are computed from now on"


@pytest.mark.parametrize(
    "disturbed", ["exact", "state", "settled", "topics", "missed", "backs off", "in flight", "group"]
)
def test_whatever_disturbs_the_quiet_makes_the_thread_run(disturbed: str) -> None:
    parts = Parts(3, FOREVER_MS)
    match disturbed:
        case "exact":
            parts.environment.sends_heartbeats = True
        case "state":
            parts.group_member.state = MemberState.RECONCILING
        case "settled":
            parts.settled = False
        case "topics":
            parts.topics_to_tell = True
        case "backs off":
            parts.group_member.backs_off = lambda now_ms: now_ms == 10
        case "missed":
            parts.group_member.missed_an_answer = True
        case "in flight":
            parts.connection.in_flight = ["a request"]
        case "group":
            parts.quiet = False
    parts.until(10)
    parts.thread.turn()
    assert parts.environment.sessions.by_member_id == {}
    assert parts.thread.next_run_us() == 13 * MS
    assert parts.until(12) == []
    assert parts.until(100) == ["13 note polls", "13 carry out", "13 step 13", "13 carry out", "13 nudge"]


@pytest.mark.parametrize(("wait_ms", "runs"), [(0, False), (1, True), (FOREVER_MS, False)])
def test_the_thread_runs_again_if_the_member_names_a_time(wait_ms: int, runs: bool) -> None:
    parts = Parts(wait_ms, FOREVER_MS)
    parts.quiet = False
    parts.thread.turn()
    assert bool(parts.until(100)) is runs


def test_a_later_time_to_run_replaces_an_earlier_one() -> None:
    parts = Parts(FOREVER_MS)
    parts.thread.run_at(5)
    parts.thread.run_at(9)
    assert parts.until(8) == []
    assert parts.until(100)[0].startswith("9 ")


def test_the_thread_of_a_process_that_is_gone_does_not_run() -> None:
    parts = Parts(FOREVER_MS)
    parts.thread.run_at(5)
    parts.alive = False
    assert parts.until(100) == []


def test_a_process_that_closes_does_not_poll_any_more() -> None:
    parts = Parts(FOREVER_MS)
    parts.closing = True
    parts.thread.turn()
    assert [what for _, what in parts.said] == ["carry out", "step 0", "carry out"]


@pytest.mark.parametrize("dies", [1, 2])
def test_a_process_that_ends_during_a_run_does_not_run_again(dies: int) -> None:
    parts = Parts(3)

    def carry_out() -> bool:
        parts.note("carry out")
        parts.alive = sum(what == "carry out" for _, what in parts.said) < dies
        return True

    parts.carry_out = carry_out  # type: ignore[method-assign]
    parts.thread.turn()
    assert [what for _, what in parts.said] == ["carry out", "step 0", "carry out"][: 2 * dies - 1]
    assert parts.until(100) == []


def test_a_later_appointment_takes_the_place_of_an_earlier_one() -> None:
    parts = Parts(FOREVER_MS)
    parts.thread.run_at(10)
    parts.thread.run_at(20)
    assert parts.until(15) == []
    assert parts.until(100) == ["20 note polls", "20 carry out", "20 step 20", "20 carry out", "20 nudge"]


def test_a_run_in_between_takes_the_place_of_an_appointment() -> None:
    parts = Parts(FOREVER_MS)
    parts.thread.run_at(10)
    parts.until(5)
    parts.thread.turn()
    assert parts.until(100) == []


def test_a_thread_whose_time_has_passed_runs_at_once() -> None:
    parts = Parts(FOREVER_MS)
    parts.until(30)
    parts.thread.run_at(20)
    assert parts.thread.next_run_us() == 30 * MS
    assert parts.until(30)[0] == "30 note polls"


def test_a_process_that_stands_still_runs_its_thread_when_it_runs_again() -> None:
    parts = Parts(FOREVER_MS)
    parts.thread.run_at(20)
    parts.pauses.paused_until_us = 50 * MS
    assert parts.until(49) == []
    assert parts.until(50)[0] == "50 note polls"
    parts.thread.run_at(60)
    parts.pauses.paused_until_us = 60 * MS
    assert parts.until(60)[0] == "60 note polls"


def test_a_process_that_is_gone_runs_no_thread() -> None:
    for at_ms in (20, 19):
        parts = Parts(FOREVER_MS)
        parts.thread.run_at(20)
        parts.until(19)
        if at_ms == 20:  # killed at the same instant, behind the call that lines the runs up
            parts.clock.at(20 * MS, lambda parts=parts: setattr(parts, "alive", False))
        else:
            parts.alive = False
        assert parts.until(100) == []


def test_of_threads_that_run_at_one_instant_a_run_that_another_one_replaced_is_left_out() -> None:
    parts = Parts(FOREVER_MS)
    parts.thread.run_at(20)
    parts.clock.at(20 * MS, parts.thread.run_at, 30)
    assert parts.until(29) == []
    assert parts.until(30)[0] == "30 note polls"

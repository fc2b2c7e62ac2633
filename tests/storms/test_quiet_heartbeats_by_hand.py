"""Where the heartbeats of a member are that were only computed, when they are to be sent from now on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.clients.consumer_group.operations import SendHeartbeat
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse
from groupstorm.storms.world.consumer_group.client_clock import ClientClock
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats

MS, SECOND = 1_000, 1_000_000
ANSWER = ConsumerGroupHeartbeatResponse(NO_ERROR, "m-1", 7, 5_000)


class Parts:
    """The process, its member, connection and broker at once. ``said``: which of them was asked what.

    A heartbeat takes 10 ms, and its response 10 ms. ``takes``: who get the responses under way.
    """

    def __init__(self, drift_ppm: int = 0) -> None:
        self.now_us = 0
        self.said: list[Any] = []
        self.takes: list[Any] = []
        self.client_clock = ClientClock(drift_ppm)
        self.heartbeat = SendHeartbeat("heartbeat", True)  # type: ignore[arg-type]
        self.config: Any = SimpleNamespace(request_timeout_ms=30_000)
        self.group_member: Any = SimpleNamespace(
            member_id="m-1",
            epoch=7,
            step=lambda now_ms: self.said.append(f"step {now_ms}"),
            operations=lambda: [self.heartbeat],
            answered=lambda sent, answer, now_ms: self.said.append((f"member, {now_ms}", sent, answer)),
        )
        broker = SimpleNamespace(
            count=lambda api, number: self.said.append((*api, number)) if number else None,
            session_since=lambda member_id, us: self.said.append(f"{member_id} since {us}"),
        )
        self.connection: Any = SimpleNamespace(
            clock=self,
            broker=broker,
            periodic_latency_us=lambda sent_us: 10 * MS,
            periodic_response_latency_us=lambda sent_us: 10 * MS,
            overtake=self._overtake,
            overtake_response=self._overtake_response,
        )
        self.heartbeats = QuietHeartbeats(self)

    def note_polls(self) -> None:
        self.said.append("note polls")

    def run_network_thread_at(self, shown_ms: int) -> None:
        self.said.append(f"run at {shown_ms}")

    def answered(self, sent: Any, response: Any) -> None:
        self.said.append(("process", sent, response))

    def _overtake(self, request: Any, sent_us: int, timeout_ms: int, take: Any) -> None:
        self.said.append(f"{request} sent at {sent_us}, {timeout_ms} ms to answer")
        self.takes.append(take)

    def _overtake_response(self, request: Any, sent_us: int, due_us: int, response: Any, take: Any) -> None:
        self.said.append((f"{request} sent at {sent_us}, answered at {due_us}", response))
        self.takes.append(take)

    def woken(self, now_us: int, first_ms: int = 5_000) -> list[Any]:
        """What is said if the heartbeats are sent from then on, and leave every 5 s from ``first_ms`` on."""
        self.heartbeats.rest(first_ms, 5_000)
        self.now_us = now_us
        self.heartbeats.wake()
        return self.said


def counted(number: int) -> tuple[str, None, int]:
    return ("ConsumerGroupHeartbeat", None, number)


@pytest.mark.parametrize("now_us", [3 * SECOND, 5 * SECOND])
def test_a_first_heartbeat_that_has_not_left_leaves_when_it_is_due(now_us: int) -> None:
    """What is due now has not left yet."""
    assert Parts().woken(now_us) == ["note polls", "run at 5000"]


@pytest.mark.parametrize("now_us", [5 * SECOND + 1, 5_010 * MS])
def test_a_first_heartbeat_under_way_arrives_and_has_begun_no_session_yet(now_us: int) -> None:
    """What arrives now has not arrived yet."""
    assert Parts().woken(now_us) == [
        "note polls",
        "step 5000",
        "heartbeat sent at 5000000, 30000 ms to answer",
        "run at 10000",
    ]


@pytest.mark.parametrize("now_us", [5_010 * MS + 1, 5_020 * MS])
def test_a_response_under_way_comes_and_the_session_has_begun_when_its_heartbeat_arrived(now_us: int) -> None:
    """What comes back now has not come yet."""
    assert Parts().woken(now_us) == [
        "note polls",
        counted(1),
        "m-1 since 5010000",
        "step 5000",
        ("heartbeat sent at 5000000, answered at 5020000", ANSWER),
        "run at 10000",
    ]


def test_the_member_knows_the_response_that_has_come() -> None:
    parts = Parts()
    assert parts.woken(5_020 * MS + 1) == [
        "note polls",
        counted(1),
        "m-1 since 5010000",
        "step 5000",
        ("member, 5020", parts.heartbeat, ANSWER),
        "run at 10000",
    ]


def test_of_several_heartbeats_those_before_the_last_have_arrived() -> None:
    """They leave at 5 s, 10 s and 15 s: two have arrived, the second at 10.01 s."""
    assert Parts().woken(15_005 * MS) == [
        "note polls",
        counted(2),
        "m-1 since 10010000",
        "step 15000",
        "heartbeat sent at 15000000, 30000 ms to answer",
        "run at 20000",
    ]


def test_of_several_heartbeats_the_last_is_the_one_that_comes_back() -> None:
    assert Parts().woken(15_015 * MS) == [
        "note polls",
        counted(3),
        "m-1 since 15010000",
        "step 15000",
        ("heartbeat sent at 15000000, answered at 15020000", ANSWER),
        "run at 20000",
    ]


@pytest.mark.parametrize("now_us", [5_005 * MS, 5_015 * MS])
def test_the_process_gets_what_comes_back_later(now_us: int) -> None:
    parts = Parts()
    parts.woken(now_us)
    [take] = parts.takes
    take("response")
    assert parts.said[-1] == ("process", parts.heartbeat, "response")


def test_heartbeats_leave_by_the_clock_of_their_machine() -> None:
    """It is fast by a quarter and shows 5,000 ms at 4 s, and 5,025 ms at 4.02 s."""
    parts = Parts(drift_ppm=250_000)
    assert parts.woken(4_020 * MS + 1) == [
        "note polls",
        counted(1),
        "m-1 since 4010000",
        "step 5000",
        ("member, 5025", parts.heartbeat, ANSWER),
        "run at 10000",
    ]


def test_heartbeats_are_computed_from_a_rest_until_they_wake() -> None:
    parts = Parts()
    quiet = [parts.heartbeats.is_quiet]
    parts.heartbeats.rest(5_000, 5_000)
    quiet.append(parts.heartbeats.is_quiet)
    parts.heartbeats.wake()
    quiet.append(parts.heartbeats.is_quiet)
    assert quiet == [False, True, False]


def test_heartbeats_that_are_sent_already_do_not_wake() -> None:
    parts = Parts()
    parts.heartbeats.wake()
    assert parts.said == []
    said = [*parts.woken(3 * SECOND)]
    parts.heartbeats.wake()
    assert parts.said == said

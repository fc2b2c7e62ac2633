"""Pauses and broken connections of one process, whose parts only note what they are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.connection_faults import ConnectionFaults
from groupstorm.storms.world.pauses import Pauses
from groupstorm.trace.events import member as events
from tests.storms.test_clients_by_hand import until

SECOND = 1_000_000
P0 = TopicPartition("t", 0)


class Parts:
    """The parts of a process. ``said``: when which part was told what."""

    def __init__(self, **own: Any) -> None:
        self.clock = Clock()
        self.said: list[tuple[int, str]] = []
        self.name = "m"
        self.alive = True
        self.waits_for_poll = True
        self.profile = SimpleNamespace(commits_between_polls=False)
        self.config: Any = SimpleNamespace(group_id="g", profile=self.profile, request_timeout_ms=30_000)
        self.membership: Any = SimpleNamespace(
            generation=SimpleNamespace(member_id="m-1"),
            rejoin_needed=False,
            coordinator_known=True,
            heartbeating=True,
        )
        self.periodic_requests: Any = SimpleNamespace(
            next_heartbeat_us=lambda: self.clock.now_us + SECOND,
            **self._noted("stop", "settle_commits", "restart", "stop_commits", "start_commits", "cut_off"),
        )
        self.rates: Any = SimpleNamespace(
            stop=lambda: self._note("rates.stop"), changed=lambda began: self._note(f"rates.changed {began}")
        )
        self.work: Any = SimpleNamespace(
            partitions=(P0,),
            positions=lambda now_us: {P0: now_us // SECOND},
            loop=SimpleNamespace(stall=lambda *what: self._note(f"stall {what}")),
        )
        self.connection: Any = SimpleNamespace(
            no_requests_until_us=0,
            no_responses_until_us=0,
            passes=True,
            break_for=lambda duration_us: self._note(f"break_for {duration_us}"),
        )
        self.timers: Any = SimpleNamespace(us=lambda ms: ms * 1000)
        vars(self).update(own)

    def _noted(self, *names: str) -> dict[str, Any]:
        return {name: lambda name=name: self._note(name) for name in names}

    def _note(self, what: str) -> None:
        self.said.append((self.clock.now_us // SECOND, what))

    def emit(self, event: events.Event) -> None:
        rest = f"{event.cause} {event.duration_us}" if isinstance(event, events.MemberPaused) else ""
        assert isinstance(event, events.MemberPaused | events.MemberResumed)
        assert (event.group, event.member, event.member_id, event.partitions) == ("g", "m", "m-1", ("t-0",))
        self._note(f"{type(event).__name__} at {event.positions[0]} {rest}".strip())

    def nudge(self) -> None:
        self._note("nudge")

    def watch_polls(self) -> None:
        self._note("watch_polls")

    def to(self, seconds: int) -> list[tuple[int, str]]:
        """What is said by then."""
        until(self.clock, seconds * SECOND)
        return self.said


def paused(**own: Any) -> tuple[Parts, Pauses]:
    """A process at 1 s."""
    parts = Parts(**own)
    pauses = Pauses(parts.clock, parts)
    parts.to(1)
    return parts, pauses


def test_a_process_that_stands_still_sends_nothing_and_goes_on_where_it_was() -> None:
    parts, pauses = paused()
    pauses.pause(4 * SECOND)
    assert (pauses.until_us, pauses.paused_until_us) == (5 * SECOND, 5 * SECOND)
    begin = [
        (1, "stop"),
        (1, "settle_commits"),
        (1, "rates.stop"),
        (1, f"stall {(1 * SECOND, 4 * SECOND, False)}"),
        (1, "MemberPaused at 1 pause 4000000"),
    ]
    assert parts.to(4) == begin
    assert pauses.lasts
    assert parts.to(60) == [
        *begin,
        (5, "MemberResumed at 5"),
        (5, "rates.changed True"),
        (5, "restart"),
        (5, "nudge"),
    ]
    assert (pauses.lasts, pauses.until_us, pauses.paused_until_us) == (False, 0, 0)


def test_a_pause_ends_at_its_instant_and_a_second_one_in_between_changes_nothing() -> None:
    parts, pauses = paused()
    pauses.pause(4 * SECOND)
    parts.to(3)
    said = len(parts.said)
    pauses.pause(60 * SECOND)
    pauses.busy(60 * SECOND)
    assert len(parts.said) == said
    parts.clock.advance_to(5 * SECOND)
    assert not pauses.lasts


def test_a_process_that_is_gone_neither_pauses_nor_goes_on() -> None:
    parts, pauses = paused(alive=False)
    pauses.pause(SECOND)
    pauses.busy(SECOND)
    assert parts.to(10) == []
    parts, pauses = paused()
    pauses.pause(SECOND)
    said = len(parts.said)
    parts.alive = False
    assert len(parts.to(10)) == said


def test_a_pause_that_was_ended_early_does_not_end_again() -> None:
    parts, pauses = paused()
    pauses.pause(4 * SECOND)
    parts.to(2)
    pauses.end()
    said = list(parts.said)
    assert said[-2:] == [(2, "MemberResumed at 2"), (2, "rates.changed True")]
    assert parts.to(60) == said
    pauses.end()
    assert parts.said == said


@pytest.mark.parametrize("between_polls", [False, True])
def test_an_application_with_a_slow_batch_goes_on_heartbeating(between_polls: bool) -> None:
    parts, pauses = paused(
        config=SimpleNamespace(group_id="g", profile=SimpleNamespace(commits_between_polls=between_polls))
    )
    pauses.busy(4 * SECOND)
    assert (pauses.until_us, pauses.paused_until_us) == (5 * SECOND, 0)
    begin = [
        *([] if between_polls else [(1, "stop_commits")]),
        (1, "settle_commits"),
        (1, "rates.stop"),
        (1, f"stall {(1 * SECOND, 4 * SECOND, True)}"),
        (1, "MemberPaused at 1 slow-batch 4000000"),
        (1, "watch_polls"),
    ]
    assert parts.to(60) == [
        *begin,
        (5, "MemberResumed at 5"),
        (5, "rates.changed True"),
        (5, "start_commits"),
        (5, "nudge"),
    ]


@pytest.mark.parametrize(("waits", "rejoins"), [(False, False), (True, True)])
def test_after_a_slow_batch_a_process_in_a_round_does_not_commit(waits: bool, rejoins: bool) -> None:
    parts, pauses = paused()
    pauses.busy(4 * SECOND)
    parts.waits_for_poll, parts.membership.rejoin_needed = waits, rejoins
    assert [what for _, what in parts.to(60)][-2:] == ["rates.changed True", "nudge"]


@pytest.mark.parametrize(("waits", "rejoins"), [(False, False), (True, True)])
def test_a_slow_batch_comes_with_the_records_after_the_round(waits: bool, rejoins: bool) -> None:
    parts, pauses = paused(waits_for_poll=waits)
    parts.membership.rejoin_needed = rejoins
    pauses.busy(4 * SECOND)
    assert parts.said == []
    parts.to(3)
    parts.waits_for_poll, parts.membership.rejoin_needed = True, False
    pauses.next_batch()
    assert (3, "MemberPaused at 3 slow-batch 4000000") in parts.said
    parts.to(8)
    said = len(parts.said)
    pauses.next_batch()
    assert len(parts.said) == said, "it comes once"


def test_a_slow_batch_that_was_ended_early_does_not_end_again() -> None:
    parts, pauses = paused()
    pauses.busy(4 * SECOND)
    parts.to(2)
    pauses.end()
    said = list(parts.said)
    assert parts.to(60) == said


# --- connections


def faulty(**own: Any) -> tuple[Parts, ConnectionFaults]:
    """A process at 1 s, whose next heartbeat leaves a second from now."""
    parts = Parts(**own)
    parts.to(1)
    return parts, ConnectionFaults(parts)


def test_a_lost_coordinator_is_found_again_when_the_time_is_over() -> None:
    parts, faults = faulty()
    faults.lose_coordinator(4 * SECOND)
    lost = [(1, "cut_off"), (1, "break_for 4000000")]
    assert parts.to(4) == lost
    assert not parts.membership.coordinator_known
    assert parts.to(60) == [*lost, (5, "restart"), (5, "nudge")]
    assert parts.membership.coordinator_known


def test_a_process_that_is_gone_or_still_cut_off_does_not_reconnect() -> None:
    parts, faults = faulty(alive=False)
    faults.lose_coordinator(4 * SECOND)
    assert parts.to(60) == []
    for change in ("alive", "passes"):
        parts, faults = faulty()
        faults.lose_coordinator(4 * SECOND)
        said = list(parts.said)
        if change == "alive":
            parts.alive = False
        else:
            parts.connection.passes = False
        assert parts.to(60) == said
        assert not parts.membership.coordinator_known


@pytest.mark.parametrize(
    ("direction", "requests_s", "responses_s", "said"),
    [
        ("requests", 5, 0, [(1, "stop")]),
        ("both", 5, 5, [(1, "stop")]),
        ("responses", 0, 5, []),
    ],
)
def test_what_the_network_swallows(
    direction: str, requests_s: int, responses_s: int, said: list[tuple[int, str]]
) -> None:
    parts, faults = faulty()
    faults.partition(4 * SECOND, direction)
    way = parts.connection
    assert (way.no_requests_until_us, way.no_responses_until_us) == (
        requests_s * SECOND,
        responses_s * SECOND,
    )
    assert parts.to(4) == said
    assert parts.to(20) == [*said, (5, "restart"), (5, "nudge")]
    assert parts.membership.coordinator_known


def test_a_shorter_partition_does_not_end_a_longer_one() -> None:
    parts, faults = faulty()
    faults.partition(10 * SECOND, "both")
    faults.partition(4 * SECOND, "both")
    way = parts.connection
    assert (way.no_requests_until_us, way.no_responses_until_us) == (11 * SECOND, 11 * SECOND)


@pytest.mark.parametrize(("for_s", "left_s"), [(31, None), (32, 1), (100, 69)])
def test_a_client_without_responses_closes_its_connection_after_request_timeout(
    for_s: int, left_s: int | None
) -> None:
    """The heartbeat of 2 s has no response by 32 s."""
    parts, faults = faulty()
    faults.partition(for_s * SECOND, "responses")
    found = [what for at_s, what in parts.to(33) if at_s == 32 and "break_for" in what]
    assert found == ([] if left_s is None else [f"break_for {left_s * SECOND}"])


def test_a_client_that_does_not_heartbeat_notices_nothing() -> None:
    parts, faults = faulty()
    parts.membership.heartbeating = False
    faults.partition(100 * SECOND, "responses")
    assert parts.to(90) == []

"""What a process makes of its heartbeats and background commits when they begin, end, or are refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests

SECOND = 1_000_000


class Process:
    """A member that owns one partition. Each request takes 10 ms, and none can take more than 20 ms.

    A commit is due every 5 s. ``real``: the requests that were made real, ``committed``: the positions that
    count, ``position``: what the application has polled so far.
    """

    def __init__(self, heartbeat_interval_ms: int = 3_000) -> None:
        self.now_us = 0
        self.real: list[tuple[str, int]] = []
        self.committed: list[Any] = []
        self.position = 7
        self.membership = SimpleNamespace(owned=("p",), generation=Generation(1, "m"), heartbeating=True)
        sender: Any = SimpleNamespace(
            config=SimpleNamespace(
                session_timeout_ms=10_000,
                heartbeat_interval_ms=heartbeat_interval_ms,
                enable_auto_commit=True,
                auto_commit_interval_ms=5_000,
                profile=SimpleNamespace(heartbeats_wait_in_steps=False),
            ),
            timers=SimpleNamespace(us=lambda ms: ms * 1_000),
            membership=self.membership,
            connection=SimpleNamespace(epoch=0, periodic_latency_us=lambda sent_us: 10_000),
            work=SimpleNamespace(
                partitions=("p",),
                loop=SimpleNamespace(polled_positions=lambda at_us: {"p": (self.position, at_us)}),
            ),
            settled=True,
            reachable=lambda: True,
        )
        network: Any = SimpleNamespace(
            clock=self,
            broker=SimpleNamespace(
                is_current=lambda generation: True,
                is_writing=False,
                fires_timers=False,
                count=lambda *what: None,
            ),
            latency=SimpleNamespace(largest_us=20_000),
        )
        anything: Any = SimpleNamespace(
            commit=self.committed.append, by_member_id={}, series=lambda first_us: None
        )
        made: Any = PeriodicRequests(network, anything, anything, anything, False, sender)
        made._real_requests = SimpleNamespace(
            make_real=lambda series, k: self.real.append((series.api, k)), in_touch=False
        )
        self.requests = made


def test_the_first_commit_of_a_member_that_goes_on_is_real() -> None:
    process = Process()
    process.requests.restart_commits()
    process.requests.restart_commits()
    assert process.real == [("OffsetCommit", 1)]


def test_commits_without_a_break_are_not_made_real() -> None:
    process = Process()
    process.requests.start_commits()
    process.requests.restart_commits()
    assert process.real == []


def test_a_process_is_silent_from_its_last_accepted_heartbeat_if_one_is_refused() -> None:
    """Heartbeats leave at 0 s and 3 s. The coordinator refuses the second."""
    process = Process()
    process.requests.restart()
    process.now_us = 4 * SECOND
    assert process.requests.silent_since_us() is None
    process.requests._heartbeats.refused = 2
    assert process.requests.silent_since_us() == 10_000


def test_commits_carry_the_new_epoch_from_the_time_at_which_the_member_learns_it() -> None:
    """Commits leave at 5 s and 10 s, and the epoch changes at 5.005 s."""
    process = Process()
    process.requests.start_commits()
    process.now_us = 5_005_000
    process.membership.generation = Generation(2, "m")
    process.requests.epoch_changed()
    commits = process.requests._commits
    assert [commits.generation_of(k).id for k in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("refused", "committed"),
    [(0, [{"p": (7, 10 * SECOND)}]), (1, []), (2, []), (3, [{"p": (7, 10 * SECOND)}])],
)
def test_commits_that_the_coordinator_refuses_do_not_count(refused: int, committed: list[Any]) -> None:
    """Commits leave at 5 s, 10 s and 15 s: two have arrived at 11 s."""
    process = Process()
    process.requests.start_commits()
    process.requests._commits.refused = refused
    process.now_us = 11 * SECOND
    process.requests.settle_commits()
    process.requests.settle_commits()
    assert process.committed == committed


def test_the_last_commit_before_the_end_commits_what_was_polled_until_it_left() -> None:
    """The application goes on with other positions before that commit counts."""
    process = Process()
    process.requests.start_commits()
    process.now_us = 6 * SECOND
    process.requests.stop_commits()
    process.position = 100
    process.now_us = 7 * SECOND
    process.requests.settle_commits()
    process.requests.settle_commits()
    assert process.committed == [{"p": (7, 5 * SECOND)}]


def test_a_later_commit_of_everything_takes_the_place_of_the_last_background_commit() -> None:
    process = Process()
    process.requests.start_commits()
    process.now_us = 6 * SECOND
    process.requests.stop_commits()
    process.requests.commits_superseded()
    process.requests.settle_commits()
    assert process.committed == []


@pytest.mark.parametrize(
    ("interval_ms", "deadline_ms", "contact_ms"),
    [(3_000, 10_000, IN_TOUCH), (12_000, 9_999, 0), (12_000, 10_000, 5_010)],
)
def test_heartbeats_further_apart_than_a_session_are_contact_once_each(
    interval_ms: int, deadline_ms: int, contact_ms: int
) -> None:
    """The first one leaves at 0 ms. A session of 10 s that begins then is over at 10,000 ms, but
    a commit has arrived at 5,010 ms."""
    process = Process(interval_ms)
    process.requests.restart()
    assert process.requests.last_contact_ms(deadline_ms) == contact_ms

"""Background commits of a member of a consumer group, and what ends the computing of its heartbeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.storms.world.consumer_group.requests import ConsumerGroupRequests

SECOND = 1_000_000


class Process:
    """A member that owns one partition. A request takes 10 ms, and a commit is due every 5 s.

    ``said``: what its parts were asked, ``committed``: the positions that count, by the time of their poll.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self.said: list[str] = []
        self.committed: list[Any] = []
        sender: Any = SimpleNamespace(
            config=SimpleNamespace(
                client_id="c",
                session_timeout_ms=10_000,
                enable_auto_commit=True,
                auto_commit_interval_ms=5_000,
                profile=SimpleNamespace(heartbeats_wait_in_steps=False),
            ),
            timers=SimpleNamespace(us=lambda ms: ms * 1_000),
            membership=SimpleNamespace(owned=("p",), generation=Generation(1, "m"), heartbeating=True),
            connection=SimpleNamespace(epoch=0, periodic_latency_us=lambda sent_us: 10_000),
            work=SimpleNamespace(
                partitions=("p",), loop=SimpleNamespace(polled_positions=lambda at_us: {"p": at_us})
            ),
            settled=True,
            reachable=lambda: True,
            next_network_run_us=lambda: 8 * SECOND,
            runs_again=lambda: self.said.append("runs again"),
        )
        environment: Any = SimpleNamespace(
            network=SimpleNamespace(
                clock=self,
                broker=SimpleNamespace(
                    is_current=lambda generation: True,
                    is_writing=False,
                    fires_timers=False,
                    count=lambda *what: None,
                ),
                latency=SimpleNamespace(largest_us=20_000),
            ),
            records=SimpleNamespace(commit=self.committed.append),
            sessions=SimpleNamespace(by_member_id={}),
            sends_heartbeats=False,
            seed=1,
        )
        self.heartbeats: Any = SimpleNamespace(is_quiet=True, wake=lambda: self.said.append("wake"))
        made: Any = ConsumerGroupRequests(environment, sender, self.heartbeats)
        made._real_requests = SimpleNamespace(
            make_real=lambda series, k: self.said.append(f"{series.api} {k}"), in_touch=False
        )
        self.requests = made


def test_a_process_that_stands_still_sends_no_commits_and_its_heartbeats_are_not_computed() -> None:
    process = Process()
    process.requests.start_commits()
    process.now_us = 6 * SECOND
    process.requests.stop()
    process.now_us = 12 * SECOND
    process.requests.settle_commits()
    assert process.said == ["wake"]
    assert process.committed == [{"p": 5 * SECOND}]


def test_a_process_that_runs_again_runs_its_network_thread_and_commits() -> None:
    process = Process()
    process.requests.restart()
    assert process.said == ["runs again", "OffsetCommit 1"]


def test_the_next_heartbeat_leaves_when_the_network_thread_runs_and_is_sent() -> None:
    process = Process()
    assert process.requests.next_heartbeat_us() == 8 * SECOND
    assert process.said == ["wake"]


def test_the_coordinator_counts_on_heartbeats_as_long_as_they_are_computed() -> None:
    process = Process()
    assert process.requests.last_contact_ms(10_000) == IN_TOUCH
    process.heartbeats.is_quiet = False
    assert process.requests.last_contact_ms(10_000) is None


def test_if_the_generation_is_over_heartbeats_are_sent_and_so_is_the_next_commit() -> None:
    process = Process()
    process.requests.start_commits()
    process.now_us = 6 * SECOND
    process.requests.make_next_real(generation_over=True)
    assert process.said == ["wake", "OffsetCommit 2"]


def test_if_the_group_has_changed_alone_heartbeats_are_sent_and_commits_go_on() -> None:
    process = Process()
    process.requests.start_commits()
    process.now_us = 6 * SECOND
    process.requests.make_next_real(generation_over=False)
    assert process.said == ["wake"]

"""When the heartbeats of one process begin, when they leave, and which of them the coordinator hears of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.contract import COOPERATIVE, EAGER
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.profiles import profile
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from tests.storms.test_clients_by_hand import until

MS = 1_000


class Process:
    """A member of generation 5 that owns one partition, and its coordinator.

    Each request takes 10 ms, and none can take more than 20 ms. A heartbeat is due every 3 s, a commit every
    5 s, and a session lasts 10 s. ``said``: when (ms) the coordinator heard what: a request that arrives, how
    many computed ones it has answered, that heartbeats have stopped. ``counts``: when (ms) a computed commit
    counts, and when it was sent (s). ``works``: what the timer of the heartbeats was told of the work.
    """

    def __init__(self, exact: bool = False, late_us: int = 0, client: str = "java", **config: Any) -> None:
        self.clock = Clock()
        self.said: list[tuple[int, str]] = []
        self.counts: list[tuple[int, float]] = []
        self.works: list[tuple[int, int, int]] = []
        self.reaches = True
        self.share = (4, 50 * MS)
        self.membership = SimpleNamespace(
            owned=("p",),
            generation=Generation(5, "m"),
            heartbeating=True,
            rebalance_protocol=EAGER,
        )
        self.work = SimpleNamespace(
            partitions=("p",), loop=SimpleNamespace(polled_positions=lambda at_us: {("t", 0): at_us})
        )
        connection: Any = SimpleNamespace(epoch=0, periodic_latency_us=lambda sent_us: 10 * MS)
        sender: Any = SimpleNamespace(
            config=ConsumerConfig(
                "g", "c", ("t",), profile=profile(client), **{"session_timeout_ms": 10_000, **config}
            ),
            timers=SimpleNamespace(us=lambda ms: ms * MS),
            membership=self.membership,
            connection=connection,
            work=self.work,
            reachable=lambda: self.reaches,
            work_share=lambda: self.share,
            alive=True,
            settled=True,
        )
        self.sender = sender
        self.broker: Any = SimpleNamespace(
            answered_until_us=0,
            is_current=lambda generation: True,
            is_failing=False,
            is_writing=False,
            fires_timers=False,
            count=self._count,
            heartbeat=self._heartbeat,
            handle=lambda request, receive: self.note("commit arrives"),
            is_of_earlier_epoch=lambda sent: False,
            out_of_touch=lambda member, contact_us: self.note(f"{member} silent since {contact_us / MS:g}"),
        )
        network: Any = SimpleNamespace(
            clock=self.clock, broker=self.broker, latency=SimpleNamespace(largest_us=20 * MS)
        )
        records: Any = SimpleNamespace(commit=self._commit)
        sessions: Any = SimpleNamespace(by_member_id={})
        timer: Any = SimpleNamespace(series=lambda first_us: self._lateness(late_us))
        self.by_member_id: dict[str, Any] = sessions.by_member_id
        self.requests = PeriodicRequests(network, records, sessions, timer, exact, sender)

    def _lateness(self, late_us: int) -> Any:
        """Each heartbeat leaves so much behind its interval."""
        return SimpleNamespace(
            total_us=lambda k: k * late_us,
            mean_us=late_us,
            most_us=late_us,
            works=lambda *what: self.works.append(what),
        )

    def _heartbeat(self, config: ConsumerConfig, generation: Generation) -> Any:
        self.note(f"heartbeat of {generation.id} arrives")
        return NO_ERROR

    def _commit(self, positions: Any) -> None:
        self.counts.append((self.clock.now_us // MS, positions["t", 0] / 1_000_000))

    def _count(self, response: tuple[str, str | None], number: int) -> None:
        if number:
            self.note(f"{number} {response[0]}")

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us // MS, what))

    def until(self, ms: float) -> PeriodicRequests:
        until(self.clock, round(ms * MS))
        return self.requests

    def heard(self, ms: float) -> list[tuple[int, str]]:
        """What the coordinator hears from now on until then."""
        before = len(self.said)
        self.until(ms)
        return self.said[before:]

    @property
    def next_ms(self) -> float:
        """When the next heartbeat leaves."""
        return self.requests.next_heartbeat_us() / MS


# -- they begin


@pytest.mark.parametrize(("wanted", "reaches", "beats"), [(1, 1, True), (0, 1, False), (1, 0, False)])
def test_heartbeats_run_while_the_membership_wants_them_and_the_coordinator_can_be_reached(
    wanted: int, reaches: int, beats: bool
) -> None:
    process = Process()
    process.membership.heartbeating, process.reaches = bool(wanted), bool(reaches)
    process.until(1_000).follow_membership()
    assert process.next_ms == (4_000 if beats else 1_000)
    assert process.by_member_id == ({"m": process.requests} if beats else {})


def test_heartbeats_go_on_while_the_generation_is_the_same() -> None:
    process = Process()
    process.requests.follow_membership()
    process.until(2_000).follow_membership()
    assert process.next_ms == 3_000


def test_another_generation_has_heartbeats_of_its_own() -> None:
    """Those of generation 5 left at 3 s; those of generation 6 begin at 4 s."""
    process = Process()
    process.requests.follow_membership()
    process.until(4_000)
    process.membership.generation = Generation(6, "m")
    process.requests.follow_membership()
    assert process.next_ms == 7_000
    process.requests.make_next_real(generation_over=False)
    assert process.heard(60_000) == [(7_010, "heartbeat of 6 arrives")]


def test_heartbeats_end_when_the_membership_does_not_want_them() -> None:
    process = Process()
    process.requests.follow_membership()
    process.until(4_000)
    process.membership.heartbeating = False
    process.requests.follow_membership()
    assert process.said == [(4_000, "1 Heartbeat")]
    assert process.next_ms == 4_000
    process.requests.make_next_real(generation_over=True)
    assert process.heard(60_000) == []


@pytest.mark.parametrize(("cooperative", "first_ms"), [(True, 1_500), (False, 4_000)])
def test_a_cooperative_member_of_franz_go_sends_its_first_heartbeat_sooner(
    cooperative: bool, first_ms: int
) -> None:
    process = Process(client="franz-go")
    process.membership.rebalance_protocol = COOPERATIVE if cooperative else EAGER
    process.until(1_000).follow_membership()
    assert process.next_ms == first_ms


def test_librdkafka_sends_a_heartbeat_when_its_last_one_is_an_interval_ago() -> None:
    """The first one leaves at 1 s, the second at 4 s. A series that sent none changes nothing."""
    process = Process(client="librdkafka")
    process.until(1_000).follow_membership()
    assert process.next_ms == 1_000
    process.until(4_500)
    for generation in (6, 7):
        process.membership.generation = Generation(generation, "m")
        process.requests.follow_membership()
        assert process.next_ms == 7_000


@pytest.mark.parametrize(
    ("client", "duration_ms", "first_ms"),
    [
        ("java", 1_000, 4_500),
        ("java", 3_500, 5_000),
        ("java", 0, 4_500),
        ("aiokafka", 1_000, 5_500),
    ],
)
def test_a_heartbeat_that_the_assignor_held_back_leaves_as_soon_as_it_can(
    client: str, duration_ms: int, first_ms: int
) -> None:
    """The assignor begins at 1.5 s. Heartbeats of an assignor that takes no time begin anew; aiokafka sends
    none while it synchronizes."""
    process = Process(client=client)
    process.until(1_500).hold_heartbeats(duration_ms * MS)
    process.until(1_500 + duration_ms).follow_membership()
    assert process.next_ms == first_ms


def test_a_held_back_heartbeat_leaves_once() -> None:
    """The assignor runs from 1 s to 2 s. The next generation's heartbeats begin an interval behind 5 s."""
    process = Process()
    process.until(1_000).hold_heartbeats(1_000_000)
    process.until(2_000).follow_membership()
    process.until(5_000)
    process.membership.generation = Generation(6, "m")
    process.requests.follow_membership()
    assert process.next_ms == 8_000


def test_the_assignor_ends_the_heartbeats() -> None:
    process = Process()
    process.requests.follow_membership()
    process.until(4_000).hold_heartbeats(1_000_000)
    assert process.said == [(4_000, "1 Heartbeat")]
    assert process.next_ms == 4_000


def test_heartbeats_begin_at_once_when_a_process_goes_on() -> None:
    process = Process()
    process.until(1_000).restart()
    process.requests.make_next_real(generation_over=False)
    assert process.heard(2_000) == [(1_010, "heartbeat of 5 arrives")]
    process.requests.restart()
    assert process.next_ms == 4_000, "they go on as they were"


@pytest.mark.parametrize("missing", ["wanted", "reachable"])
def test_a_process_that_goes_on_without_a_group_or_a_coordinator_sends_no_heartbeat(missing: str) -> None:
    process = Process()
    process.membership.heartbeating, process.reaches = missing != "wanted", missing != "reachable"
    process.sender.settled = False
    process.requests.restart()
    process.requests.make_next_real(generation_over=True)
    assert process.heard(60_000) == []


# -- the timer


def test_the_timer_of_the_heartbeats_is_late_and_that_of_the_commits_is_not() -> None:
    process = Process(late_us=7 * MS)
    process.requests.follow_membership()
    process.requests.start_commits()
    assert process.next_ms == 3_007
    process.requests.make_next_real(generation_over=True)
    assert process.heard(60_000) == [(3_017, "heartbeat of 5 arrives"), (5_010, "commit arrives")]


@pytest.mark.parametrize(("batch_ms", "most_ms"), [(50, 50), (500, 100)])
def test_work_delays_a_heartbeat_by_a_batch_or_by_retry_backoff_ms(batch_ms: int, most_ms: int) -> None:
    """The application works in 4 of 16 parts of its time. The heartbeat of 3 s stays as it is."""
    process = Process()
    process.share = (4, batch_ms * MS)
    process.requests.follow_work()
    process.requests.follow_membership()
    process.until(1_000).follow_work()
    assert process.works == [(1, 4, most_ms * MS)]


def test_work_does_not_delay_the_heartbeats_of_a_client_that_does_not_wait_in_steps() -> None:
    process = Process(client="librdkafka")
    process.requests.follow_membership()
    process.requests.follow_work()
    assert process.works == []


@pytest.mark.parametrize("settled", [True, False])
def test_a_process_that_goes_on_works_again_when_it_has_joined(settled: bool) -> None:
    process = Process()
    process.sender.settled = settled
    process.requests.restart()
    assert len(process.works) == settled


# -- they are real


def test_in_exact_mode_every_heartbeat_arrives_and_none_is_computed() -> None:
    process = Process(exact=True)
    process.requests.follow_membership()
    process.until(7_000).stop()
    assert process.heard(60_000) == []
    assert process.said == [(3_010, "heartbeat of 5 arrives"), (6_010, "heartbeat of 5 arrives")]


@pytest.mark.parametrize("why", ["another generation", "a write is under way"])
def test_the_first_heartbeat_is_real_if_the_coordinator_may_refuse_it_or_hold_its_answer_back(
    why: str,
) -> None:
    process = Process()
    process.broker.is_current = lambda generation: why != "another generation"
    process.broker.is_writing = why == "a write is under way"
    process.requests.follow_membership()
    process.broker.is_writing = False
    assert process.heard(60_000) == [(3_010, "heartbeat of 5 arrives")]


@pytest.mark.parametrize(("at_ms", "arrives_ms"), [(3_000, 3_010), (3_010, 3_010), (3_011, 6_010)])
def test_the_next_heartbeat_to_arrive_is_real_when_the_group_changes(at_ms: int, arrives_ms: int) -> None:
    process = Process()
    process.requests.follow_membership()
    process.until(at_ms).make_next_real(generation_over=False)
    assert process.heard(60_000) == [(arrives_ms, "heartbeat of 5 arrives")]


def test_heartbeats_are_not_made_real_by_a_new_epoch() -> None:
    process = Process()
    process.requests.follow_membership()
    process.requests.epoch_changes()
    assert process.heard(60_000) == []

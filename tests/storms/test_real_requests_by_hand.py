"""What becomes of a heartbeat or commit that is sent: when it arrives, and what its answer does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import HeartbeatResponse, OffsetCommitResponse
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.periodic_requests.real_requests import RealRequests
from groupstorm.storms.world.periodic_requests.schedule import HEARTBEAT, OFFSET_COMMIT, RequestSchedule
from tests.storms.test_clients_by_hand import until

SECOND = 1_000_000
MS = 1_000


class Requests:
    """A member and its coordinator, 10 ms apart in both directions; a request is due every 3 s.

    ``answers``: what the coordinator says, the last one again and again; None: it cannot say it at once.
    ``waiting``: the requests that wait for their answers. ``said``: when (ms) what happened.
    """

    def __init__(self, *answers: Error | None, exact: bool = False) -> None:
        self.clock = Clock()
        self.passes_us = 0
        self.said: list[tuple[int, str]] = []
        self.waiting: list[Any] = []
        self.answers: list[Error | None] = [*answers]
        self.epoch_known = True
        self.receives = True
        self.positions: dict[Any, int] = {("t", 0): 7}
        self.broker = SimpleNamespace(
            heartbeat=self._heartbeat,
            handle=self._handle,
            is_writing=False,
            fires_timers=False,
            is_failing=False,
            is_of_earlier_epoch=lambda sent: not self.epoch_known,
        )
        self.connection: Any = SimpleNamespace(
            epoch=0,
            periodic_latency_us=lambda sent_us: 10 * MS,
            periodic_response_latency_us=lambda sent_us: 10 * MS,
            response_passes_us=lambda now_us: max(now_us, self.passes_us),
        )
        sender: Any = SimpleNamespace(
            config=ConsumerConfig(group_id="g", client_id="c", topics=("t",)),
            membership=SimpleNamespace(
                commit_answered=lambda error, sent: self.note(f"commit: {error.name} in {sent.id}")
            ),
            connection=self.connection,
            work=SimpleNamespace(loop=SimpleNamespace(polled_positions=self._polled)),
            receives=lambda: self.receives,
            heartbeat_answered=lambda error, sent: self.note(f"heartbeat: {error.name} in {sent.id}"),
            nudge=lambda: self.note("nudge"),
        )
        network: Any = SimpleNamespace(clock=self.clock, broker=self.broker)
        records: Any = SimpleNamespace(commit=lambda positions: self.note(f"counts: {positions['t', 0]}"))
        self.real = RealRequests(network, records, exact, sender, lambda: self.note("follow"))

    def series(self, api: str = HEARTBEAT) -> RequestSchedule:
        return RequestSchedule(api, 0, 3 * SECOND, Generation(5, "m"), self.connection, 20 * MS)

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us // MS, what))

    def _polled(self, sent_us: int) -> dict[Any, int]:
        return {partition: position + sent_us // SECOND for partition, position in self.positions.items()}

    def _answer(self) -> Error | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _heartbeat(self, config: ConsumerConfig, generation: Generation) -> Error | None:
        self.note(f"arrives in {generation.id}")
        return self._answer()

    def _handle(self, request: Any, receive: Any) -> None:
        self.note(f"waits: {type(request).__name__}")
        self.waiting.append(receive)

    def until(self, ms: int) -> list[tuple[int, str]]:
        """What is said until then."""
        before = len(self.said)
        until(self.clock, ms * MS)
        return self.said[before:]


NO_ERROR, REBALANCING = Error.NONE, Error.REBALANCE_IN_PROGRESS
UNKNOWN, FAILED = Error.UNKNOWN_MEMBER_ID, Error.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("answer", "in_touch", "refused"),
    [(NO_ERROR, False, 0), (REBALANCING, False, 0), (None, False, 0), (UNKNOWN, True, 2)],
)
def test_a_heartbeat_that_is_accepted_begins_the_session_anew(
    answer: Error | None, in_touch: bool, refused: int
) -> None:
    requests = Requests(answer)
    heartbeats = requests.series()
    requests.real.in_touch = True
    requests.real.make_real(heartbeats, 2)
    assert requests.until(6_009) == []
    requests.until(6_010)
    assert (requests.real.in_touch, heartbeats.refused) == (in_touch, refused)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("api", "said"), [(OFFSET_COMMIT, ["own", "other"]), (HEARTBEAT, ["other", "own"])])
def test_a_commit_arrives_before_other_requests_of_its_instant(
    exact: bool, api: str, said: list[str]
) -> None:
    requests, order = Requests(NO_ERROR, exact=exact), list[str]()
    requests.note = lambda what: order.append("own")  # type: ignore[method-assign]
    requests.clock.at(3_010 * MS, order.append, "other")
    if exact:
        requests.real.simulate_each(requests.series(api))
    else:
        requests.real.make_real(requests.series(api), 1)
    requests.until(3_010)
    assert list(dict.fromkeys(order)) == said


def test_the_first_refusal_counts() -> None:
    requests = Requests(UNKNOWN)
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    requests.real.make_real(heartbeats, 4)
    requests.until(20_000)
    assert heartbeats.refused == 2


def test_an_error_travels_to_the_member_and_the_next_heartbeat_is_sent_too() -> None:
    requests = Requests(REBALANCING, NO_ERROR)
    requests.real.make_real(requests.series(), 2)
    assert requests.until(60_000) == [
        (6_010, "arrives in 5"),
        (6_020, "heartbeat: REBALANCE_IN_PROGRESS in 5"),
        (6_020, "follow"),
        (6_020, "nudge"),
        (9_010, "arrives in 5"),
    ]


def test_the_next_heartbeat_is_sent_once_however_often_it_is_wanted() -> None:
    """The second arrives while the coordinator writes, and is refused too."""
    requests = Requests(REBALANCING, NO_ERROR)
    requests.broker.is_writing = True
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    requests.until(8_000)
    requests.broker.is_writing = False
    assert heartbeats.real == (2, 3)
    assert requests.until(60_000) == [(9_010, "arrives in 5")]


def test_nobody_counts_on_heartbeats_at_first() -> None:
    assert Requests().real.in_touch is False


def test_an_answer_without_an_error_ends_the_matter() -> None:
    requests = Requests(NO_ERROR)
    requests.real.make_real(requests.series(), 2)
    assert requests.until(60_000) == [(6_010, "arrives in 5")]


@pytest.mark.parametrize("error", [NO_ERROR, FAILED])
def test_an_answer_that_waits_for_a_write_comes_after_it(error: Error) -> None:
    requests = Requests(None)
    requests.real.make_real(requests.series(), 2)
    assert requests.until(6_500) == [(6_010, "arrives in 5"), (6_010, "waits: Heartbeat")]
    requests.waiting[0](HeartbeatResponse(error))
    told = [(6_510, f"heartbeat: {error.name} in 5"), (6_510, "follow"), (6_510, "nudge")]
    assert requests.until(6_600) == (told if error else [])


def test_a_request_is_made_real_once() -> None:
    requests = Requests(NO_ERROR)
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    requests.real.make_real(heartbeats, 2)
    assert requests.until(60_000) == [(6_010, "arrives in 5")]
    assert heartbeats.real == (2,)


def test_a_request_under_way_arrives_when_it_would_have_but_not_in_the_past() -> None:
    requests = Requests(NO_ERROR)
    requests.until(6_005)
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    assert requests.until(9_500) == [(6_010, "arrives in 5")]
    requests.real.make_real(heartbeats, 3)
    assert requests.until(60_000) == [(9_500, "arrives in 5")]


def test_in_exact_mode_every_request_arrives_and_none_is_made_real() -> None:
    requests = Requests(NO_ERROR, exact=True)
    heartbeats = requests.series()
    requests.real.simulate_each(heartbeats)
    requests.real.make_real(heartbeats, 2)
    heartbeats.end_us = 9 * SECOND
    assert requests.until(60_000) == [(3_010, "arrives in 5"), (6_010, "arrives in 5")]
    assert heartbeats.real == ()


def test_in_exact_mode_an_error_makes_nothing_real() -> None:
    requests = Requests(REBALANCING, exact=True)
    heartbeats = requests.series()
    requests.real.simulate_each(heartbeats)
    heartbeats.end_us = 6 * SECOND
    assert [what for _, what in requests.until(60_000)].count("arrives in 5") == 1
    assert heartbeats.real == ()


@pytest.mark.parametrize(
    ("end_us", "lost_us", "arrives"),
    [
        (None, -1, True),
        (6 * SECOND, -1, False),
        (6 * SECOND + 1, -1, True),
        (None, 6 * SECOND, True),
        (None, 6 * SECOND + 1, False),
        (None, 6_010 * MS - 1, False),
        (None, 6_010 * MS, True),
        (6 * SECOND + 1, 6 * SECOND + 2, False),
    ],
)
def test_what_was_not_sent_or_was_lost_on_the_way_does_not_arrive(
    end_us: int | None, lost_us: int, arrives: bool
) -> None:
    requests = Requests(NO_ERROR)
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    heartbeats.end_us, requests.real.lost_us = end_us, lost_us
    assert bool(requests.until(60_000)) is arrives
    assert heartbeats.real == ((2,) if arrives else ())


def test_the_request_behind_a_real_one_is_forgotten_if_its_series_has_ended_by_then() -> None:
    requests = Requests(REBALANCING)
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    requests.until(8_000)
    heartbeats.end_us = 9 * SECOND
    assert requests.until(60_000) == []
    assert heartbeats.real == (2,)


def test_while_the_coordinator_writes_the_next_request_is_real_too() -> None:
    requests = Requests(NO_ERROR)
    requests.broker.is_writing = True
    heartbeats = requests.series()
    requests.real.make_real(heartbeats, 2)
    requests.until(8_000)
    requests.broker.is_writing = False
    assert [at_ms for at_ms, _ in requests.until(60_000)] == [9_010]


@pytest.mark.parametrize(
    ("receives", "epoch", "told"), [(True, 0, True), (False, 0, False), (True, 1, False)]
)
def test_an_answer_is_lost_with_its_connection_or_if_the_process_cannot_receive(
    receives: bool, epoch: int, told: bool
) -> None:
    requests = Requests(REBALANCING, NO_ERROR)
    requests.real.make_real(requests.series(), 2)
    requests.until(6_015)
    requests.receives, requests.connection.epoch = receives, epoch
    assert bool(requests.until(8_000)) is told


def test_an_answer_waits_until_responses_pass_again() -> None:
    requests = Requests(REBALANCING, NO_ERROR)
    requests.passes_us = 7 * SECOND
    requests.real.make_real(requests.series(), 2)
    assert requests.until(8_000)[1:2] == [(7_010, "heartbeat: REBALANCE_IN_PROGRESS in 5")]


# -- background commits ----------------------------------------------------------------------------


def commit_response(error: Error) -> OffsetCommitResponse:
    return OffsetCommitResponse((("t", 0, error),))


def test_a_commit_counts_when_it_arrives_with_what_was_polled_when_it_left() -> None:
    requests = Requests(NO_ERROR)
    requests.real.make_real(requests.series(OFFSET_COMMIT), 2)
    assert requests.until(60_000) == [(6_010, "waits: OffsetCommit"), (6_010, "counts: 13")]
    requests.waiting[0](commit_response(NO_ERROR))
    assert requests.until(90_000) == []


@pytest.mark.parametrize("under_way", [{}, {("t", 0): 9}])
def test_a_commit_under_way_when_its_series_ends_commits_what_was_polled_then(
    under_way: dict[Any, int],
) -> None:
    """The process may have given its partitions up by the time at which the commit arrives."""
    requests = Requests(NO_ERROR)
    commits = requests.series(OFFSET_COMMIT)
    requests.real.make_real(commits, 2)
    commits.end_us, commits.under_way = 6_005 * MS, under_way
    requests.positions = {}
    arrives = [(6_010, "waits: OffsetCommit"), (6_010, "counts: 9")]
    assert requests.until(60_000) == (arrives if under_way else [])


def test_a_commit_without_positions_is_not_sent() -> None:
    requests = Requests(NO_ERROR)
    requests.positions = {}
    requests.real.make_real(requests.series(OFFSET_COMMIT), 2)
    assert requests.until(60_000) == []


@pytest.mark.parametrize(("is_failing", "refused"), [(True, 0), (False, 1)])
def test_a_commit_that_may_be_refused_counts_when_it_is_answered(is_failing: bool, refused: int) -> None:
    requests = Requests(NO_ERROR)
    requests.broker.is_failing = is_failing
    commits = requests.series(OFFSET_COMMIT)
    commits.refused = refused
    requests.real.make_real(commits, 2)
    assert requests.until(7_000) == [(6_010, "waits: OffsetCommit")]
    requests.waiting[0](commit_response(NO_ERROR))
    assert requests.said[-1] == (7_000, "counts: 13")


@pytest.mark.parametrize("settled", [1, 2, 3])
def test_a_commit_does_not_count_behind_a_later_one(settled: int) -> None:
    requests = Requests(NO_ERROR)
    commits = requests.series(OFFSET_COMMIT)
    commits.settled = settled
    requests.real.make_real(commits, 2)
    requests.until(7_000)
    assert ((6_010, "counts: 13") in requests.said) is (settled < 2)
    assert commits.settled == max(settled, 2)


@pytest.mark.parametrize(("error", "refused"), [(Error.ILLEGAL_GENERATION, 2), (FAILED, 0)])
def test_a_commit_that_was_not_written_was_not_refused_at_once(error: Error, refused: int) -> None:
    requests = Requests(NO_ERROR)
    requests.broker.is_failing = True
    commits = requests.series(OFFSET_COMMIT)
    requests.real.make_real(commits, 2)
    requests.until(6_500)
    requests.waiting[0](commit_response(error))
    assert commits.refused == refused
    assert requests.until(8_000) == [
        (6_510, f"commit: {error.name} in 5"),
        (6_510, "follow"),
        (6_510, "nudge"),
    ]
    assert commits.real == (2, 3)


def test_the_first_refused_commit_counts() -> None:
    requests = Requests(NO_ERROR)
    commits = requests.series(OFFSET_COMMIT)
    commits.refused = 1
    requests.real.make_real(commits, 2)
    requests.until(6_500)
    requests.waiting[0](commit_response(Error.ILLEGAL_GENERATION))
    assert commits.refused == 1


@pytest.mark.parametrize(("epoch_known", "times"), [(True, 1), (False, 2)])
def test_a_commit_of_an_epoch_that_is_over_makes_the_next_one_real(epoch_known: bool, times: int) -> None:
    requests = Requests(NO_ERROR)
    requests.epoch_known = epoch_known
    requests.real.make_real(requests.series(OFFSET_COMMIT), 2)
    requests.until(7_000)
    requests.epoch_known = True
    requests.until(60_000)
    assert len(requests.waiting) == times

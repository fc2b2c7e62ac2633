"""When the background commits of one process begin and end, and what they commit."""

from __future__ import annotations

import pytest

from groupstorm.clients.member_session import Generation
from tests.storms.test_heartbeats_of_a_process_by_hand import MS, Process


def committing(started_ms: float = 0, exact: bool = False) -> Process:
    """The first commit leaves 5 s after that; there are no heartbeats."""
    process = Process(exact=exact)
    process.until(started_ms).start_commits()
    return process


# -- they begin


@pytest.mark.parametrize("missing", ["partitions", "enable.auto.commit", "coordinator"])
def test_who_has_nothing_to_commit_or_must_not_commit_sends_no_commits(missing: str) -> None:
    process = Process(enable_auto_commit=missing != "enable.auto.commit")
    process.reaches = missing != "coordinator"
    if missing == "partitions":
        process.membership.owned = ()
    process.requests.start_commits()
    process.requests.make_next_real(generation_over=True)
    assert process.heard(60_000) == []


def test_commits_that_are_running_go_on() -> None:
    process = committing()
    process.until(2_000).start_commits()
    process.requests.make_next_real(generation_over=True)
    assert process.heard(60_000) == [(5_010, "commit arrives")]


def test_the_last_commit_of_a_series_counts_before_the_next_series_begins() -> None:
    process = committing()
    process.until(6_000).stop_commits()
    process.until(7_000).start_commits()
    assert process.counts == [(7_000, 5)]


@pytest.mark.parametrize("settled", [True, False])
def test_the_first_commit_of_a_process_that_goes_on_is_real_if_it_has_joined(settled: bool) -> None:
    process = Process()
    process.sender.settled = settled
    process.requests.restart_commits()
    assert process.heard(60_000) == ([(5_010, "commit arrives")] if settled else [])


def test_commits_do_not_wait_for_the_work_of_the_application() -> None:
    process = committing()
    process.requests.follow_work()
    assert process.works == []


# -- they are real


def test_in_exact_mode_every_commit_arrives_and_none_is_computed() -> None:
    process = committing(exact=True)
    process.until(11_000).stop_commits()
    process.until(60_000).settle_commits()
    assert process.said == [(5_010, "commit arrives"), (10_010, "commit arrives")]
    assert process.counts == [(5_010, 5), (10_010, 10)]


@pytest.mark.parametrize("why", ["another generation", "a write is under way"])
def test_the_first_commit_is_real_if_the_coordinator_may_refuse_it_or_hold_its_answer_back(why: str) -> None:
    process = Process()
    process.broker.is_current = lambda generation: why != "another generation"
    process.broker.is_writing = why == "a write is under way"
    process.requests.start_commits()
    process.broker.is_writing = False
    assert process.heard(60_000) == [(5_010, "commit arrives")]


@pytest.mark.parametrize("why", ["the generation is over", "another epoch", "a write fails"])
def test_what_may_be_refused_is_real_and_what_has_arrived_counts_before(why: str) -> None:
    """Commits leave at 5 s, 10 s and so on. At 10.005 s the second one is under way."""
    process = committing()
    process.until(10_005)
    match why:
        case "the generation is over":
            process.requests.make_next_real(generation_over=True)
        case "another epoch":
            process.requests.epoch_changes()
        case _:
            process.requests.write_holds_responses()
    assert process.counts == [(10_005, 5)]
    assert process.heard(60_000) == [(10_010, "commit arrives")]
    assert process.counts[1:] == [(10_010, 10)]


@pytest.mark.parametrize("fires_timers", [True, False])
@pytest.mark.parametrize("why", ["the generation is over", "another epoch"])
def test_at_one_instant_timers_come_before_a_commit_and_other_requests_behind_it(
    why: str, fires_timers: bool
) -> None:
    """The second commit arrives at 10.010 s, when the group changes by a timer or by a request."""
    process = committing()
    process.until(10_010)
    process.broker.fires_timers = fires_timers
    if why == "another epoch":
        process.requests.epoch_changes()
    else:
        process.requests.make_next_real(generation_over=True)
    process.broker.fires_timers = False
    assert process.counts == [(10_010, 5 if fires_timers else 10)]
    assert process.heard(60_000) == [(10_010 if fires_timers else 15_010, "commit arrives")]


@pytest.mark.parametrize(("fires_timers", "counts"), [(True, [(10_010, 10)]), (False, [])])
def test_a_commit_of_everything_by_a_timer_takes_the_place_of_those_that_arrived_before(
    fires_timers: bool, counts: list[tuple[int, int]]
) -> None:
    process = committing()
    process.until(10_010)
    process.broker.fires_timers = fires_timers
    process.requests.commits_superseded()
    process.broker.fires_timers = False
    process.requests.settle_commits()
    assert process.counts == counts


def test_commits_are_accepted_while_the_group_prepares_a_rebalance() -> None:
    process = committing()
    process.until(10_005).make_next_real(generation_over=False)
    assert process.heard(60_000) == []
    assert process.counts == []


def test_heartbeats_and_commits_are_refused_if_a_write_fails() -> None:
    process = committing()
    process.requests.follow_membership()
    process.requests.write_holds_responses()
    assert process.heard(60_000) == [(3_010, "heartbeat of 5 arrives"), (5_010, "commit arrives")]


@pytest.mark.parametrize("why", ["the generation is over", "another epoch", "a write fails"])
def test_without_commits_none_is_made_real(why: str) -> None:
    process = Process()
    match why:
        case "the generation is over":
            process.requests.make_next_real(generation_over=True)
        case "another epoch":
            process.requests.epoch_changes()
            process.membership.generation = Generation(6, "m")
            process.requests.epoch_changed()
        case _:
            process.requests.write_holds_responses()
    assert process.heard(60_000) == []


# -- they end


def test_commits_are_counted_when_they_end() -> None:
    """They leave at 5 s, 10 s and 15 s."""
    process = committing()
    process.until(16_000).stop_commits()
    assert process.said == [(16_000, "3 OffsetCommit")]
    assert process.heard(60_000) == []


def test_a_commit_under_way_when_they_end_arrives() -> None:
    """They leave at 5 s, 10 s and 15 s. The first two were computed."""
    process = committing()
    process.until(15_005).stop_commits()
    assert process.said == [(15_005, "2 OffsetCommit")]
    assert process.heard(60_000) == [(15_010, "commit arrives")]
    assert process.counts == [(15_010, 15)]


def test_a_commit_under_way_when_its_process_dies_commits_what_it_said() -> None:
    """It left at 5 s, and the process has no partitions when it arrives."""
    process = committing()
    process.until(5_005).stop()
    process.work.loop.polled_positions = lambda at_us: {}
    assert process.heard(60_000) == [(5_010, "commit arrives")]
    assert process.counts == [(5_010, 5)]


def test_commits_that_end_before_the_first_one_is_due_send_nothing() -> None:
    process = committing()
    process.until(5).stop_commits()
    process.until(60_000).settle_commits()
    assert (process.said, process.counts) == ([], [])


def test_a_process_that_stops_sends_no_more_commits() -> None:
    process = committing()
    process.until(6_000).stop()
    assert process.said == [(6_000, "1 OffsetCommit")]
    process.requests.make_next_real(generation_over=True)
    assert process.heard(60_000) == []


def test_what_has_arrived_counts_when_the_connection_is_lost_and_the_rest_is_lost_with_it() -> None:
    """Commits leave at 5 s, 10 s and 15 s."""
    process = committing()
    process.until(15_005).cut_off()
    assert process.counts == [(15_005, 10)]
    assert process.heard(60_000) == []
    assert process.said == [(15_005, "2 OffsetCommit")]


def test_a_connection_is_lost_without_any_requests() -> None:
    process = Process()
    process.requests.cut_off()
    process.requests.first_positions_known()
    assert (process.heard(60_000), process.counts) == ([], [])


@pytest.mark.parametrize(("at_ms", "counts"), [(15_009, [(16_000, 15)]), (15_010, [])])
def test_a_commit_of_everything_takes_the_place_of_those_that_have_arrived_though_more_follow(
    at_ms: int, counts: list[tuple[int, float]]
) -> None:
    """Commits leave at 5 s, 10 s, 15 s and 20 s: the third arrives at 15.01 s."""
    process = committing()
    process.until(at_ms).commits_superseded()
    process.until(16_000).settle_commits()
    assert process.counts == counts
    process.until(21_000).settle_commits()
    assert process.counts == [*counts, (21_000, 20)]


def test_a_commit_of_everything_does_not_make_an_earlier_one_count_again() -> None:
    process = committing()
    process.until(11_000).settle_commits()
    process.requests._commits.settled = 7  # type: ignore[union-attr]  # a real one, which came early
    process.requests.commits_superseded()
    process.until(36_000).settle_commits()
    assert process.counts == [(11_000, 10)]


# -- positions


def test_commits_before_the_first_position_have_nothing_to_commit() -> None:
    """Commits leave at 5 s, 10 s and 15 s; the first position is known at 11 s."""
    process = committing()
    process.until(11_000).first_positions_known()
    assert process.requests.silent_since_us() is None
    process.until(16_000).stop_commits()
    assert process.said == [(16_000, "1 OffsetCommit")]
    assert process.requests.silent_since_us() == 15_010 * MS


def test_a_process_that_never_had_a_position_has_not_committed() -> None:
    """Its commits are no contact with the coordinator, while they run and when they have ended."""
    process = committing()
    process.work.partitions = ()
    assert process.until(11_000).silent_since_us() is None
    process.requests.stop_commits()
    assert process.requests.silent_since_us() is None
    assert process.heard(60_000) == []
    assert process.said == []


# -- the run is over


@pytest.mark.parametrize(
    ("answered_ms", "number"), [(16_000, 3), (15_010, 3), (15_009, 2), (10_009, 1), (5_009, 0)]
)
def test_what_waits_for_a_write_when_the_run_is_over_has_no_answer(answered_ms: int, number: int) -> None:
    """They arrive at 5.010 s, 10.010 s and 15.010 s."""
    process = committing()
    process.until(16_000)
    process.broker.answered_until_us = answered_ms * MS
    process.requests.finish()
    said = [what for _, what in process.said]
    assert sum(int(what.split()[0]) for what in said) == number
    assert process.heard(60_000) == []


def test_in_exact_mode_the_responses_are_counted_themselves() -> None:
    process = committing(exact=True)
    process.until(6_000)
    process.requests.finish()
    assert process.said == [(5_010, "commit arrives")]


def test_heartbeats_that_wait_have_no_answer_either() -> None:
    """They arrive at 3.010 s and 6.010 s."""
    process = Process()
    process.requests.follow_membership()
    process.until(7_000)
    process.broker.answered_until_us = 6_009 * MS
    process.requests.finish()
    assert [what for _, what in process.said if "Heartbeat" in what] == ["-1 Heartbeat", "2 Heartbeat"]

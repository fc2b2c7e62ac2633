"""What the coordinator knows of a process whose heartbeats are computed, also when they have ended."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.simulated import IN_TOUCH
from tests.storms.test_heartbeats_of_a_process_by_hand import MS, Process

# -- they end


def test_a_process_that_stops_has_sent_what_is_under_way() -> None:
    """Heartbeats leave at 3 s, 6 s and 9 s. The first two were computed."""
    process = Process()
    process.requests.follow_membership()
    process.until(9_005).stop()
    assert process.said == [(9_005, "2 Heartbeat")]
    assert process.requests.silent_since_us() == 6_010 * MS
    assert process.heard(60_000) == [(9_010, "heartbeat of 5 arrives")]


def test_a_process_that_stops_has_nothing_under_way_if_everything_has_arrived() -> None:
    process = Process()
    process.requests.follow_membership()
    process.until(9_010).stop()
    assert process.heard(60_000) == []
    assert process.said == [(9_010, "3 Heartbeat")]


def test_requests_under_way_are_lost_with_the_connection() -> None:
    """Heartbeats leave at 3 s, 6 s and 9 s."""
    process = Process()
    process.requests.follow_membership()
    process.until(9_005).cut_off()
    assert process.heard(60_000) == []
    assert process.said == [(9_005, "2 Heartbeat")]
    assert process.requests.silent_since_us() == 6_010 * MS
    assert process.next_ms == 60_000


@pytest.mark.parametrize("exact", [False, True])
def test_requests_under_way_are_lost_with_the_connection_though_their_series_has_ended(exact: bool) -> None:
    """Heartbeats leave at 15 s, commits too; they end 5 ms later, and the connection is lost after 7 ms."""
    process = Process(exact=exact)
    process.requests.follow_membership()
    process.requests.start_commits()
    process.until(15_005).stop()
    process.until(15_007).cut_off()
    assert process.heard(60_000) == []


def test_heartbeats_that_sent_nothing_leave_the_last_contact_as_it_was() -> None:
    process = Process()
    process.requests.follow_membership()
    process.until(4_000).stop()
    process.requests.follow_membership()
    process.until(6_000).stop()
    assert process.requests.silent_since_us() == 3_010 * MS


def test_whether_a_process_is_alive_is_told_by_the_process() -> None:
    process = Process()
    assert process.requests.alive is True
    process.sender.alive = False
    assert process.requests.alive is False


# -- contact with the coordinator


@pytest.mark.parametrize(("interval_ms", "contact_ms"), [(9_979, IN_TOUCH), (9_980, 0)])
def test_heartbeats_that_are_surely_less_than_a_session_apart_keep_in_touch(
    interval_ms: int, contact_ms: int
) -> None:
    """With up to 20 ms on the way, a session of 10 s; the first heartbeat leaves at 0."""
    process = Process(heartbeat_interval_ms=interval_ms)
    process.requests.restart()
    assert process.until(9_000).last_contact_ms(9_900) == contact_ms


def test_a_heartbeat_begins_a_session_from_the_millisecond_of_its_sending() -> None:
    """It leaves at 3,000 ms: a session of 10 s that begins then is not over at 12,999 ms."""
    process = Process(heartbeat_interval_ms=9_990)
    process.until(3_000).restart()
    assert process.requests.last_contact_ms(12_999) == 3_000


def test_without_heartbeats_there_is_no_contact() -> None:
    assert Process().requests.last_contact_ms(10_000) is None


@pytest.mark.parametrize(("started_us", "contact_ms"), [(4_989_999, 9_999), (4_990_000, None)])
def test_a_commit_is_contact_if_it_arrives_before_the_deadline(
    started_us: int, contact_ms: int | None
) -> None:
    """It leaves 5 s and arrives 5.01 s later: a microsecond before 10 s, or at 10 s."""
    process = Process()
    process.until(started_us / MS).start_commits()
    assert process.requests.last_contact_ms(10_000) == contact_ms


def test_the_coordinator_learns_that_heartbeats_on_which_it_counts_have_stopped() -> None:
    """They leave at 3 s and so on, commits at 5 s and so on. Commits that end say nothing about heartbeats,
    and later heartbeats on which nobody counts end unnoticed."""
    process = Process()
    process.requests.follow_membership()
    process.requests.start_commits()
    assert process.until(10_000).last_contact_ms(10_000) == IN_TOUCH
    process.requests.stop_commits()
    assert process.said == [(10_000, "1 OffsetCommit")]
    assert process.heard(10_500) == []
    process.requests.stop()
    assert process.said[1:] == [(10_500, "m silent since 9010"), (10_500, "3 Heartbeat")]
    process.requests.follow_membership()
    process.until(14_000).stop()
    assert process.said[3:] == [(14_000, "1 Heartbeat")]


def test_heartbeats_on_which_the_coordinator_does_not_count_end_unnoticed() -> None:
    process = Process(heartbeat_interval_ms=9_980, enable_auto_commit=False)
    process.requests.restart()
    assert process.until(9_000).last_contact_ms(9_900) == 0
    process.requests.stop()
    assert process.said == [(9_000, "1 Heartbeat")]


def test_a_process_without_accepted_heartbeats_is_silent_since_its_last_request() -> None:
    process = Process()
    assert process.requests.silent_since_us() is None
    process.requests.follow_membership()
    process.requests.start_commits()
    assert process.until(7_000).silent_since_us() is None
    process.membership.heartbeating = False
    process.requests.follow_membership()
    assert process.until(11_000).silent_since_us() == 10_010 * MS

"""Positions and background commits of one member, worked out by hand.

The member is alone. It has its partition at 3010 ms, as in `transcripts/start.txt`, but with one initial
delay: its SyncGroup is answered at 3008, from then on it polls; OffsetFetch is back at 3010. One record a
second arrives, the n-th at n seconds. The member begins at the log's end, 3, and looks every 50 ms, at 3010,
3060 ...: what arrives at a full second is taken 10 ms later, and its work takes 1 ms.

Background commits leave every 5 s from 3008 on, heartbeats every 3 s from 3006 on. A commit at 58008 says
what was done at the look of 57960: 57.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import START, Storm, scenario, storm
from tests.storms.transcript import WORLD

ALONE: dict[str, Any] = {
    "members": 1,
    "partitions": 1,
    "record_rate": 1,
    "process_ms": 1,
    "enable.auto.commit": True,
}
CRASH: dict[str, Any] = {"do": "crash", "members": [0]}


def played(*steps: dict[str, Any], exact: bool = False, **settings: Any) -> Storm:
    return storm(scenario([START, *steps], **WORLD | ALONE | settings), exact=exact)


def requests(result: Storm) -> dict[str, int]:
    counted = result.figures.requests or {}
    return {api: counted.get(api, 0) for api in ("Heartbeat", "OffsetCommit")}


MAX_POLL: dict[str, Any] = {"max.poll.interval.ms": 20_000}

BOTH = pytest.mark.parametrize("exact", [False, True])


@BOTH
def test_a_crash_loses_what_the_last_commit_did_not_say(exact: bool) -> None:
    result = played({"at_ms": 60_000, **CRASH}, exact=exact)
    [(_, crashed)] = result.events("member_crashed")
    assert (crashed.positions, crashed.committed) == ((59,), (57,)), "the look of 59960 took 59"
    assert requests(result) == {"Heartbeat": 18, "OffsetCommit": 11}
    assert result.figures.records_processed == 59 - 3
    assert result.figures.records_duplicated == 0


@pytest.mark.parametrize(
    ("at_ms", "committed", "commits"),
    # the commit of 58008 arrives at 58009
    [(58_008, 52, 10), (58_010, 57, 11), (63_008, 57, 11), (63_010, 62, 12)],
)
@BOTH
def test_a_commit_counts_when_it_has_arrived(at_ms: int, committed: int, commits: int, exact: bool) -> None:
    result = played({"at_ms": at_ms, **CRASH}, exact=exact)
    [(_, crashed)] = result.events("member_crashed")
    assert crashed.committed == (committed,)
    assert requests(result)["OffsetCommit"] == commits


@BOTH
def test_close_commits_what_is_done(exact: bool) -> None:
    result = played({"at_ms": 60_000, "do": "stop", "members": [0]}, exact=exact)
    [(at_us, revoked)] = result.events("partitions_revoked")
    assert at_us == 60_502_000, "stop_grace_ms, and a commit there and back"
    assert (revoked.positions, revoked.committed) == ((60,), (60,))
    assert requests(result) == {"Heartbeat": 19, "OffsetCommit": 12}


@BOTH
def test_close_does_not_wait_for_the_next_poll(exact: bool) -> None:
    """The application polls at 43.01 s and 63.01 s."""
    result = played({"at_ms": 60_000, "do": "stop", "members": [0]}, exact=exact, poll_interval_ms=20_000)
    [(at_us, revoked)] = result.events("partitions_revoked")
    assert (at_us, revoked.positions) == (60_502_000, (43,))


@BOTH
def test_without_auto_commit_nothing_is_committed(exact: bool) -> None:
    result = played(
        {"at_ms": 60_000, "do": "stop", "members": [0]}, exact=exact, **{"enable.auto.commit": False}
    )
    [(at_us, revoked)] = result.events("partitions_revoked")
    assert at_us == 60_500_000
    assert revoked.committed == (-1,)
    assert requests(result)["OffsetCommit"] == 0


@BOTH
def test_before_a_rejoin_the_member_commits_and_the_next_owner_goes_on_there(exact: bool) -> None:
    result = played({"at_ms": 60_000, "do": "add"}, partitions=2, exact=exact)
    # the new process joins at 70005, the heartbeat of 72006 brings the round at 72008
    [(at_us, revoked)] = result.events("partitions_revoked")
    assert at_us == 72_010_000, "the commit is there and back"
    assert (revoked.positions, revoked.committed) == ((71, 71), (71, 71))
    [(_, first), (_, kept), (_, given)] = [
        row for row in result.events("partitions_assigned") if row[1].partitions
    ]
    assert (first.positions, kept.positions, given.positions) == ((3, 3), (71,), (71,))
    assert {kept.member, given.member} == {"member-0", "member-1"}
    assert result.figures.records_duplicated == 0


@BOTH
def test_what_a_member_commits_before_a_rejoin_is_all_that_it_processes(exact: bool) -> None:
    """Each of two partitions brings 1,000 records a second; the member can process 1,000 in all. Its looks
    take none at 3010, 100 at 3060, 200 at 3160, 400 at 3360, and 500 at 3760, 4260 ..., so that it polls at
    72260 when it has to join again. While the commit is under way, until 72262, it works on nothing."""
    result = played({"at_ms": 60_000, "do": "add"}, partitions=2, exact=exact, record_rate=1_000)
    [(at_us, revoked)] = result.events("partitions_revoked")
    assert at_us == 72_262_000
    assert sum(revoked.positions) == 2 * 3_010 + (72_260 - 3_060)
    assert revoked.committed == revoked.positions
    assert result.figures.records_duplicated == 0


@BOTH
def test_lost_partitions_count_the_commits_that_arrived_before(exact: bool) -> None:
    """A static member polls at 3008 and 33008. At 23008 it resets its generation, without a request. Its
    commits of 8008, 13008 and 18008 said that it began at 3."""
    result = played(
        exact=exact,
        poll_interval_ms=30_000,
        tail_ms=30_000,
        **MAX_POLL,
        **{"group.instance.id": "ordinal", "partition.assignment.strategy": ["cooperative-sticky"]},
    )
    (at_us, lost), *_ = result.events("partitions_lost")
    assert (at_us, lost.positions, lost.committed) == (33_008_000, (3,), (3,))


@BOTH
def test_a_slow_batch_stops_commits_and_no_heartbeats(exact: bool) -> None:
    busy = {"at_ms": 60_000, "do": "busy", "members": [0], "for_ms": 20_000}
    result = played(busy, {"at_ms": 75_000, **CRASH}, exact=exact)
    [(_, crashed)] = result.events("member_crashed")
    assert (crashed.positions, crashed.committed) == ((59,), (57,))
    assert requests(result) == {"Heartbeat": 23, "OffsetCommit": 11}


@BOTH
def test_a_paused_process_sends_nothing_and_goes_on_from_where_it_stood(exact: bool) -> None:
    pause = {"at_ms": 60_000, "do": "pause", "members": [0], "for_ms": 20_000}
    result = played(pause, {"at_ms": 83_000, **CRASH}, exact=exact)
    [(_, paused)] = result.events("member_paused")
    [(resumed_us, resumed)] = result.events("member_resumed")
    assert (resumed_us, paused.positions, resumed.positions) == (80_000_000, (59,), (59,))
    rows = [at_us for at_us, _ in result.events("processing_rates_changed")]
    assert rows == [3_010_000, 80_000_000], "it processes from here on"
    [(_, crashed)] = result.events("member_crashed")
    assert (crashed.positions, crashed.committed) == ((82,), (57,))
    # 18 heartbeats until 57006, and an overdue one at 80000
    assert requests(result) == {"Heartbeat": 19, "OffsetCommit": 11}


@BOTH
def test_a_process_that_is_cut_off_goes_on_and_commits_nothing(exact: bool) -> None:
    cut = {"at_ms": 60_000, "do": "disconnect", "members": [0], "for_ms": 20_000}
    result = played(cut, {"at_ms": 79_000, **CRASH}, exact=exact)
    [(_, crashed)] = result.events("member_crashed")
    assert (crashed.positions, crashed.committed) == ((78,), (57,))
    assert requests(result) == {"Heartbeat": 18, "OffsetCommit": 11}


@BOTH
def test_a_short_outage_loses_the_commits_and_heartbeats_of_its_time_only(exact: bool) -> None:
    cut = {"at_ms": 62_000, "do": "disconnect", "members": [0], "for_ms": 4_000}
    result = played(cut, {"at_ms": 80_000, **CRASH}, exact=exact)
    assert result.figures.generations == 1
    [(_, crashed)] = result.events("member_crashed")
    assert crashed.positions == (79,)
    # commits: 58008, none at 63008; from 66000 on again every 5 s: 71000 and 76000
    assert requests(result)["OffsetCommit"] == 11 + 2
    assert crashed.committed == (75,), "at 76000 the look of 75960 had been done"


@BOTH
def test_records_are_handed_out_by_max_poll_records(exact: bool) -> None:
    """100 records a second, 20 ms each, two at a time: the member does 50 a second, from 3060 ms on."""
    settings: dict[str, Any] = {"record_rate": 100, "process_ms": 20, "max.poll.records": 2}
    result = played({"at_ms": 63_070, **CRASH}, exact=exact, **settings)
    [(_, crashed)] = result.events("member_crashed")
    assert crashed.positions == (301 + 60_010 // 20,)
    # At 63008 it works on its 2,998th record. Five were there at first: two, two and one in a poll.
    assert crashed.committed == (301 + 5 + (2_997 - 5) // 2 * 2,)


@pytest.mark.parametrize(
    ("profile", "callback_ms", "leaves"),
    [
        ("java", 20_001, True),
        ("java", 20_000, False),
        ("librdkafka", 20_001, True),
        ("franz-go", 60_000, False),
    ],
)
def test_a_callback_that_outlasts_max_poll_interval_costs_the_membership(
    profile: str, callback_ms: int, leaves: bool
) -> None:
    """franz-go has no max.poll.interval.ms."""
    result = played(
        client_profile=profile,
        assign_callback_ms=callback_ms,
        settle_timeout_ms=60_000,
        if_never_settled="report",
        **MAX_POLL,
    )
    assert bool(result.events("member_removed", cause="left")) is leaves
    assert bool(result.events("rejoin_requested", cause="poll-timeout")) is leaves


def test_a_process_that_is_killed_before_it_polls_owns_nothing_and_starts_once() -> None:
    steps = [{"at_ms": 60_000, "do": "restart", "members": [0]}, {"at_ms": 65_000, **CRASH}]
    result = played(*steps)
    assert not result.events("member_crashed"), "it has not started again"
    # stop_grace_ms, a commit and LeaveGroup there and back, start_ms
    assert [at_us for at_us, _ in result.events("member_started")] == [0, 70_504_000]


@BOTH
def test_a_slow_batch_waits_for_the_first_records_of_a_member_that_joins(exact: bool) -> None:
    busy = {"at_ms": 3_000, "do": "busy", "members": [0], "for_ms": 5_000}
    result = played(busy, exact=exact)
    [(paused_us, paused)] = result.events("member_paused")
    [(resumed_us, _)] = result.events("member_resumed")
    assert (paused_us, resumed_us, paused.cause) == (3_008_000, 8_008_000, "slow-batch")


def test_the_world_ends_when_all_is_done_and_the_tail_has_passed() -> None:
    """At rest from 3010 ms on; the world looks every second, and adds `tail_ms` = 1 s."""
    assert played().events("scenario_ended")[0][0] == 5_000_000
    assert played(tail_ms=7_500).events("scenario_ended")[0][0] == 11_500_000
    assert played(least_duration_ms=20_000).events("scenario_ended")[0][0] == 21_000_000

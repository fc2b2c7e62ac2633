"""What members of a consumer group (KIP-848) do if processes, connections or the coordinator fail.

Worked out by hand, as in `test_consumer_group_by_hand`: heartbeats leave at 5004, 10004 ... and arrive 1 ms
later. If one way takes 1 s, they leave at 9000, 14000 ... 59000, 64000 and arrive 1 s later.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.test_consumer_group_by_hand import ADD, COMMITS, check, step

ONE_SECOND: dict[str, Any] = {"net_latency_ms": 1_000}
SESSION: dict[str, Any] = {"group.consumer.session.timeout.ms": 20_000}


def counted(at_ms: int, heartbeats: int, coordinators: int = 1, commits: int = 0) -> str:
    """The last rows of a storm without errors whose one member looked up its offsets once."""
    return "\n".join(
        (
            f"{at_ms} requests_counted ConsumerGroupHeartbeat - {heartbeats}",
            f"{at_ms} requests_counted FindCoordinator - {coordinators}",
            *([f"{at_ms} requests_counted OffsetCommit - {commits}"] if commits else []),
            f"{at_ms} requests_counted OffsetFetch - 1",
            f"{at_ms} scenario_ended",
        )
    )


# --- processes


def test_the_session_of_a_crashed_member_counts_from_its_last_heartbeat() -> None:
    """It arrived at 85011. The other member's heartbeats leave at 75006 + 5 s, and its commit comes first."""
    check(
        """
        90000 member_crashed member-0 3 0-0 89 84
        105011 member_removed member-0 session-expired
        105011 group_state_changed Assigning 4
        110007 member_reconciled member-1 4 STABLE 0-0,0-1
        110007 group_state_changed Stable 4
        110013 partitions_assigned member-1 4 0-0 84
        112000 requests_counted ConsumerGroupHeartbeat - 32
        112000 requests_counted FindCoordinator - 2
        112000 requests_counted OffsetCommit - 26
        112000 requests_counted OffsetFetch - 3
        112000 scenario_ended
        """,
        ADD,
        step(90_000, "crash"),
        from_ms=90_000,
        **COMMITS,
        **SESSION,
    )


@pytest.mark.parametrize(
    ("at_ms", "removed_ms", "end_ms", "heartbeats"),
    [(63_500, 80_000, 85_000, 13), (64_000, 80_000, 85_000, 13), (64_500, 85_000, 86_000, 14)],
)
def test_a_heartbeat_that_has_left_arrives_although_its_process_stands_still(
    at_ms: int, removed_ms: int, end_ms: int, heartbeats: int
) -> None:
    """That of 59000 arrived at 60000, that of 64000 arrives at 65000. The process never runs again."""
    check(
        f"""
        {at_ms} member_paused member-0 pause
        {at_ms + 7_300} member_crashed member-0 2 0-0,0-1 0,0 -1,-1
        {removed_ms} member_removed member-0 session-expired
        {removed_ms} group_state_changed Empty 3
        """
        + counted(end_ms, heartbeats),
        step(at_ms, "pause", for_ms=20_000),
        step(at_ms + 7_300, "crash"),
        **ONE_SECOND,
        **SESSION,
    )


@pytest.mark.parametrize(
    ("at_ms", "heartbeats"),
    # 13 until 59000; that of 64000; an overdue one when the process runs again, or when the response has come
    [(63_500, 14), (64_500, 15), (65_500, 15)],
)
def test_a_process_that_runs_again_sends_an_overdue_heartbeat(at_ms: int, heartbeats: int) -> None:
    check(
        f"""
        {at_ms} member_paused member-0 pause
        {at_ms + 10_000} member_resumed member-0
        """
        + counted(at_ms + 11_500, heartbeats),
        step(at_ms, "pause", for_ms=10_000),
        **ONE_SECOND,
    )


def test_a_process_that_runs_again_polls_before_its_client_looks_for_late_polls() -> None:
    """Its last poll() was at 56002, and the next one, due at 63002, comes at 75000. Then more than 18 s have
    passed, but the client counts from the poll of that instant. Heartbeats left at 2, 5002, 7000, 12000 ...
    57000, and leave at 75000 and 80000."""
    check(
        """
        60000 member_paused member-0 pause
        75000 member_resumed member-0
        """
        + counted(81_000, 15),
        step(60_000, "pause", for_ms=15_000),
        poll_interval_ms=7_000,
        tail_ms=6_000,
        **{"max.poll.interval.ms": 18_000},
    )


def test_a_process_that_runs_again_after_max_poll_interval_leaves_at_once() -> None:
    """Its last poll() was at 60006, and 1.5 s are allowed. It stands still for 1.3 s amid a record that takes
    900 ms: the network thread runs before the next poll(), at 62206, and the next heartbeat, at 65004."""
    check(
        """
        60500 member_paused member-0 pause
        61800 member_resumed member-0
        61800 partitions_paused member-0 0-0 59
        61801 member_removed member-0 left
        61801 group_state_changed Empty 3
        62206 partitions_lost member-0 -1 0-0 59 -1 poll-timeout
        62206 rejoin_requested member-0 poll-timeout
        62207 member_added member-0 4 new-member
        62207 member_reconciled member-0 4 STABLE 0-0
        62207 group_state_changed Stable 4
        62210 partitions_assigned member-0 4 0-0 62
        64000 requests_counted ConsumerGroupHeartbeat - 17
        64000 requests_counted FindCoordinator - 1
        64000 requests_counted OffsetFetch - 2
        64000 scenario_ended
        """,
        step(60_500, "pause", for_ms=1_300),
        partitions=1,
        record_rate=1,
        process_ms=900,
        **{"max.poll.interval.ms": 1_500},
    )


def test_a_member_that_stood_still_for_too_long_learns_it_with_its_next_heartbeat() -> None:
    """The heartbeat of 120000 is answered at 120002. Meanwhile the process takes the records of a minute from
    both partitions in turn, and works on them until 120122: then it polls."""
    check(
        """
        60000 member_paused member-0 pause
        100005 member_removed member-0 session-expired
        100005 group_state_changed Empty 3
        120000 member_resumed member-0
        120002 partitions_paused member-0 0-0,0-1 61,59
        120122 partitions_lost member-0 0 0-0,0-1 61,59 54,54 UNKNOWN_MEMBER_ID
        120123 member_added member-0 4 new-member
        120123 member_reconciled member-0 4 STABLE 0-0,0-1
        120123 group_state_changed Stable 4
        120126 partitions_assigned member-0 4 0-0,0-1 54,54
        122000 requests_counted ConsumerGroupHeartbeat - 15
        122000 requests_counted ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID 1
        122000 requests_counted FindCoordinator - 1
        122000 requests_counted OffsetCommit - 11
        122000 requests_counted OffsetFetch - 2
        122000 scenario_ended
        """,
        step(60_000, "pause", for_ms=60_000),
        **COMMITS,
    )


def test_the_response_to_a_commit_waits_until_its_process_runs_again() -> None:
    """member-0 learns at 76000 what to give up, stops and commits twice. The second commit is answered at
    80000. At 82500 it polls when it has worked on what came meanwhile, for 5 ms. The heartbeat of 82500 has
    no response before 84500: the acknowledgement leaves then."""
    check(
        """
        75000 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        76000 partitions_paused member-0 0-1 75
        77500 member_paused member-0 pause
        82500 member_resumed member-0
        82505 partitions_revoked member-0 2 0-1 75 75 assignment
        82505 partitions_assigned member-0 2 - -
        85500 member_reconciled member-0 3 STABLE 0-0
        90000 member_reconciled member-1 3 STABLE 0-1
        90000 group_state_changed Stable 3
        93000.001 partitions_assigned member-1 3 0-1 75
        95000 requests_counted ConsumerGroupHeartbeat - 25
        95000 requests_counted FindCoordinator - 2
        95000 requests_counted OffsetCommit - 17
        95000 requests_counted OffsetFetch - 2
        95000 scenario_ended
        """,
        ADD,
        step(77_500, "pause", for_ms=5_000),
        from_ms=75_000,
        **ONE_SECOND,
        **COMMITS,
    )


def test_a_process_that_stands_still_learns_of_the_coordinator_when_it_runs_again() -> None:
    check(
        """
        1 member_paused member-0 pause
        5001 member_resumed member-0
        5002 member_added member-0 2 new-member
        5002 member_reconciled member-0 2 STABLE 0-0,0-1
        5002 group_state_changed Stable 2
        5005 partitions_assigned member-0 2 0-0,0-1 0,0
        """
        + counted(7_000, 2),
        step(1, "pause", for_ms=5_000),
        from_ms=1,
    )


# --- connections


def test_a_member_that_was_cut_off_for_too_long_has_lost_its_partitions() -> None:
    """It finds the coordinator from 120000 on. That of 120002 is refused, that of 120004 joins."""
    check(
        """
        100005 member_removed member-0 session-expired
        100005 group_state_changed Empty 3
        120004 partitions_paused member-0 0-0,0-1 119,119
        120004 partitions_lost member-0 0 0-0,0-1 119,119 54,54 UNKNOWN_MEMBER_ID
        120005 member_added member-0 4 new-member
        120005 member_reconciled member-0 4 STABLE 0-0,0-1
        120005 group_state_changed Stable 4
        120008.001 partitions_assigned member-0 4 0-0,0-1 54,54
        122000 requests_counted ConsumerGroupHeartbeat - 15
        122000 requests_counted ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID 1
        122000 requests_counted FindCoordinator - 2
        122000 requests_counted OffsetCommit - 11
        122000 requests_counted OffsetFetch - 2
        122000 scenario_ended
        """,
        step(60_000, "disconnect", for_ms=60_000),
        **COMMITS,
    )


def test_a_connection_that_is_lost_twice_is_found_once_more() -> None:
    """Until 70000: the coordinator that was found at 62002 is out of reach."""
    check(
        counted(71_000, 14, coordinators=3, commits=11),
        step(60_000, "disconnect", for_ms=2_000),
        step(61_000, "disconnect", for_ms=9_000),
        **COMMITS,
    )


@pytest.mark.parametrize(("at_ms", "heartbeats"), [(64_500, 13), (65_500, 14)])
def test_a_request_or_a_response_under_way_is_lost_with_the_connection(at_ms: int, heartbeats: int) -> None:
    """The heartbeat of 64000 arrives at 65000, if it does, and is answered by 66000. The coordinator is found
    2 s after the connection could be made again, and the storm ends before the next heartbeat is answered."""
    check(
        counted(at_ms + 3_500, heartbeats, coordinators=2),
        step(at_ms, "disconnect", for_ms=2_000),
        **ONE_SECOND,
    )


def test_close_without_a_connection_does_not_wait() -> None:
    check(
        """
        61500 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close
        61500 member_closed member-0 left
        100005 member_removed member-0 session-expired
        100005 group_state_changed Empty 3
        """
        + counted(102_000, 13, coordinators=2),
        step(60_000, "disconnect", for_ms=40_000),
        step(61_000, "stop"),
    )


def test_close_ends_when_its_connection_is_given_up() -> None:
    """The network swallows the heartbeat of 60004 and the commit of 61500. The client closes the connection
    30 s after the heartbeat has left (request.timeout.ms)."""
    check(
        """
        90004 partitions_revoked member-0 2 0-0,0-1 0,0 0,0 close
        90004 member_closed member-0 left
        100005 member_removed member-0 session-expired
        100005 group_state_changed Empty 3
        """
        + counted(112_000, 13, coordinators=2, commits=11),
        step(60_000, "partition", for_ms=50_000, direction="requests"),
        step(61_000, "stop"),
        **COMMITS | {"record_rate": 0},
    )


@pytest.mark.parametrize(
    ("direction", "for_ms", "end_ms", "heartbeats", "coordinators", "commits"),
    [
        ("requests", 20_000, 82_000, 15, 1, 11),
        ("responses", 20_000, 82_000, 15, 1, 16),
        ("both", 20_000, 82_000, 15, 1, 11),
        ("responses", 40_000, 102_000, 15, 2, 17),
    ],
)
def test_what_the_network_swallows_comes_later(
    direction: str, for_ms: int, end_ms: int, heartbeats: int, coordinators: int, commits: int
) -> None:
    """13 heartbeats until 55004; that of 60004 gets its response when the network lets it pass, and another
    one follows. Commits that are sent arrive, and no response is waited for. After 30 s without a response
    the client closes the connection, and finds the coordinator behind the 40 s."""
    check(
        counted(end_ms, heartbeats, coordinators, commits),
        step(60_000, "partition", for_ms=for_ms, direction=direction),
        **COMMITS,
    )


# --- the coordinator


def test_a_member_asks_for_the_coordinator_until_there_is_one() -> None:
    """Every 100 ms for 8 s; then the group is as it was written, and the member heartbeats at once."""
    check(
        """
        70000 requests_counted ConsumerGroupHeartbeat - 14
        70000 requests_counted FindCoordinator - 2
        70000 requests_counted FindCoordinator COORDINATOR_NOT_AVAILABLE 80
        70000 requests_counted OffsetCommit - 11
        70000 requests_counted OffsetFetch - 1
        70000 scenario_ended
        """,
        {"at_ms": 60_000, "do": "coordinator-failover", "for_ms": 8_000},
        **COMMITS,
    )


def test_responses_wait_for_the_records_of_their_changes() -> None:
    """Those of 70003 and 70005 wait for 300 ms, and the acknowledgement is behind them."""
    check(
        """
        70003 member_added member-1 3 new-member
        70003 member_reconciled member-1 3 UNRELEASED_PARTITIONS -
        70003 group_state_changed Reconciling 3
        70005 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        70304 partitions_assigned member-1 3 - -
        70306.001 partitions_paused member-0 0-1 0
        70306.001 partitions_revoked member-0 2 0-1 0 -1 assignment
        70306.001 partitions_assigned member-0 2 - -
        70307.001 member_reconciled member-0 3 STABLE 0-0
        75305 member_reconciled member-1 3 STABLE 0-1
        75305 group_state_changed Stable 3
        75308 partitions_assigned member-1 3 0-1 0
        77000 requests_counted ConsumerGroupHeartbeat - 22
        77000 requests_counted FindCoordinator - 2
        77000 requests_counted OffsetFetch - 2
        77000 scenario_ended
        """,
        ADD,
        {"at_ms": 70_000, "do": "slow-appends", "for_ms": 10, "append_ms": 300},
        from_ms=70_001,
    )


def test_a_member_whose_records_were_not_written_joins_again() -> None:
    """A write takes 2 ms. That of 70003 fails at 70005; the newcomer finds the coordinator by 70008. member-0
    has its first response at 6 ms, so its heartbeats leave at 70006 and 75006."""
    check(
        """
        70003 member_added member-1 3 new-member
        70003 member_reconciled member-1 3 UNRELEASED_PARTITIONS -
        70003 group_state_changed Reconciling 3
        70009 member_added member-1 3 new-member
        70009 member_reconciled member-1 3 UNRELEASED_PARTITIONS -
        70009 group_state_changed Reconciling 3
        70012 partitions_assigned member-1 3 - -
        75007 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        75010 partitions_paused member-0 0-1 0
        75010 partitions_revoked member-0 2 0-1 0 -1 assignment
        75010 partitions_assigned member-0 2 - -
        75011 member_reconciled member-0 3 STABLE 0-0
        75013 member_reconciled member-1 3 STABLE 0-1
        75013 group_state_changed Stable 3
        75018 partitions_assigned member-1 3 0-1 0
        77000 requests_counted ConsumerGroupHeartbeat - 22
        77000 requests_counted ConsumerGroupHeartbeat COORDINATOR_NOT_AVAILABLE 1
        77000 requests_counted FindCoordinator - 3
        77000 requests_counted OffsetFetch - 2
        77000 scenario_ended
        """,
        ADD,
        {"at_ms": 70_000, "do": "failing-appends", "for_ms": 4},
        from_ms=70_001,
        append_latency_ms=2,
    )

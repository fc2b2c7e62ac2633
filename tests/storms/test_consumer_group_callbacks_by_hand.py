"""Callbacks and slow batches of members of a consumer group, row by row, worked out by hand.

`test_consumer_group_by_hand` says how its small worlds run.
"""

from __future__ import annotations

from tests.storms.test_consumer_group_by_hand import ADD, COMMITS, check, step


def test_callbacks_take_their_time_before_the_member_acknowledges() -> None:
    """onPartitionsAssigned takes 2 s: member-0 acknowledges at 2004 and from then on every 5 s, at 72004, and
    when onPartitionsRevoked has taken 3 s."""
    check(
        """
        70000 member_started member-1
        70003 member_added member-1 3 new-member
        70003 member_reconciled member-1 3 UNRELEASED_PARTITIONS -
        70003 group_state_changed Reconciling 3
        70004 partitions_assigned member-1 3 - -
        72005 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        72008 partitions_paused member-0 0-1 72
        72010 partitions_revoked member-0 2 0-1 72 72 assignment
        75010 partitions_assigned member-0 2 - -
        75011 member_reconciled member-0 3 STABLE 0-0
        80005 member_reconciled member-1 3 STABLE 0-1
        80005 group_state_changed Stable 3
        82008 partitions_assigned member-1 3 0-1 72
        84000 requests_counted ConsumerGroupHeartbeat - 23
        84000 requests_counted FindCoordinator - 2
        84000 requests_counted OffsetCommit - 16
        84000 requests_counted OffsetFetch - 2
        84000 scenario_ended
        """,
        ADD,
        revoke_callback_ms=3_000,
        assign_callback_ms=2_000,
        **COMMITS,
    )


def test_a_member_that_closes_gives_everything_up_before_it_leaves() -> None:
    """SIGTERM comes at 71000, close() at 71500; its commit is there and back, and the callback takes 3 s. The
    heartbeat of 72004 still leaves, and what its answer asks for comes too late."""
    check(
        """
        71502 partitions_revoked member-0 2 0-0,0-1 71,71 71,71 close
        72005 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        74503 member_removed member-0 left
        74503 group_state_changed Assigning 4
        74504 member_closed member-0 left
        75005 member_reconciled member-1 4 STABLE 0-0,0-1
        75005 group_state_changed Stable 4
        77008 partitions_assigned member-1 4 0-0,0-1 71,71
        79000 requests_counted ConsumerGroupHeartbeat - 21
        79000 requests_counted FindCoordinator - 2
        79000 requests_counted OffsetCommit - 14
        79000 requests_counted OffsetFetch - 2
        79000 scenario_ended
        """,
        ADD,
        step(71_000, "stop"),
        from_ms=71_000,
        revoke_callback_ms=3_000,
        assign_callback_ms=2_000,
        **COMMITS,
    )


def test_a_revocation_that_outlasts_max_poll_interval_costs_the_membership() -> None:
    """The coordinator waits 20 s from 70005 on, and the newcomer gets both partitions with its heartbeat of
    90004. member-0 learns of that with its own, and stops; its callback runs until 100010, and
    onPartitionsLost for another 30 s."""
    check(
        """
        70005 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        70008 partitions_paused member-0 0-1 70
        70010 partitions_revoked member-0 2 0-1 70 70 assignment
        90005 member_removed member-0 rebalance-timeout
        90005 group_state_changed Assigning 4
        90005 member_reconciled member-1 4 STABLE 0-0,0-1
        90005 group_state_changed Stable 4
        90006 partitions_paused member-0 0-0 89
        90008 partitions_assigned member-1 4 0-0,0-1 70,70
        100010 partitions_lost member-0 0 0-0 89 99 UNKNOWN_MEMBER_ID
        125000 member_crashed member-0 0 - - -
        126000 requests_counted ConsumerGroupHeartbeat - 33
        126000 requests_counted ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID 1
        126000 requests_counted FindCoordinator - 2
        126000 requests_counted OffsetCommit - 22
        126000 requests_counted OffsetFetch - 2
        126000 scenario_ended
        """,
        ADD,
        step(125_000, "crash"),
        from_ms=70_005,
        revoke_callback_ms=30_000,
        **COMMITS,
        **{"max.poll.interval.ms": 20_000},
    )


def test_a_member_that_nobody_polls_leaves_and_joins_again_at_the_next_poll() -> None:
    """The last poll() before the slow batch was at 59960: 20 s later the heartbeat of 80004 leaves the group.
    The batch ends at 100000. Heartbeats: 2, 4, 5004 ... 75004, 80004, 100000, 100002."""
    check(
        """
        60000 member_paused member-0 slow-batch
        80004 partitions_paused member-0 0-0,0-1 59,59
        80005 member_removed member-0 left
        80005 group_state_changed Empty 3
        100000 member_resumed member-0
        100000 partitions_lost member-0 -1 0-0,0-1 59,59 54,54 poll-timeout
        100000 rejoin_requested member-0 poll-timeout
        100001 member_added member-0 4 new-member
        100001 member_reconciled member-0 4 STABLE 0-0,0-1
        100001 group_state_changed Stable 4
        100004 partitions_assigned member-0 4 0-0,0-1 54,54
        102000 requests_counted ConsumerGroupHeartbeat - 20
        102000 requests_counted FindCoordinator - 1
        102000 requests_counted OffsetCommit - 11
        102000 requests_counted OffsetFetch - 2
        102000 scenario_ended
        """,
        step(60_000, "busy", for_ms=40_000),
        **COMMITS,
        **{"max.poll.interval.ms": 20_000},
    )


def test_a_slow_batch_before_the_first_assignment_puts_its_acceptance_off() -> None:
    check(
        """
        0 member_started member-0
        3 member_paused member-0 slow-batch
        3 member_added member-0 2 new-member
        3 member_reconciled member-0 2 STABLE 0-0,0-1
        3 group_state_changed Stable 2
        7003 member_resumed member-0
        7005 partitions_assigned member-0 2 0-0,0-1 7,7
        9000 requests_counted ConsumerGroupHeartbeat - 3
        9000 requests_counted FindCoordinator - 1
        9000 requests_counted OffsetFetch - 1
        9000 scenario_ended
        """,
        step(3, "busy", for_ms=7_000),
        from_ms=0,
        **COMMITS,
    )


def test_a_slow_batch_that_is_due_during_a_callback_comes_behind_it() -> None:
    check(
        """
        73010 partitions_assigned member-0 2 - -
        73010 member_paused member-0 slow-batch
        73011 member_reconciled member-0 3 STABLE 0-0
        75005 member_reconciled member-1 3 STABLE 0-1
        75005 group_state_changed Stable 3
        75008 partitions_assigned member-1 3 0-1 70
        80010 member_resumed member-0
        82000 requests_counted ConsumerGroupHeartbeat - 23
        82000 requests_counted FindCoordinator - 2
        82000 requests_counted OffsetCommit - 16
        82000 requests_counted OffsetFetch - 2
        82000 scenario_ended
        """,
        ADD,
        step(72_000, "busy", for_ms=7_000),
        from_ms=72_000,
        revoke_callback_ms=3_000,
        **COMMITS,
    )

"""How members of a consumer group (KIP-848) close, leave and lose what they own, worked out by hand.

The times are those of `test_consumer_group_by_hand`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import START, scenario, storm
from tests.storms.test_consumer_group_by_hand import ADD, COMMITS, check, step
from tests.storms.test_consumer_group_faults_by_hand import ONE_SECOND, SESSION, counted
from tests.storms.transcript import WORLD

CONSUMER: dict[str, Any] = {"group.protocol": "consumer"}


def test_close_does_not_wait_for_the_response_to_a_heartbeat() -> None:
    """That of 64000 is under way when close() begins, and is answered before the member leaves."""
    check(
        """
        64500 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close
        65500 member_removed member-0 left
        65500 group_state_changed Empty 3
        66500 member_closed member-0 left
        """
        + counted(68_000, 15),
        step(64_000, "stop"),
        **ONE_SECOND,
    )


def test_close_ends_a_slow_batch() -> None:
    check(
        """
        60000 member_paused member-0 slow-batch
        61500 member_resumed member-0
        61502 partitions_revoked member-0 2 0-0,0-1 0,0 0,0 close
        61503 member_removed member-0 left
        61503 group_state_changed Empty 3
        61504 member_closed member-0 left
        """
        + counted(101_000, 15, commits=12),
        step(60_000, "busy", for_ms=40_000),
        step(61_000, "stop"),
        **COMMITS | {"record_rate": 0},
    )


def test_close_waits_for_thirty_seconds() -> None:
    """The network swallows the heartbeat that leaves the group, and request.timeout.ms is longer."""
    check(
        """
        61500 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close
        91500 member_closed member-0 left
        100005 member_removed member-0 session-expired
        100005 group_state_changed Empty 3
        """
        + counted(162_000, 13),
        step(60_000, "partition", for_ms=100_000, direction="requests"),
        step(61_000, "stop"),
        **{"request.timeout.ms": 60_000},
    )


def test_a_member_that_is_out_of_the_group_closes_without_a_commit() -> None:
    """It learns at 120002 that it is out, and would call onPartitionsLost when it polls, at 120122. close()
    comes first, at 120050, and waits for the callback alone."""
    check(
        """
        100005 member_removed member-0 session-expired
        100005 group_state_changed Empty 3
        120000 member_resumed member-0
        120002 partitions_paused member-0 0-0,0-1 61,59
        120050 partitions_lost member-0 0 0-0,0-1 61,59 54,54 close
        122050 member_closed member-0 left
        724000 requests_counted ConsumerGroupHeartbeat - 13
        724000 requests_counted ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID 1
        724000 requests_counted FindCoordinator - 1
        724000 requests_counted OffsetCommit - 11
        724000 requests_counted OffsetFetch - 1
        724000 scenario_ended
        """,
        step(60_000, "pause", for_ms=60_000),
        step(119_550, "stop"),
        from_ms=100_000,
        revoke_callback_ms=2_000,
        **COMMITS,
    )


def test_an_application_that_polls_too_seldom_leaves_before_its_first_assignment() -> None:
    """It polls at 0 and at 30000 ms. The network thread sees at 20004, with the heartbeat that is due, that
    the last poll() was 20 s before. The first assignment of 30001 adds nothing to what was due."""
    check(
        """
        3 member_added member-0 2 new-member
        3 member_reconciled member-0 2 STABLE 0-0,0-1
        3 group_state_changed Stable 2
        20005 member_removed member-0 left
        20005 group_state_changed Empty 3
        30000 rejoin_requested member-0 poll-timeout
        30001 member_added member-0 4 new-member
        30001 member_reconciled member-0 4 STABLE 0-0,0-1
        30001 group_state_changed Stable 4
        30002 partitions_assigned member-0 0 0-0,0-1 0,0
        45500 partitions_revoked member-0 4 0-0,0-1 0,0 -1,-1 close
        45501 member_removed member-0 left
        45501 group_state_changed Empty 5
        45502 member_closed member-0 left
        """
        + counted(47_000, 10),
        step(45_000, "stop"),
        from_ms=1,
        poll_interval_ms=30_000,
        **{"max.poll.interval.ms": 20_000},
    )


def test_work_that_takes_too_long_costs_the_membership_when_a_response_comes_late() -> None:
    """At 51110 the application begins with 300 records of 100 ms. The heartbeat of 71108 is answered at
    71110, 20 s later: the thread runs for the response, and leaves at once instead of with the next one."""
    check(
        """
        71110 partitions_paused member-0 0-0,0-1 327,127
        71111 member_removed member-0 left
        71111 group_state_changed Empty 5
        81110 partitions_lost member-0 -1 0-0,0-1 327,127 127,127 poll-timeout
        81110 rejoin_requested member-0 poll-timeout
        81111 member_added member-0 6 new-member
        81111 member_reconciled member-0 6 STABLE 0-0,0-1
        81111 group_state_changed Stable 6
        81114 partitions_assigned member-0 6 0-0,0-1 127,127
        90502 partitions_revoked member-0 6 0-0,0-1 220,127 220,127 close
        90503 member_removed member-0 left
        90503 group_state_changed Empty 7
        90504 member_closed member-0 left
        """,
        step(90_000, "stop"),
        from_ms=52_000,
        until_ms=100_000,
        record_rate=10,
        process_ms=100,
        **{"max.poll.interval.ms": 20_000, "max.poll.records": 300, "enable.auto.commit": True},
    )


# --- in the middle of a handover


@pytest.mark.parametrize(("do", "heartbeats", "coordinators"), [("pause", 24, 2), ("disconnect", 23, 3)])
def test_a_revocation_that_is_over_is_acknowledged_when_the_coordinator_can_be_reached(
    do: str, heartbeats: int, coordinators: int
) -> None:
    """The callback runs from 70006 to 73006, the process or its connection is away from 71000 to 76000. A
    process that runs again sends the overdue heartbeat first; its response comes at 76002."""
    paused = ["71000 member_paused member-0 pause", "76000 member_resumed member-0"] if do == "pause" else []
    ended = "76000" if paused else "73006.001"
    check(
        "\n".join(
            (
                *paused,
                f"{ended} partitions_assigned member-0 2 - -",
                "76003 member_reconciled member-0 3 STABLE 0-0",
                "80005 member_reconciled member-1 3 STABLE 0-1",
                "80005 group_state_changed Stable 3",
                "80008 partitions_assigned member-1 3 0-1 0",
                f"82000 requests_counted ConsumerGroupHeartbeat - {heartbeats}",
                f"82000 requests_counted FindCoordinator - {coordinators}",
                "82000 requests_counted OffsetFetch - 2",
                "82000 scenario_ended",
            )
        ),
        ADD,
        step(71_000, do, for_ms=5_000),
        from_ms=71_000,
        revoke_callback_ms=3_000,
    )


def test_what_a_crashed_member_was_to_give_up_goes_when_its_session_ends() -> None:
    """Its last heartbeat arrived at 70005; the other member's of 90004 arrives then, behind the timer."""
    check(
        """
        71000 member_crashed member-0 2 0-0 0 -1
        90005 member_removed member-0 session-expired
        90005 group_state_changed Assigning 4
        90005 member_reconciled member-1 4 STABLE 0-0,0-1
        90005 group_state_changed Stable 4
        90008 partitions_assigned member-1 4 0-0,0-1 0,0
        92000 requests_counted ConsumerGroupHeartbeat - 23
        92000 requests_counted FindCoordinator - 2
        92000 requests_counted OffsetFetch - 2
        92000 scenario_ended
        """,
        ADD,
        step(71_000, "crash"),
        from_ms=71_000,
        revoke_callback_ms=3_000,
        **SESSION,
    )


# --- topics


def test_partitions_that_are_added_come_with_the_next_heartbeat() -> None:
    """The coordinator assigns them at once; it is the broker's metadata that count."""
    check(
        """
        60005 member_reconciled member-0 3 STABLE 0-0,0-1,0-2
        60012 partitions_assigned member-0 3 0-2 0
        62000 requests_counted ConsumerGroupHeartbeat - 15
        62000 requests_counted FindCoordinator - 1
        62000 requests_counted OffsetCommit - 13
        62000 requests_counted OffsetFetch - 2
        62000 scenario_ended
        """,
        {"at_ms": 60_000, "do": "add-partitions", "topic": "topic-0", "partitions": 3},
        **COMMITS,
        **{"metadata.max.age.ms": 30_000},
    )


def test_partitions_of_a_deleted_topic_are_given_up() -> None:
    """The member subscribes to what is left when it has refreshed its metadata: retry.backoff.ms behind the
    first fetch that fails. The offsets of the deleted topic are gone."""
    check(
        """
        60005 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0,0-1
        60005 group_state_changed Reconciling 3
        60010 partitions_paused member-0 1-0,1-1 60,60
        60012 partitions_revoked member-0 2 1-0,1-1 60,60 -1,-1 assignment
        60012 partitions_assigned member-0 2 - -
        60013 member_reconciled member-0 3 STABLE 0-0,0-1
        60013 group_state_changed Stable 3
        65013 member_reconciled member-0 4 STABLE 0-0,0-1
        """
        + counted(92_000, 21, commits=19),
        {"at_ms": 60_000, "do": "delete-topic", "topic": "topic-1"},
        topics=2,
        topic_pattern="topic-.*",
        **COMMITS,
        **{"metadata.max.age.ms": 30_000},
    )


# --- computed heartbeats


@pytest.mark.parametrize("at_ms", [60_003, 60_004, 60_005, 60_006, 60_007])
@pytest.mark.parametrize("do", ["stop", "crash", "pause", "busy", "disconnect"])
def test_whatever_happens_around_a_heartbeat_it_may_be_computed(do: str, at_ms: int) -> None:
    """It leaves at 60004, arrives a millisecond later and is answered at 60006."""
    lasts = {} if do in ("stop", "crash") else {"for_ms": 10_000}
    world = scenario(
        [START, step(at_ms, do, **lasts)], **WORLD | CONSUMER | {"members": 1, "stop_grace_ms": 0}
    )
    computed, simulated = (storm(world, exact=exact) for exact in (False, True))
    assert computed.rows == simulated.rows


@pytest.mark.parametrize(("count", "crashed"), [(2, 0), (2, 1), (5, 2)])
def test_heartbeats_that_arrive_when_a_session_ends_come_behind_that(count: int, crashed: int) -> None:
    """All members heartbeat at the same instants, so the session ends 20 s behind such an instant."""
    crash = {"at_ms": 60_000, "do": "crash", "members": [crashed]}
    world = scenario([START, crash], **WORLD | CONSUMER | SESSION | {"members": count, "partitions": 10})
    computed, simulated = (storm(world, exact=exact) for exact in (False, True))
    assert computed.rows == simulated.rows
    [(removed_us, _)] = computed.events("member_removed")
    assert min(at_us for at_us, _ in computed.events("member_reconciled") if at_us > 60_000_000) == removed_us

"""Members of a consumer group (KIP-848), row by row and request by request, worked out by hand.

One way takes 1 ms. A member finds the coordinator from 0 to 2 ms; its first heartbeat arrives at 3 ms and is
answered at 4 ms. The application is inside poll(): it takes the assignment and looks up its offsets (6 ms),
while the member acknowledges with a heartbeat at 4 ms. From then on one leaves every 5 s: at 5004, 10004 ...

If a poll() of the same microsecond has passed already, the next one is a microsecond later.

If members commit in the background, so they do every 5 s from the acknowledgement on, at 4 ms, 5004 ms ...
One record a second arrives in each partition, and is taken at the look behind it.

Heartbeats that change nothing are computed, or sent if the storm is exact: rows and counts are the same.
"""

from __future__ import annotations

from typing import Any

from groupstorm.trace.rows import event_name
from tests.storms.storms_in_memory import START, Storm, scenario, storm
from tests.storms.transcript import WORLD

COMMITS: dict[str, Any] = {"enable.auto.commit": True, "record_rate": 1, "process_ms": 1}
ADD: dict[str, Any] = {"at_ms": 60_000, "do": "add"}

_TAKEN = ("member", "generation", "partitions", "positions")
_GONE = (*_TAKEN, "committed")
SHOWN: dict[str, tuple[str, ...]] = {
    "member_added": ("member", "generation", "cause"),
    "member_replaced": ("member",),
    "member_removed": ("member", "cause"),
    "member_reconciled": ("member", "generation", "state", "partitions"),
    "group_state_changed": ("state", "generation"),
    "member_started": ("member",),
    "rejoin_requested": ("member", "cause"),
    "partitions_paused": ("member", "partitions", "positions"),
    "partitions_revoked": (*_GONE, "cause"),
    "partitions_lost": (*_GONE, "cause"),
    "partitions_assigned": _TAKEN,
    "member_paused": ("member", "cause"),
    "member_resumed": ("member",),
    "member_crashed": _GONE,
    "member_closed": ("member", "cause"),
    "member_failed": ("member", "error"),
    "requests_counted": ("api", "error", "count"),
    "scenario_ended": (),
}


def step(at_ms: int, do: str, **fields: Any) -> dict[str, Any]:
    """A step of member-0."""
    return {"at_ms": at_ms, "do": do, "members": [0], **fields}


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(str(each).removeprefix("topic-") for each in value) or "-"
    return "-" if value is None else str(value)


def rows(ran: Storm, from_ms: int, until_ms: int | None = None) -> list[str]:
    """The rows from a time on: the time in milliseconds, the kind, the fields of `SHOWN`."""
    end_us = ran.rows[-1][0] if until_ms is None else until_ms * 1000
    lines = []
    for time_us, _, event in ran.rows:
        kind: type = type(event)
        name = event_name(kind)
        if name in SHOWN and from_ms * 1000 <= time_us <= end_us:
            fields = (_shown(getattr(event, field)) for field in SHOWN[name])
            lines.append(" ".join((f"{time_us / 1000:.10g}", name, *fields)))
    return lines


def check(
    expected: str, *steps: dict[str, Any], from_ms: int = 60_000, until_ms: int | None = None, **settings: Any
) -> None:
    """Both kinds of storm give these rows from a time on, or between two, and keep every promise."""
    world = scenario([START, *steps], **WORLD | {"group.protocol": "consumer", "members": 1} | settings)
    for exact in (False, True):
        ran = storm(world, exact=exact)
        assert "\n".join(rows(ran, from_ms, until_ms)) == "\n".join(
            map(str.strip, expected.strip().splitlines())
        )
        assert set((ran.figures.invariants or {}).values()) == {"held"}


def test_a_member_joins_with_a_heartbeat_and_acknowledges_with_the_next() -> None:
    check(
        """
        0 member_started member-0
        3 member_added member-0 2 new-member
        3 member_reconciled member-0 2 STABLE 0-0,0-1
        3 group_state_changed Stable 2
        6 partitions_assigned member-0 2 0-0,0-1 0,0
        2000 requests_counted ConsumerGroupHeartbeat - 2
        2000 requests_counted FindCoordinator - 1
        2000 requests_counted OffsetFetch - 1
        2000 scenario_ended
        """,
        from_ms=0,
    )


def test_a_partition_goes_to_the_newcomer_and_comes_back_when_that_is_alone() -> None:
    """The heartbeat of 70004 tells member-0 to give a partition up. It commits (70006), polls, commits the
    partition again before the callback (70008), and says so at 70010. The newcomer has acknowledged nothing
    at 70004; its next heartbeat comes 5 s later. close() commits from 90500 on and leaves at 90502.

    Heartbeats: member-0 at 2, 4, 5004 ... 70004, 70010, 75010 ... 90010, 90502; member-1 at 70002,
    70004, 75004, 75006, 80006, 85006, 90006, 95006 and, acknowledging, 95010.
    """
    check(
        """
        70000 member_started member-1
        70003 member_added member-1 3 new-member
        70003 member_reconciled member-1 3 UNRELEASED_PARTITIONS -
        70003 group_state_changed Reconciling 3
        70004 partitions_assigned member-1 3 - -
        70005 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        70008 partitions_paused member-0 0-1 70
        70010 partitions_revoked member-0 2 0-1 70 70 assignment
        70010 partitions_assigned member-0 2 - -
        70011 member_reconciled member-0 3 STABLE 0-0
        75005 member_reconciled member-1 3 STABLE 0-1
        75005 group_state_changed Stable 3
        75008 partitions_assigned member-1 3 0-1 70
        90502 partitions_revoked member-0 3 0-0 90 90 close
        90503 member_removed member-0 left
        90503 group_state_changed Assigning 4
        90504 member_closed member-0 left
        95007 member_reconciled member-1 4 STABLE 0-0,0-1
        95007 group_state_changed Stable 4
        95013 partitions_assigned member-1 4 0-0 90
        97000 requests_counted ConsumerGroupHeartbeat - 31
        97000 requests_counted FindCoordinator - 2
        97000 requests_counted OffsetCommit - 25
        97000 requests_counted OffsetFetch - 3
        97000 scenario_ended
        """,
        ADD,
        step(90_000, "stop"),
        **COMMITS,
    )


def test_an_application_that_polls_every_second_reconciles_when_it_polls() -> None:
    """member-0 polls at full seconds until it owns something at 1000 ms, then at 1002, 2002 ..., and the
    newcomer at 70000, 71000 and, from 71002 on, at 72002 ..."""
    check(
        """
        70000 member_started member-1
        70003 member_added member-1 3 new-member
        70003 member_reconciled member-1 3 UNRELEASED_PARTITIONS -
        70003 group_state_changed Reconciling 3
        71000 partitions_assigned member-1 3 - -
        71001 member_reconciled member-0 2 UNREVOKED_PARTITIONS 0-0
        72002 partitions_paused member-0 0-1 0
        72002 partitions_revoked member-0 2 0-1 0 -1 assignment
        72002 partitions_assigned member-0 2 - -
        72003 member_reconciled member-0 3 STABLE 0-0
        76001 member_reconciled member-1 3 STABLE 0-1
        76001 group_state_changed Stable 3
        77002 partitions_assigned member-1 3 0-1 0
        79000 requests_counted ConsumerGroupHeartbeat - 22
        79000 requests_counted FindCoordinator - 2
        79000 requests_counted OffsetFetch - 2
        79000 scenario_ended
        """,
        ADD,
        poll_interval_ms=1_000,
    )


# --- ends


def test_a_member_can_close_before_its_first_callback_has_returned() -> None:
    """It has acknowledged nothing, and looked up no offset."""
    check(
        """
        1500 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close
        1501 member_removed member-0 left
        1501 group_state_changed Empty 3
        1502 member_closed member-0 left
        3000 requests_counted ConsumerGroupHeartbeat - 2
        3000 requests_counted FindCoordinator - 1
        3000 scenario_ended
        """,
        step(1_000, "stop"),
        from_ms=4,
        assign_callback_ms=4_000,
    )


def test_a_static_member_keeps_its_partitions_until_its_session_ends() -> None:
    """Its last heartbeat of a member arrived at 60005; that of 60500 says that it will be back."""
    away = """
        60500 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close
        60501 member_reconciled member-0 -2 STABLE 0-0,0-1
        60501 group_state_changed Reconciling 2
        60502 member_closed member-0 silent
        """
    counts = """ requests_counted ConsumerGroupHeartbeat - 17
        {0} requests_counted FindCoordinator - 2
        {0} requests_counted OffsetFetch - 2
        {0} scenario_ended
        """
    back = """
        70502 member_started member-0
        70505 member_replaced member-0
        70505 member_reconciled member-0 2 STABLE 0-0,0-1
        70505 group_state_changed Stable 2
        70508 partitions_assigned member-0 2 0-0,0-1 0,0
        """
    late = """
        105005 member_removed member-0 session-expired
        105005 group_state_changed Empty 3
        110502 member_started member-0
        110505 member_added member-0 4 static-member
        110505 member_reconciled member-0 4 STABLE 0-0,0-1
        110505 group_state_changed Stable 4
        110508 partitions_assigned member-0 4 0-0,0-1 0,0
        """
    static: dict[str, Any] = {"group.instance.id": "ordinal"}
    for start_ms, then, end_ms in ((10_000, back, 72_000), (50_000, late, 112_000)):
        expected = away.rstrip() + then + f"{end_ms}" + counts.format(end_ms)
        check(expected, step(60_000, "restart"), start_ms=start_ms, **static)


def test_a_member_that_a_full_group_refuses_fails() -> None:
    check(
        """
        3 member_added member-0 2 new-member
        3 member_reconciled member-0 2 STABLE 0-0,0-1
        3 group_state_changed Stable 2
        4 member_failed member-1 GROUP_MAX_SIZE_REACHED
        6 partitions_assigned member-0 2 0-0,0-1 0,0
        2000 requests_counted ConsumerGroupHeartbeat - 2
        2000 requests_counted ConsumerGroupHeartbeat GROUP_MAX_SIZE_REACHED 1
        2000 requests_counted FindCoordinator - 2
        2000 requests_counted OffsetFetch - 1
        2000 scenario_ended
        """,
        from_ms=1,
        members=2,
        **{"group.consumer.max.size": 1},
    )


# --- topics, clocks


def test_a_pattern_matches_a_new_topic_at_the_next_refresh_of_metadata() -> None:
    """The client refreshes every 30 s, and subscribes at 90000 to one of the two new topics; the coordinator
    learns that at 90005. The member commits twice, and looks up an offset from 90010 on."""
    create = {"do": "create-topic", "partitions": 1}
    check(
        """
        90005 member_reconciled member-0 3 STABLE 0-0,0-1,new-0
        90012 partitions_assigned member-0 3 new-0 30
        93000 requests_counted ConsumerGroupHeartbeat - 21
        93000 requests_counted FindCoordinator - 1
        93000 requests_counted OffsetCommit - 19
        93000 requests_counted OffsetFetch - 2
        93000 scenario_ended
        """,
        {"at_ms": 60_000, "topic": "topic-new", **create},
        {"at_ms": 61_000, "topic": "other", **create},
        topic_pattern="topic-.*",
        **COMMITS,
        **{"metadata.max.age.ms": 30_000},
    )


def test_heartbeats_leave_by_the_clock_of_the_members_machine() -> None:
    """The clock is fast by a tenth: at 4 ms it shows 4, and 5004, 10004 ... follow. It shows 65004 at
    59094.545 ms; that heartbeat is the last one, and the session ends 45 s behind the millisecond in which
    it arrives."""
    check(
        """
        60000 member_crashed member-0 2 0-0,0-1 0,0 -1,-1
        104095 member_removed member-0 session-expired
        104095 group_state_changed Empty 3
        106000 requests_counted ConsumerGroupHeartbeat - 15
        106000 requests_counted FindCoordinator - 1
        106000 requests_counted OffsetFetch - 1
        106000 scenario_ended
        """,
        step(60_000, "crash"),
        clock_drift_ppm=100_000,
    )

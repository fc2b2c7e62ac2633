"""What close() of a member of a consumer group does, and what it leaves alone, worked out by hand.

The times are those of `test_consumer_group_processes_by_hand`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.clients.consumer_group.operations import SendHeartbeat
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from tests.storms.test_consumer_group_processes_by_hand import HEARTBEATS, Group


def test_a_process_that_has_not_started_cannot_close() -> None:
    group = Group()
    process = group.new()
    process.stop()
    group.until(60_000)
    assert group.rows(0) == []
    assert not process.closing


def test_a_process_that_is_gone_cannot_close() -> None:
    group = Group()
    process = group.started()
    group.until(1_000)
    process.crash()
    process.stop()
    assert group.rows(7) == ["1000 member_crashed member-0 2 0-0,0-1 0,0 -1,-1"]


def test_a_process_closes_once() -> None:
    """Its callback runs from 60 s to 63 s."""
    group = Group(revoke_callback_ms=3_000)
    process = group.started()
    group.until(60_000)
    process.stop()
    group.until(61_000)
    process.stop()
    group.until(100_000)
    assert group.rows(7) == [
        "60000 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close",
        "63001 member_removed member-0 left",
        "63001 group_state_changed Empty 3",
        "63002 member_closed member-0 left",
    ]


def test_a_callback_that_outlasts_close_keeps_the_member_from_leaving() -> None:
    """Heartbeats go on during the callback. close() ends after 30 s, and the session 45 s after the heartbeat
    that arrived at 85005."""
    group = Group(revoke_callback_ms=40_000)
    process = group.started()
    group.until(60_000)
    process.stop()
    group.until(200_000)
    assert group.rows(7) == [
        "60000 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close",
        "90000 member_closed member-0 left",
        "130005 member_removed member-0 session-expired",
        "130005 group_state_changed Empty 3",
    ]
    assert group.counted(HEARTBEATS) == 19, "at 2, 4, 5004 ... 85004"


def test_the_callback_of_close_is_no_poll() -> None:
    """The last poll() was at 59956 (one every 50 ms since 6 ms): the heartbeat of 80004 leaves the group."""
    group = Group(revoke_callback_ms=25_000, **{"max.poll.interval.ms": 20_000})
    process = group.started()
    group.until(60_000)
    process.stop()
    group.until(100_000)
    assert group.rows(7) == [
        "60000 partitions_revoked member-0 2 0-0,0-1 0,0 -1,-1 close",
        "80005 member_removed member-0 left",
        "80005 group_state_changed Empty 3",
        "85000 member_closed member-0 left",
    ]


def test_close_forgets_callbacks_that_wait_for_a_poll() -> None:
    """The application polls at 0 and at 10000; onPartitionsAssigned is due from 4 ms on."""
    group = Group(poll_interval_ms=10_000)
    process = group.started()
    group.until(5_000)
    needed = [process.membership.rejoin_needed]
    process.stop()
    needed.append(process.membership.rejoin_needed)
    assert needed == [True, False]
    group.until(20_000)
    assert group.rows(4) == [
        "5001 member_removed member-0 left",
        "5001 group_state_changed Empty 3",
        "5002 member_closed member-0 left",
    ]


def test_a_process_that_closes_writes_no_more_rows_about_its_processing() -> None:
    """It works on every record for a second, is behind, and writes a row every 10 s. The commit of close(),
    which begins half a second before the next row, takes 2 s."""
    group = Group(
        net_latency_ms=1_000,
        record_rate=10,
        process_ms=1_000,
        **{"enable.auto.commit": True, "partitions": 1},
    )
    process = group.started()
    group.until(30_000)
    [*_, (before_ms, _), (last_ms, _)] = group.rates()
    assert last_ms - before_ms == 10_000
    group.until(last_ms + 9_500)
    process.stop()
    group.until(last_ms + 11_400)
    assert process.alive
    assert group.rates()[-1][0] == last_ms


@pytest.mark.parametrize(
    ("leaves", "cause", "removed"),
    [(None, "silent", False), (False, "silent", False), (True, "left", True)],
)
def test_a_static_member_leaves_only_if_its_application_says_so(
    leaves: bool | None, cause: str, removed: bool
) -> None:
    """CloseOptions of KIP-1092."""
    group = Group()
    process = group.started(group_instance_id="static", leave_group_on_close=leaves)
    group.until(60_000)
    process.stop()
    group.until(61_000)
    found = group.rows(60_001)
    assert found[-1] == f"60002 member_closed member-0 {cause}"
    assert ("60001 member_removed member-0 left" in found) is removed


@pytest.mark.parametrize("leaves", [None, True])
def test_a_dynamic_member_leaves(leaves: bool | None) -> None:
    group = Group()
    process = group.started(leave_group_on_close=leaves)
    group.until(60_000)
    process.stop()
    group.until(61_000)
    assert group.rows(60_002) == ["60002 member_closed member-0 left"]


def test_a_close_that_ends_late_sends_what_the_member_still_has_to_say() -> None:
    """The member's last heartbeat leaves when the 30 s of close() are over, before the process ends."""
    group = Group(revoke_callback_ms=40_000)
    process = group.started()
    group.until(60_000)
    process.stop()
    group.until(89_999)
    before = group.counted(HEARTBEATS)
    operations: list[Any] = []
    member_id = process.group_member.member_id
    leave = SendHeartbeat(ConsumerGroupHeartbeat("storm", member_id, -1), False)
    member: Any = SimpleNamespace(
        member_id=member_id,
        epoch=2,
        state=MemberState.LEAVING,
        end=lambda: operations.append(leave),
        operations=lambda: [operations.pop() for _ in operations[:]],
    )
    process.group_member = member
    group.until(90_002)
    assert group.counted(HEARTBEATS) == before + 1
    assert group.rows(90_000) == [
        "90000 member_closed member-0 left",
        "90001 member_removed member-0 left",
        "90001 group_state_changed Empty 3",
    ]

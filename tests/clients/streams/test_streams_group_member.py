"""A thread of Kafka Streams in a streams group.

Kafka: StreamsMembershipManagerTest, StreamsGroupHeartbeatRequestManagerTest.
"""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import (
    CallbackKind,
    Left,
    ReportError,
    RunCallback,
    SendHeartbeat,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.streams.member import Tasks
from groupstorm.coordinator.streams.topology import Status, Subtopology, TopicInfo, Topology
from tests.clients.group_member import INTERVAL_MS
from tests.clients.streams.streams_member import DELAYED, OFFSETS_MS, DrivenThread

P = [TopicPartition("in", number) for number in range(6)]


def active(*numbers: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (("0", numbers),) if numbers else ()


# -- heartbeats ----------------------------------------------------------------------------------


def test_a_join_tells_everything_of_the_thread() -> None:
    driven = DrivenThread()
    driven.offsets[("0", 3)] = 17
    driven.member.subscribe(frozenset({"in"}))
    driven.poll()
    driven.step()
    [join] = driven.beats()
    assert (join.member_epoch, join.rebalance_timeout_ms, join.process) == (0, 300_000, "process-1")
    assert (join.endpoint, join.tags, join.endpoint_epoch) == (("host", 8080), (("zone", "z1"),), -1)
    assert join.topology == Topology(0, (Subtopology("0", ("in",), changelogs=(TopicInfo("log"),)),))
    assert (join.active, join.standby, join.warmup) == ((), (), ())
    assert (join.task_offsets, join.task_end_offsets) == ((("0", 3, 17),), ())


def test_later_heartbeats_tell_what_has_changed() -> None:
    driven = DrivenThread.begun()
    driven.tasks(2, (0, 1), (2,))
    driven.reconcile()
    driven.look()
    driven.step()
    [acknowledgement] = driven.beats()
    assert (acknowledgement.active, acknowledgement.standby, acknowledgement.warmup) == (
        active(0, 1),
        active(2),
        (),
    )
    assert (acknowledgement.topology, acknowledgement.process, acknowledgement.endpoint) == (None, None, None)
    assert (acknowledgement.rebalance_timeout_ms, acknowledgement.endpoint_epoch) == (-1, 7)
    driven.told(2)
    quiet = driven.beat()
    assert (quiet.active, quiet.standby, quiet.warmup, quiet.task_offsets) == (None, None, None, None)


@pytest.mark.parametrize("error", [Error.COORDINATOR_LOAD_IN_PROGRESS, None])
def test_a_heartbeat_that_fails_makes_the_next_one_tell_the_tasks_again(error: Error | None) -> None:
    driven = DrivenThread.thread((0, 1))
    assert driven.beat().active is None
    driven.disconnect() if error is None else driven.refuse(error)
    driven.member.coordinator_found()
    assert driven.member.missed_an_answer
    again = driven.beat()
    assert (again.active, again.member_epoch, again.topology) == (active(0, 1), 2, None)


def test_offsets_are_reported_at_the_interval_that_the_broker_asks_for_if_they_have_changed() -> None:
    driven = DrivenThread.thread()
    reports = []
    for number in range(1, 2 * OFFSETS_MS // INTERVAL_MS + 1):
        driven.offsets[("0", 4)], driven.ends[("0", 4)] = number, 100
        request = driven.beat()
        reports.append((request.task_offsets, request.task_end_offsets))
        driven.told(2)
    nothing = (None, None)
    every = OFFSETS_MS // INTERVAL_MS
    assert reports[: every - 1] == [nothing] * (every - 1), "the join has told that there are none"
    assert reports[every - 1] == ((("0", 4, every),), (("0", 4, 100),))
    assert reports[every:-1] == [nothing] * (every - 1)
    assert reports[-1] == ((("0", 4, 2 * every),), None), "the ends have not changed"


# -- reconciliation ------------------------------------------------------------------------------


def test_revoked_tasks_stop_at_once_and_new_ones_come_after_the_callback() -> None:
    """maybeReconcile runs in the network thread; the callbacks wait for a poll()."""
    driven = DrivenThread.thread((0, 1))
    driven.beat()
    driven.tasks(2, (1, 2), (3,))
    driven.look()
    driven.step()
    assert driven.look() == [
        StopProcessing((P[0],)),
        RunCallback(CallbackKind.REVOKED, (P[0],), "assignment"),
    ]
    assert driven.member.owned == (P[0], P[1])
    driven.callback()
    assert driven.look() == [RunCallback(CallbackKind.ASSIGNED, (P[2],), "assignment")]
    assert driven.member.assignment.tasks == Tasks(
        frozenset({("0", 1), ("0", 2)}), frozenset({("0", 3)}), frozenset()
    )
    driven.callback()
    assert (driven.member.owned, driven.member.state) == ((P[1], P[2]), MemberState.ACKNOWLEDGING)
    driven.step()
    [request] = driven.beats()
    assert (request.active, request.standby) == (active(1, 2), active(3))


def test_a_group_that_is_not_ready_is_told_to_the_listener_and_acknowledged() -> None:
    """The initial rebalance delay (KAFKA-19829): a first answer without tasks, tasks one interval later."""
    driven = DrivenThread.begun()
    driven.tasks(1, statuses=DELAYED)
    driven.step()
    assert driven.look()[-1] == RunCallback(CallbackKind.ASSIGNED, (), "assignment")
    looks = [driven.member.assignment.ready]
    driven.callback()
    driven.step()
    [request] = driven.beats()
    assert request.active == ()
    driven.told(1, DELAYED)
    assert driven.member.state is MemberState.STABLE
    driven.beat()
    driven.tasks(2, (0,))
    driven.step()
    driven.callback()
    assert [*looks, driven.member.assignment.ready] == [False, True]
    assert driven.member.owned == (P[0],)


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        (Status.STALE_TOPOLOGY, True),
        (Status.MISSING_SOURCE_TOPICS, False),
        (Status.INCORRECTLY_PARTITIONED_TOPICS, False),
        (Status.MISSING_INTERNAL_TOPICS, False),
        (Status.SHUTDOWN_APPLICATION, True),
        (Status.ASSIGNMENT_DELAYED, False),
        (Status.MISSING_CLIENT_TAGS, True),
    ],
)
def test_an_answer_without_tasks_may_change_whether_the_group_is_ready(status: Status, ready: bool) -> None:
    driven = DrivenThread.thread((0,))
    driven.beat()
    driven.told(2, ((status, ""),))
    driven.step()
    calls = [one for one in driven.look() if isinstance(one, RunCallback)]
    assert calls == ([] if ready else [RunCallback(CallbackKind.ASSIGNED, (), "assignment")])
    assert driven.member.assignment.ready is ready


def test_a_member_is_fenced_and_joins_again_once_all_tasks_are_lost() -> None:
    driven = DrivenThread.thread((0, 1))
    driven.beat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    assert driven.look() == [
        StopProcessing((P[0], P[1])),
        RunCallback(CallbackKind.LOST, (P[0], P[1]), "FENCED_MEMBER_EPOCH"),
    ]
    assert driven.member.state is MemberState.FENCED
    driven.callback()
    driven.step()
    [join] = driven.beats()
    assert (join.member_epoch, join.active, driven.member.owned) == (0, (), ())
    driven.tasks(3, (2,))
    assert driven.beat().active == (), "the callbacks have not run: what was lost is not told"


def test_a_member_with_standbys_alone_loses_them_too() -> None:
    driven = DrivenThread.begun()
    driven.tasks(2, (), (4,))
    driven.reconcile()
    driven.step()
    driven.told(2)
    driven.beat()
    driven.refuse(Error.UNKNOWN_MEMBER_ID)
    assert driven.look() == [RunCallback(CallbackKind.LOST, (), "UNKNOWN_MEMBER_ID")]
    assert driven.member.state is MemberState.FENCED


@pytest.mark.parametrize("error", [Error.STREAMS_INVALID_TOPOLOGY, Error.UNRELEASED_INSTANCE_ID])
def test_other_errors_end_the_member(error: Error) -> None:
    driven = DrivenThread.thread((0,))
    driven.beat()
    driven.refuse(error)
    assert driven.look()[0] == ReportError(error.name)
    assert driven.member.state is MemberState.FATAL


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "leaves", "epochs"),
    [
        (None, None, [-1]),
        (None, True, [-1]),
        (None, False, []),
        ("i", None, [-2]),
        ("i", False, [-2]),
        ("i", True, [-1]),
    ],
)
def test_a_closing_member_leaves_as_its_options_say(
    instance: str | None, leaves: bool | None, epochs: list[int]
) -> None:
    """StreamsMembershipManager.leaveGroupEpoch, shouldSkipLeaveHeartbeat."""
    driven = DrivenThread.thread((0,), group_instance_id=instance, leave_group_on_close=leaves)
    driven.member.close()
    driven.step()
    told = driven.look()
    sent = [one.request for one in told if isinstance(one, SendHeartbeat)]
    assert [request.member_epoch for request in sent] == epochs
    assert (Left() in told) is (not epochs)

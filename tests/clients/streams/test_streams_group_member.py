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
    RunCallback,
    SendHeartbeat,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error
from tests.clients.group_member import INTERVAL_MS
from tests.clients.streams.streams_member import OFFSETS_MS, DrivenThread

P = [TopicPartition("in", number) for number in range(6)]


# -- heartbeats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Error.COORDINATOR_LOAD_IN_PROGRESS, None])
def test_a_heartbeat_that_fails_makes_the_next_one_tell_the_tasks_again(error: Error | None) -> None:
    driven = DrivenThread.thread((0, 1))
    assert driven.heartbeat().active is None
    driven.disconnect() if error is None else driven.refuse(error)
    driven.member.coordinator_found()
    assert driven.member.missed_an_answer
    again = driven.heartbeat()
    assert (again.active, again.member_epoch, again.topology) == ((("0", (0, 1)),), 2, None)


def test_offsets_are_reported_at_the_interval_that_the_broker_asks_for_if_they_have_changed() -> None:
    driven = DrivenThread.thread()
    reports = []
    for number in range(1, 2 * OFFSETS_MS // INTERVAL_MS + 1):
        driven.offsets[("0", 4)], driven.ends[("0", 4)] = number, 100
        request = driven.heartbeat()
        reports.append((request.task_offsets, request.task_end_offsets))
        driven.told(2)
    nothing = (None, None)
    every = OFFSETS_MS // INTERVAL_MS
    assert reports[: every - 1] == [nothing] * (every - 1), "the join has told that there are none"
    assert reports[every - 1] == ((("0", 4, every),), (("0", 4, 100),))
    assert reports[every:-1] == [nothing] * (every - 1)
    assert reports[-1] == ((("0", 4, 2 * every),), None), "the ends have not changed"


# -- reconciliation ------------------------------------------------------------------------------


def test_a_member_is_fenced_and_joins_again_once_all_tasks_are_lost() -> None:
    driven = DrivenThread.thread((0, 1))
    driven.heartbeat()
    driven.refuse(Error.FENCED_MEMBER_EPOCH)
    assert driven.look() == [
        StopProcessing((P[0], P[1])),
        RunCallback(CallbackKind.LOST, (P[0], P[1]), "FENCED_MEMBER_EPOCH"),
    ]
    assert driven.member.state is MemberState.FENCED
    driven.callback()
    driven.step()
    [join] = driven.sent()
    assert (join.member_epoch, join.active, driven.member.owned) == (0, (), ())
    driven.tasks(3, (2,))
    assert driven.heartbeat().active == (), "the callbacks have not run: what was lost is not told"


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

"""A member of a consumer group, as the parts of its process see it that serve both protocols."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.member_session import Generation
from groupstorm.storms.world.consumer_group.view import ConsumerGroupView

OWNED = (TopicPartition("t", 0),)


class Parts:
    """A view of a member of epoch 3. ``said``: what the view has told the process."""

    def __init__(self) -> None:
        self.said: list[str] = []
        member: Any = SimpleNamespace(
            epoch=3,
            member_id="m-1",
            owned=OWNED,
            state=MemberState.STABLE,
            waits_for_poll=False,
            coordinator_known=True,
        )
        self.member = member
        self.view = ConsumerGroupView(
            member,
            on_coordinator_lost=lambda: self.said.append("coordinator lost"),
            on_poll_late=lambda: self.said.append("poll late"),
        )


def test_the_member_says_what_it_owns_and_whether_it_knows_the_coordinator() -> None:
    parts = Parts()
    assert parts.view.owned == OWNED
    for known in (True, False):
        parts.member.coordinator_known = known
        assert parts.view.coordinator_known is known


def test_its_generation_is_the_same_object_until_the_epoch_changes() -> None:
    """A series of requests compares generations by identity."""
    parts = Parts()
    first = parts.view.generation
    assert first == Generation(3, "m-1")
    assert parts.view.generation is first
    parts.member.epoch = 4
    assert parts.view.generation == Generation(4, "m-1")


@pytest.mark.parametrize(
    ("callbacks", "waits", "needed"), [(0, False, False), (1, False, True), (0, True, True), (2, True, True)]
)
def test_a_poll_matters_if_callbacks_wait_for_it_or_the_member_does(
    callbacks: int, waits: bool, needed: bool
) -> None:
    parts = Parts()
    parts.view.callbacks_due += callbacks
    parts.member.waits_for_poll = waits
    assert parts.view.rejoin_needed is needed


@pytest.mark.parametrize(
    ("state", "heartbeats"),
    [
        (MemberState.JOINING, True),
        (MemberState.STABLE, True),
        (MemberState.LEAVING, True),
        (MemberState.STALE, False),
        (MemberState.FENCED, False),
        (MemberState.UNSUBSCRIBED, False),
    ],
)
def test_a_member_that_is_not_in_the_group_sends_no_heartbeats(state: MemberState, heartbeats: bool) -> None:
    parts = Parts()
    parts.member.state = state
    assert parts.view.heartbeating is heartbeats


def test_reconciliations_and_callbacks_begin_in_poll() -> None:
    assert Parts().view.awaits_poll


def test_the_process_is_told_that_the_coordinator_is_lost_but_not_that_it_is_there_again() -> None:
    """It asks for the coordinator itself."""
    parts = Parts()
    parts.view.coordinator_known = True
    assert parts.said == []
    parts.view.coordinator_known = False
    assert parts.said == ["coordinator lost"]


def test_the_process_is_told_that_a_poll_is_late_and_sends_no_request_for_that() -> None:
    parts = Parts()
    assert parts.view.poll_timed_out() is None
    assert parts.said == ["poll late"]

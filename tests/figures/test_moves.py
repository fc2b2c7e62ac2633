"""Settled points of consumer groups, which `settled_oracle.py` does not have, and who is awaited."""

from __future__ import annotations

import pytest

from groupstorm.trace.events.member import MemberClosed
from groupstorm.trace.schema import Source
from tests.figures.tracing import Trace


@pytest.mark.parametrize(("asks", "moves"), [("joined", 0), ("rejoins", 0), ("nothing", 1)])
def test_a_member_that_asked_to_join_again_makes_another_settled_point(asks: str, moves: int) -> None:
    """The group waits for b until b crashes. If it is settled then, t-1 has no owner from which to move."""
    trace = Trace.begun("t-0", "t-1")
    for member in "abc":
        trace.start(0, member)
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",), "c": ()})
    if asks == "joined":
        trace.join(10, "b", 1)
    elif asks == "rejoins":
        trace.rejoin(10, "b")
    trace.crash(12, "b", 1, "t-1")
    trace.round(20, 2, {"a": ("t-0",), "c": ("t-1",)})
    assert trace.figures().moves == moves


def without_its_assignment() -> Trace:
    """a has its assignment of generation 1; b was answered and took nothing, so the group is not settled."""
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    trace.start(0, "b")
    trace.state_to(1, "PreparingRebalance", 0)
    trace.state_to(1, "CompletingRebalance", 1)
    trace.join(1, "a", 1)
    trace.join(1, "b", 1)
    trace.state_to(1, "Stable", 1)
    trace.sync(1, "a", 1, "t-0")
    trace.take(1, "a", 1, "t-0")
    return trace


def test_a_member_of_the_generation_before_is_not_awaited() -> None:
    """b is in no later generation."""
    trace = without_its_assignment()
    assert trace.figures().moves is None
    trace.remove(5, "b")
    trace.round(6, 2, {"a": ("t-0",)})
    assert trace.figures().moves == 0


def test_an_assignment_of_an_earlier_generation_is_not_the_one_awaited() -> None:
    """The callback of generation 1 returns when generation 2 is Stable."""
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    trace.state_to(1, "PreparingRebalance", 0)
    trace.state_to(1, "CompletingRebalance", 2)
    trace.join(1, "a", 2)
    trace.state_to(1, "Stable", 2)
    trace.sync(1, "a", 2, "t-0")
    trace.take(2, "a", 1, "t-0")
    assert trace.figures().moves is None
    trace.take(3, "a", 2)
    assert trace.figures().moves == 0


def consumer_group(*taken_at_s: float) -> Trace:
    """a owns t-0 and t-1; b gets t-2 and t-3 one by one in one epoch, and takes each at its time."""
    trace = Trace.begun("t-0", "t-1", "t-2", "t-3")
    trace.start(0, "a")
    trace.start(0, "b")
    trace.reconcile(1, "a", 2, ["t-0", "t-1"])
    trace.take(1, "a", 2, "t-0", "t-1")
    trace.reconcile(2, "b", 2, ["t-2"])
    trace.reconcile(3, "b", 2, ["t-2", "t-3"])
    trace.state_to(3, "Stable", 2)
    for partition, at_s in zip(("t-2", "t-3"), taken_at_s, strict=False):
        trace.take(at_s, "b", 2, partition)
    return trace


def test_a_consumer_group_is_settled_when_every_member_owns_all_that_it_was_given() -> None:
    assert consumer_group(4).figures().imbalance_max is None
    assert consumer_group(4, 5).figures().imbalance_max == 0


def test_a_member_that_died_with_what_it_was_given_is_not_awaited() -> None:
    trace = consumer_group(4)
    trace.crash(6, "b", 2, "t-2")
    assert trace.figures().imbalance_max == 0


def test_an_assignment_by_the_coordinator_begins_another_settled_point() -> None:
    trace = consumer_group(4, 5)
    trace.revoke(9, "b", 2, "t-2")
    trace.reconcile(10, "a", 2, ["t-0", "t-1", "t-2"])
    trace.take(11, "a", 2, "t-2")
    assert trace.figures().moves == 1


def test_members_that_began_before_the_trace_are_compared_with_nobody() -> None:
    """The trace is the later part of a longer one: what a and b subscribe to stands in its first rows. c
    comes and goes."""
    trace = Trace()
    trace.round(1, 7, {"a": ("t-0", "t-1", "t-2"), "b": ("t-3",)})
    trace.start(10, "c")
    trace.round(11, 8, {"a": ("t-0", "t-1"), "b": ("t-3",), "c": ("t-2",)})
    trace.revoke(20, "c", 8, "t-2", cause="close")
    trace.add(20, Source.MEMBER, MemberClosed("g", "c", "c-id", "left"))
    trace.remove(20, "c", "left")
    trace.round(21, 9, {"a": ("t-0", "t-1"), "b": ("t-3", "t-2")})
    figures = trace.figures()
    assert (figures.moves, figures.moves_wasted, figures.imbalance_max) == (2, None, None)
    assert (figures.idle_members_max, "needlessly" in figures.answer) == (0, False)

"""Settled points of consumer groups, which `settled_oracle.py` does not have."""

from __future__ import annotations

from tests.figures.tracing import Trace


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

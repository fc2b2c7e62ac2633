"""Figures of a trace that has the coordinator's rows alone."""

from __future__ import annotations

from groupstorm.figures import figures_by_group
from groupstorm.figures.coordinator_view import CoordinatorView, is_cooperative
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.rows import as_mapping, values
from groupstorm.trace.schema import Source
from tests.figures.tracing import Trace, coordinator_trace


def test_the_coordinators_view_of_an_eager_group() -> None:
    trace = coordinator_trace("range")
    assert trace.figures().moves == 0  # b's SyncGroup is not answered yet
    trace.sync(14, "b", 2, "t-1")
    trace.remove(20, "a")
    trace.state_to(25, "PreparingRebalance", 2)
    figures = trace.figures()
    assert figures.unowned_partition_seconds == 1 + 2 + 5
    assert figures.nobody_consuming_seconds == 1
    assert figures.revoked_and_returned == 1
    assert figures.moves == 1
    assert figures.rounds_per_change == 1
    assert figures.idle_members_max == 0
    unknown: tuple[str, ...] = (
        "paused_partition_seconds",
        "dual_owner_seconds",
        "moves_lower_bound",
        "imbalance_max",
    )
    unknown += ("records_processed", "lag_peak", "requests", "errors", "commits_rejected", "invariants")
    assert [name for name in unknown if getattr(figures, name) is not None] == []


def test_the_coordinators_view_of_a_cooperative_group() -> None:
    trace = coordinator_trace("cooperative-sticky")
    trace.sync(14, "b", 2, "t-1")
    trace.sync(15, "a", 2, "t-0")
    figures = trace.figures()
    assert figures.unowned_partition_seconds == 1  # t-1 between the two answers
    assert figures.revoked_and_returned == 0


def test_a_static_member_that_comes_back_keeps_its_name_in_the_coordinators_view() -> None:
    trace = Trace(has_member_rows=False)
    trace.add(0, Source.COORDINATOR, events.MemberAdded("g", "rdkafka", "id-1", "i", 0, "static-member"))
    trace.state_to(0, "PreparingRebalance", 0)
    trace.state_to(3, "CompletingRebalance", 1)
    trace.state_to(3, "Stable", 1)
    trace.sync(3, "rdkafka", 1, "t-0", member_id="id-1")
    trace.add(10, Source.COORDINATOR, events.MemberReplaced("g", "rdkafka", "id-2", "id-1", "i", 1))
    trace.sync(11, "rdkafka", 1, "t-0", member_id="id-2")
    trace.rejoin(12, "never-read")  # rows of members play no part in it
    figures = trace.figures()
    assert figures.unowned_partition_seconds == 1
    assert figures.revoked_and_returned == 0
    assert figures.moves == 0


def test_which_protocols_are_cooperative() -> None:
    assert is_cooperative("cooperative-sticky")
    assert is_cooperative("constrained-cooperative-sticky")
    assert is_cooperative("stream")
    assert not is_cooperative("stream-join-sticky")
    assert not is_cooperative("range")
    assert not is_cooperative(None)


def test_a_group_is_eager_until_its_protocol_is_known() -> None:
    """A trace that begins in the middle of a generation."""
    view = CoordinatorView()
    view.answered("a-id", ["t-0"])
    assert view.joins("a-id") == ("t-0",)
    view.protocol_chosen("cooperative-sticky")
    view.answered("a-id", ["t-0"])
    assert view.joins("a-id") == ()


def test_groups_of_one_trace_are_apart_and_end_with_it() -> None:
    one, other = coordinator_trace("range"), Trace("h", has_member_rows=False)
    other.start(40, "x")
    rows = [as_mapping(values(seq, *row)) for seq, row in enumerate([*one.rows, *other.rows])]
    found = figures_by_group(rows)
    assert list(found) == ["g", "h"]
    assert found["g"].generations == 2
    assert found["g"].unowned_partition_seconds == 1 + 28
    assert found["h"].settled_after_ms is None

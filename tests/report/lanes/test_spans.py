"""The tree of spans of a rebalance, and what it is linked to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groupstorm.explain.explanation import explain
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.report.lanes.spans import CLIENT, GROUP, SYSTEM, Joins, Span, spans
from tests.figures.tracing import SECOND, Trace, consumer_group_trace, coordinator_trace
from tests.report.lanes.drawing import of_coordinator, written


def roots(trace: Path, window: Window = WHOLE) -> list[Span]:
    found: list[Joins] = []

    def reader(_group: str, _from_us: int) -> Joins:
        found.append(Joins())
        return found[-1]

    (one,) = explain(trace, window=window, reader=reader)
    return [*spans(one.history, found[0])]


def all_of(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from all_of(child)


def told(span: Span) -> tuple[str, float, float]:
    return span.name, span.from_us / SECOND, span.to_us / SECOND


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    """One of two eager members dies at 10 s and is removed at 20 s; the other one joins again."""
    trace = Trace.begun("t-0", "t-1")
    for member in ("a", "b"):
        trace.start(0, member)
    trace.state_to(0, "PreparingRebalance", 0, "new-member", "a-id")
    for member in ("a", "b"):
        trace.park(0.5, member, 0)
        trace.join(3, member, 1)
    trace.state_to(3, "CompletingRebalance", 1)
    for member, partition in (("a", "t-0"), ("b", "t-1")):
        trace.sync(4, member, 1, partition)
        trace.take(4.5, member, 1, partition)
    trace.state_to(4, "Stable", 1)
    trace.crash(10, "a", 1, "t-0")
    trace.remove(20, "a")
    trace.state_to(20, "PreparingRebalance", 1, "session-expired", "a-id")
    trace.rejoin(22, "b")
    trace.revoke(22.5, "b", 1, "t-1", callback_s=0.25)
    trace.park(23, "b", 1)
    trace.state_to(23, "CompletingRebalance", 2)
    trace.join(23, "b", 2)
    trace.sync(23.5, "b", 2, "t-0", "t-1")
    trace.state_to(23.5, "Stable", 2)
    trace.take(24, "b", 2, "t-0", "t-1")
    trace.end(30)
    return written(tmp_path / "crash", trace)


def test_the_tree_of_a_rebalance(crash: Path) -> None:
    rebalance = roots(crash)[-1]
    assert [told(span) for span in all_of(rebalance)] == [
        ("rebalance session-expired", 20, 24),
        ("round 1", 20, 24),
        ("join b", 22, 24),
        ("revoke b", 22.5, 22.75),
        ("sync b", 23, 23.5),
        ("assign b", 23.5, 24),
    ]
    (round_,) = rebalance.children
    assert [(name, time_us / SECOND) for name, time_us in round_.events] == [
        ("PreparingRebalance", 20),
        ("CompletingRebalance", 23),
        ("Stable", 23.5),
    ]
    (join,) = round_.children
    assert join.attributes == {
        SYSTEM: "kafka",
        GROUP: "g",
        CLIENT: "b",
        "groupstorm.member_id": "b-id",
        "groupstorm.cause": "group-rebalancing",
        "groupstorm.generation": 2,
    }
    assert rebalance.attributes["groupstorm.unowned_partition_seconds"] == 14 + 1.5


def test_a_rebalance_is_linked_to_the_member_that_caused_it(crash: Path) -> None:
    """A member that went silent goes from its last row on."""
    *_, cause, rebalance = roots(crash)
    assert rebalance.links == [cause]
    assert told(cause) == ("member went: session-expired", 10, 20)
    assert cause.attributes[CLIENT] == "a"


def test_a_member_that_does_not_come_through_is_an_error(tmp_path: Path) -> None:
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    trace.state_to(0, "PreparingRebalance", 0, "new-member", "a-id")
    trace.park(1, "a", 0)
    trace.crash(2, "a", 0)
    trace.end(5)
    (join,) = (span for span in all_of(roots(written(tmp_path / "trace", trace))[-1]) if span.error)
    assert (told(join), join.error) == (("join a", 1, 2), "crashed")


def test_the_second_round_is_linked_to_the_first(cooperative: Path) -> None:
    found = [span for span in roots(cooperative) if span.name.startswith("rebalance")]
    pairs = [span.children for span in found if len(span.children) == 2]
    assert pairs
    for first, second in pairs:
        assert second.links == [first]
        assert second.attributes["groupstorm.cause"] == "member-updated"


@pytest.mark.parametrize("name", ["eager", "cooperative", "consumer", "slow"])
def test_every_span_lies_within_its_parent(name: str, request: pytest.FixtureRequest) -> None:
    for root in roots(request.getfixturevalue(name)):
        for span in all_of(root):
            assert span.from_us <= span.to_us
            for child in span.children:
                assert span.from_us <= child.from_us <= child.to_us <= span.to_us


@pytest.mark.parametrize("name", ["eager", "cooperative", "slow"])
def test_every_member_of_a_round_has_its_join(name: str, request: pytest.FixtureRequest) -> None:
    """The joins that came through are as many as the round has members."""
    rounds = [one for root in roots(request.getfixturevalue(name)) for one in root.children]
    complete = [one for one in rounds if one.name.startswith("round") and one.events[-1][0] == "Stable"]
    assert complete
    for one in complete:
        done = {join.attributes[CLIENT] for join in one.children if not join.error}
        assert len(done) == one.attributes["groupstorm.members"]


def test_the_coordinator_alone_has_joins_and_syncs(cooperative: Path, tmp_path: Path) -> None:
    found = roots(of_coordinator(cooperative, tmp_path / "served"))
    names = {span.name.split()[0] for root in found for span in all_of(root)}
    assert names == {"member", "rebalance", "round", "join", "sync"}
    assert sum(bool(root.links) for root in found) == sum(root.name.startswith("rebal") for root in found)


def test_the_rows_of_a_coordinator_end_a_join_with_the_assignment(tmp_path: Path) -> None:
    found = roots(written(tmp_path / "trace", coordinator_trace("range")))
    joins = [span for root in found for span in all_of(root) if span.name.startswith("join")]
    assert [told(join) for join in joins] == [
        ("join a-id", 3, 3),
        ("join b-id", 10, 13),
        ("join a-id", 12, 13),
    ]


def test_a_join_belongs_to_the_round_in_which_it_was_answered(tmp_path: Path) -> None:
    """A log may have the JoinGroup some milliseconds before the round that it begins."""
    trace = coordinator_trace("range")
    trace.park(29.999, "b", 2)
    trace.state_to(30, "PreparingRebalance", 2)
    trace.join(33, "b", 3)
    trace.state_to(33, "CompletingRebalance", 3)
    trace.state_to(34, "Stable", 3)
    trace.sync(34, "b", 3, "t-1")
    rebalance = roots(written(tmp_path / "trace", trace))[-1]
    assert told(rebalance) == ("rebalance x", 29.999, 34)
    assert [span.error for span in all_of(rebalance)] == [""] * 4
    assert ("join b-id", 29.999, 34) in [told(span) for span in all_of(rebalance)]


def test_a_consumer_group_reconciles(tmp_path: Path) -> None:
    found = roots(written(tmp_path / "trace", consumer_group_trace()))
    rebalance = next(root for root in found if root.name == "rebalance new-member")
    names = [told(span) for span in all_of(rebalance) if span.name.startswith("reconcile")]
    assert names == [("reconcile a-id", 11, 13), ("reconcile b-id", 14, 14)]


def test_a_static_member_that_is_back_without_a_round_has_a_tree_of_its_own(tmp_path: Path) -> None:
    trace = coordinator_trace("range")
    trace.join(30, "a", 2)
    trace.sync(30, "a", 2, "t-0")
    assert told(roots(written(tmp_path / "trace", trace))[-1]) == ("join a-id", 30, 30)


def test_a_window_has_its_own_rebalances(crash: Path) -> None:
    found = roots(crash, Window(15 * SECOND))
    assert [root.name for root in found] == ["member went: session-expired", "rebalance session-expired"]

"""Figures of a trace that has the coordinator's rows alone."""

from __future__ import annotations

import pytest

from groupstorm.history.coordinator_view import CoordinatorView, is_cooperative
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported
from groupstorm.trace.rows import as_mapping
from groupstorm.trace.schema import Source
from tests.figures.tracing import SECOND, Trace, consumer_group_trace, coordinator_trace, figures_by_group


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


def static_member(is_imported: bool = False) -> Trace:
    """The rows of the coordinator alone: a member owns the only partition from second 3 on."""
    trace = Trace(has_member_rows=False)
    if is_imported:
        trace.add(0, Source.WORLD, imported.GroupImported("g", "coordinator", "{}"))
    trace.add(0, Source.COORDINATOR, events.MemberAdded("g", "c", "id-1", "i", 0, "static-member"))
    trace.state_to(0, "PreparingRebalance", 0)
    trace.state_to(3, "CompletingRebalance", 1)
    trace.state_to(3, "Stable", 1)
    trace.sync(3, "c", 1, "t-0", member_id="id-1")
    return trace


def come_back(trace: Trace) -> None:
    trace.add(10, Source.COORDINATOR, events.MemberReplaced("g", "c", "id-2", "id-1", "i", 1))
    trace.sync(11, "c", 1, "t-0", member_id="id-2")


def test_a_static_member_that_comes_back_keeps_its_name_in_the_coordinators_view() -> None:
    trace = static_member()
    come_back(trace)
    trace.rejoin(12, "never-read")  # rows of members play no part in it
    figures = trace.figures()
    assert figures.revoked_and_returned == 0
    assert figures.moves == 0


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_coordinator_that_tells_of_a_static_member_does_not_say_how_long_it_was_away(
    is_imported: bool,
) -> None:
    trace = static_member(is_imported)
    before = trace.figures()
    assert before.unowned_partition_seconds == 0
    assert "as far as the trace knows, no partition was ever un-owned" in before.answer
    come_back(trace)
    after = trace.figures()
    assert (after.unowned_partition_seconds, after.unowned_max_seconds, after.moves) == (None, None, 0)
    assert "; how long partitions waited for static members that restarted is not known, " in after.answer
    remedy = ": add the logs of these members" if is_imported else ""
    assert f"a coordinator does not hear when they stop{remedy}; nothing moved" in after.answer


def test_logs_of_a_coordinator_give_lower_bounds() -> None:
    trace = static_member(is_imported=True)
    trace.add(10, Source.COORDINATOR, events.MemberRemoved("g", "c", "id-1", "i", 1, "left"))
    trace.add(12, Source.COORDINATOR, events.MemberAdded("g", "d", "id-2", None, 1, "new-member"))
    trace.sync(12, "d", 1, "t-0", member_id="id-2")
    assert "un-owned for at least 2.0 s in all, at least 2.0 s at the longest" in trace.figures().answer


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
    answered = events.SyncAnswered("g", "a", "a-id", 1, None, ("t-0",))
    joins = events.JoinAnswered("g", "a", "a-id", 2, None)
    view.take(answered)
    assert view.take(joins) == ("a-id", ("t-0",), ())
    state = events.GroupStateChanged(
        "g",
        "PreparingRebalance",
        "CompletingRebalance",
        2,
        "all-joined",
        None,
        "cooperative-sticky",
        "a-id",
        1,
    )
    view.take(state)
    assert view.take(answered) == ("a-id", [], ["t-0"])
    assert view.take(joins) == ("a-id", (), ())


def test_groups_of_one_trace_are_apart_and_end_with_it() -> None:
    one, other = coordinator_trace("range"), Trace("h", has_member_rows=False)
    other.start(40, "x")
    rows = [as_mapping(seq, *row) for seq, row in enumerate([*one.rows, *other.rows])]
    found = figures_by_group(rows)
    assert list(found) == ["g", "h"]
    assert found["g"].generations == 2
    assert found["g"].unowned_partition_seconds == 1 + 28
    assert found["h"].settled_after_ms is None


def one_member(protocol: str) -> Trace:
    """a owns both partitions from 3 s on."""
    trace = Trace(has_member_rows=False)
    trace.scenario("t-0", "t-1")
    trace.start(0, "a")
    trace.state_to(0, "PreparingRebalance", 0, "new-member", "a-id")
    trace.state_to(3, "CompletingRebalance", 1, protocol=protocol)
    trace.join(3, "a", 1)
    trace.state_to(3, "Stable", 1)
    trace.sync(3, "a", 1, "t-0", "t-1")
    return trace


def test_an_eager_member_owns_nothing_from_the_joingroup_on_that_the_coordinator_parks() -> None:
    trace = one_member("range")
    trace.park(10, "a", 1)
    trace.state_to(10, "PreparingRebalance", 1)
    trace.state_to(14, "CompletingRebalance", 2)
    trace.join(14, "a", 2)
    trace.state_to(14, "Stable", 2)
    trace.sync(15, "a", 2, "t-0", "t-1")
    assert trace.figures().unowned_partition_seconds == 5 + 5


def test_an_eager_member_owns_nothing_either_from_a_joingroup_on_that_is_answered_at_once() -> None:
    """A follower whose metadata has not changed joins a Stable group: there is no round."""
    trace = one_member("range")
    trace.join(10, "a", 1)
    trace.sync(12, "a", 1, "t-0", "t-1")
    assert trace.figures().unowned_partition_seconds == 2 + 2


def test_a_cooperative_member_that_gets_a_partition_back_gave_it_up_in_vain() -> None:
    trace = one_member("cooperative-sticky")
    trace.sync(10, "a", 1, "t-0")
    trace.sync(12, "a", 1, "t-0", "t-1")
    figures = trace.figures()
    assert (figures.unowned_partition_seconds, figures.revoked_and_returned) == (2, 1)


def test_the_second_half_of_a_cooperative_rebalance_is_no_change_of_its_own() -> None:
    """b's arrival takes four rounds. In the first one a gives t-1 up, for which it joins again (KIP-429):
    nobody syncs in the next two rounds, and it takes a fourth one."""
    trace = one_member("cooperative-sticky")
    trace.start(10, "b")
    for at_s, generation, cause, by, plan in (
        (10, 2, "new-member", "b-id", {"a": ("t-0",), "b": ()}),
        (12, 3, "member-updated", "a-id", {}),
        (14, 4, "rebalance-timeout", "", {}),
        (16, 5, "rebalance-timeout", "", {"a": ("t-0",), "b": ("t-1",)}),
    ):
        trace.state_to(at_s, "PreparingRebalance", generation - 1, cause, by, "cooperative-sticky")
        trace.state_to(at_s, "CompletingRebalance", generation, protocol="cooperative-sticky")
        for member in ("a", "b"):
            trace.join(at_s, member, generation)
        trace.state_to(at_s, "Stable", generation)
        for member, partitions in plan.items():
            trace.sync(at_s, member, generation, *partitions)
    assert trace.figures().rounds_per_change == (1 + 4) / 2


def test_what_a_cooperative_member_gives_up_between_two_rounds_has_moved() -> None:
    """The group is Stable from 10 s on, but has not settled: t-1 has no owner, and a joins again at once."""
    trace = one_member("cooperative-sticky")
    trace.start(10, "b")
    for at_s, generation, plan in (
        (10, 2, {"a": ("t-0",), "b": ()}),
        (12, 3, {"a": ("t-0",), "b": ("t-1",)}),
    ):
        trace.state_to(at_s, "PreparingRebalance", generation - 1, protocol="cooperative-sticky")
        trace.state_to(at_s, "CompletingRebalance", generation, protocol="cooperative-sticky")
        trace.state_to(at_s, "Stable", generation)
        for member, partitions in plan.items():
            trace.sync(at_s, member, generation, *partitions)
    assert trace.figures().moves == 1


def test_a_cooperative_group_settles_without_a_member_that_was_to_join_again() -> None:
    trace = one_member("cooperative-sticky")
    trace.start(10, "b")
    trace.state_to(10, "Stable", 2)
    trace.sync(10, "b", 2)
    trace.sync(10, "a", 2, "t-0")
    trace.remove(11, "a")
    trace.state_to(11, "Stable", 3)
    trace.sync(11, "b", 3, "t-0", "t-1")
    assert trace.figures().moves == 2


def test_owners_are_known_behind_a_broker_that_was_started_again_with_the_groups_members() -> None:
    """`serve --data`: the group is loaded, its members go on, and nobody is added to it."""
    trace = Trace(has_member_rows=False)
    trace.create(0, "loaded")
    trace.state_to(20, "Stable", 2)
    trace.sync(20, "a", 2, "t-0", "t-1")
    trace.remove(30, "a")
    trace.sync(32, "b", 3, "t-0", "t-1")
    figures = trace.figures()
    assert (figures.unowned_partition_seconds, figures.moves) == (4, 2)
    assert "never settled" not in figures.answer


def test_a_member_of_a_consumer_group_owns_what_it_has_not_given_up_yet() -> None:
    """t-1 has no owner from 13 s, when a has given it up, to 14 s, and from b's removal at 20 s to 22 s."""
    trace = consumer_group_trace()
    figures = trace.ended(30)
    assert figures.unowned_partition_seconds == 3
    assert figures.unowned_max_seconds == 2
    assert figures.unowned_worst_partition == "t-1"
    assert figures.moves == 2


def test_what_an_import_does_not_know_is_no_figure() -> None:
    """Without members no change can be counted; owners that are known later are known from then on."""
    trace = coordinator_trace("range")
    trace.sync(14, "b", 2, "t-1")
    assert trace.figures().rounds_per_change is not None
    trace.add(15, Source.WORLD, imported.EvidenceMissing("g", "members", 2, "add the broker's log"))
    assert trace.figures().rounds_per_change is None
    assert trace.figures().unowned_partition_seconds is not None
    trace.add(16, Source.WORLD, imported.EvidenceMissing("g", "ownership", 2, "add the leader's log"))
    trace.add(17, Source.WORLD, imported.OwnershipKnown("g", 3))
    trace.add(30, Source.COORDINATOR, events.GroupCreated("g", "join"))
    assert trace.figures().unowned_partition_seconds is None
    assert trace.figures(20 * SECOND).unowned_partition_seconds is not None
    trace.add(31, Source.WORLD, imported.EvidenceMissing("g", "ownership", 3, "add the leader's log"))
    trace.add(40, Source.COORDINATOR, events.GroupCreated("g", "join"))
    assert trace.figures(35 * SECOND).unowned_partition_seconds is None


def test_targets_of_a_consumer_group_that_change_something_are_its_rebalances() -> None:
    """An import that does not say when it was stable knows them, too, but no moves."""
    trace = coordinator_trace("uniform")
    before = trace.figures()
    for at_s, epoch, count in ((20, 3, 2), (21, 4, 0), (22, 5, None)):
        trace.add(at_s, Source.COORDINATOR, events.TargetAssigned("g", epoch, count))
    trace.add(
        23, Source.COORDINATOR, events.GroupStateChanged("g", "Reconciling", "Stable", 5, "x", *[None] * 4)
    )
    assert trace.figures().generations == before.generations + 2
    trace.add(24, Source.WORLD, imported.EvidenceMissing("g", "stability", None, "not logged"))
    figures = trace.figures()
    assert figures.generations == before.generations + 2
    assert figures.moves is None
    assert "settled" not in figures.answer

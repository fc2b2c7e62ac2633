"""Rules of docs/figures.md on traces of a few rows that can be checked by eye.

`test_brute_force.py` and `test_settled_oracle.py` hold those on gaps, records, rounds and settled points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.history.settling import moves_needed
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.tracing import Trace

TOPIC = frozenset({"t"})


def test_the_answer_says_what_was_not_over_at_the_end() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.take(5, "a", 1, "t-0")
    trace.take(8, "b", 1, "t-1")
    trace.crash(20, "b", 1, "t-1")
    over = "1 partition had no owner"
    assert trace.ended(30).answer.endswith(f"; at the end {over}.")
    trace.rows.pop()
    trace.state_to(25, "PreparingRebalance", 1)
    assert trace.ended(30).answer.endswith(f"; at the end {over} and a rebalance was under way.")
    trace.rows.pop()
    trace.state_to(26, "Stable", 2)
    trace.take(27, "a", 2, "t-1")
    trace.end(30)
    assert "at the end" not in trace.figures().answer


def test_without_a_start_and_a_complete_assignment_gaps_have_no_meaning() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.take(5, "a", 1, "t-0")
    figures = trace.ended(30)
    assert figures.unowned_partition_seconds is None
    assert figures.nobody_consuming_seconds is None
    assert figures.paused_partition_seconds is None
    assert figures.moves is None
    assert "at no time" in figures.answer


def test_latency_ends_with_the_last_first_answer() -> None:
    trace = Trace.begun("t-0")
    trace.state_to(1, "PreparingRebalance", 0)
    trace.state_to(4, "CompletingRebalance", 1)
    trace.state_to(5, "Stable", 1)
    trace.sync(5, "a", 1, "t-0")
    trace.sync(5.5, "b", 1)
    trace.sync(90, "a", 1, "t-0")  # asked again
    trace.add(95, Source.COORDINATOR, events.MemberReplaced("g", "b", "b-2", "b-id", "i", 1))
    trace.sync(96, "b", 1, member_id="b-2")  # a static member that came back (KIP-345)
    trace.state_to(100, "PreparingRebalance", 1)
    trace.state_to(101, "CompletingRebalance", 2)
    trace.state_to(102, "PreparingRebalance", 2)  # generation 2 never became Stable
    trace.state_to(103, "CompletingRebalance", 3)
    trace.state_to(103, "Stable", 3)
    trace.sync(103, "a", 3)
    figures = trace.figures()
    assert figures.generations == 2
    assert figures.rebalance_latency_max_ms == 4500
    assert figures.rebalance_latency_avg_ms == (4500 + 1000) / 2


def test_rounds_per_change_counts_until_the_group_is_settled() -> None:
    """A new member under the cooperative protocol: one round to revoke, one to assign (KIP-429)."""
    trace = Trace.begun("t-0", "t-1")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0", "t-1")})
    trace.start(10, "b")
    trace.state_to(10, "PreparingRebalance", 1, "new-member", "b-id")
    trace.state_to(10, "CompletingRebalance", 2)
    trace.join(10, "a", 2)
    trace.join(10, "b", 2)
    trace.state_to(10, "Stable", 2)
    trace.sync(10, "a", 2, "t-0")
    trace.sync(10, "b", 2)
    trace.take(11, "b", 2)
    trace.revoke(11, "a", 2, "t-1", cause="assignment")
    trace.take(11, "a", 2)
    trace.rejoin(11, "a", "revoked-partitions")
    trace.state_to(12, "PreparingRebalance", 2, "member-updated", "a-id")  # no change of its own
    trace.state_to(12, "CompletingRebalance", 3)
    trace.join(12, "a", 3)
    trace.join(12, "b", 3)
    trace.state_to(12, "Stable", 3)
    trace.sync(12, "a", 3, "t-0")
    trace.sync(12, "b", 3, "t-1")
    trace.take(13, "a", 3)
    assert trace.figures().moves == 0  # b has not taken t-1 yet: the group is not settled
    trace.take(13, "b", 3, "t-1")
    figures = trace.ended(20)
    assert figures.rounds_per_change == 1.5  # a's arrival took one, b's two
    assert (figures.moves, figures.moves_lower_bound, figures.moves_wasted) == (1, 1, 0)
    trace.state_to(21, "PreparingRebalance", 3, "member-updated", "a-id")  # this time a has not revoked
    trace.round(22, 4, {"a": (), "b": ()})
    assert trace.figures().rounds_per_change == 1.333


@given(
    before=st.lists(st.sampled_from((None, "a", "b", "c", "gone")), min_size=1, max_size=5),
    after=st.lists(st.sampled_from((None, "a", "b", "c")), min_size=5, max_size=5),
    live=st.sets(st.sampled_from(("a", "b", "c"))),
)
def test_no_assignment_of_the_same_balance_moves_less(
    before: list[str | None], after: list[str | None], live: set[str]
) -> None:
    """The bound is the least of all assignments that share out the same numbers, the one at hand included."""
    after = after[: len(before)]

    def moved(owners: Sequence[str | None]) -> int:
        return sum(None not in (old, new) and old != new for old, new in zip(before, owners, strict=True))

    def shape(owners: Sequence[str | None]) -> tuple[list[int], int]:
        counts = sorted(owners.count(member) for member in there)
        return counts, sum(old is not None and new is None for old, new in zip(before, owners, strict=True))

    there = sorted(live | {owner for owner in after if owner is not None})
    loads, now = (Counter(one for one in owners if one is not None) for owners in (before, after))
    least = min(
        moved(owners)
        for owners in product((None, *there), repeat=len(before))
        if shape(owners) == shape(after)
    )
    assert moves_needed(loads, now, dict.fromkeys(live, TOPIC), shape(after)[1]) == least <= moved(after)


def test_requests_and_invariants_are_summed_by_name() -> None:
    trace = Trace.begun("t-0")
    for api, error, count in (
        ("SyncGroup", None, 7),
        ("OffsetCommit", "ILLEGAL_GENERATION", 2),
        ("OffsetCommit", None, 5),
        ("JoinGroup", "ILLEGAL_GENERATION", 1),
    ):
        trace.add(1, Source.WORLD, world_events.RequestsCounted("g", api, error, count))
    trace.add(1, Source.MEMBER, member_events.MemberFailed("g", "a", "a-1", "FENCED_INSTANCE_ID"))
    trace.add(1, Source.WORLD, world_events.InvariantChecked("g", "one_owner", "broke: t-0"))
    figures = trace.figures()
    assert figures.requests == {"JoinGroup": 1, "OffsetCommit": 7, "SyncGroup": 7}
    assert figures.errors == {"ILLEGAL_GENERATION": 3}
    assert figures.consumers_failed == {"FENCED_INSTANCE_ID": 1}
    assert figures.commits_rejected == {"ILLEGAL_GENERATION": 2}
    assert figures.invariants == {"one_owner": "broke: t-0"}
    assert figures.answer.endswith("violated: one_owner.")


def test_without_a_first_row_owners_process_at_no_rate_of_its_own() -> None:
    trace = Trace()
    trace.add(0, Source.WORLD, world_events.PartitionsCreated("g", ("t",), ("t-0",)))
    trace.take(1, "a", 1, "t-0", at=0)
    trace.add(2, Source.WORLD, world_events.RecordRatesChanged("g", ("t-0",), (0,), (1_000_000,)))
    figures = trace.ended(10)
    assert figures.records_processed == 0
    assert figures.lag_peak == 8_000


def test_a_window_behind_the_last_row_has_nothing() -> None:
    trace = Trace.begun("t-0")
    trace.take(1, "a", 1, "t-0")
    trace.crash(10, "a", 1, "t-0")
    trace.take(14, "b", 2, "t-0")
    trace.end(20)
    found = trace.figures(90_000_000)
    assert found.unowned_partition_seconds == 0
    assert found.settled_after_ms is None


def test_only_poll_timeouts_are_counted_as_such() -> None:
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    for cause in ("group-rebalancing", "poll-timeout", "first-join", "poll-timeout", "UNKNOWN_MEMBER_ID"):
        trace.add(5, Source.MEMBER, member_events.RejoinRequested("g", "a", "a-1", 1, cause))
    assert trace.ended(20).max_poll_interval_exceeded == 2


def test_a_group_that_does_not_exist_has_no_gaps_meanwhile() -> None:
    """Deleted at 20 s and created again at 50 s: a gap since 10 s and one since 30 s go on then."""
    trace = Trace.begun("t-0", "t-1")
    trace.take(0, "a", 1, "t-0")
    trace.take(0, "b", 1, "t-1")
    trace.crash(10, "a", 1, "t-0")
    trace.delete(20, "deleted")
    trace.crash(30, "b", 1, "t-1")
    trace.create(50, "join")
    trace.take(52, "a", 2, "t-0")
    trace.take(55, "a", 2, "t-1")
    figures = trace.ended(60)
    assert figures.unowned_partition_seconds == (10 + 2) + 5
    assert figures.nobody_consuming_seconds == 2


def test_a_lag_that_grows_for_want_of_an_owner_says_nothing_of_the_members_pace() -> None:
    def grown(process_rate: int, *, is_gone: bool) -> str:
        trace = Trace.begun("t-0", "t-1", record_rate=100, process_rate=process_rate)
        trace.take(0, "a", 1, "t-0")
        trace.take(0, "b", 1, "t-1")
        if is_gone:
            trace.crash(1, "b", 1, "t-1", at=100)
        trace.end(100)
        return trace.figures().answer

    grew = "at the end the lag still grew by 100 records a second"
    assert grown(50, is_gone=False).endswith(f"; {grew}: less is processed than arrives.")
    assert grown(1_000, is_gone=True).endswith(f"; at the end 1 partition had no owner; {grew}.")

"""A window: what happened before it counts no more, what lasts until then counts from then on."""

from __future__ import annotations

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.accumulator import Window
from groupstorm.history.ownership import Ownership
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.rows import as_mapping
from groupstorm.trace.schema import Source
from tests.figures.tracing import SECOND, Trace, figures_by_group


def test_a_group_has_settled_so_long_after_the_window_began() -> None:
    trace = Trace.begun("t-0")
    trace.take(1, "a", 1, "t-0")
    trace.crash(12, "a", 1, "t-0")
    trace.take(17, "b", 2, "t-0")
    trace.end(30)
    assert trace.figures(10 * SECOND).settled_after_ms == 7000


def test_requests_and_invariants_of_before_the_window_do_not_count() -> None:
    trace = Trace.begun("t-0")
    trace.add(1, Source.WORLD, world_events.RequestsCounted("g", "SyncGroup", None, 7))
    trace.add(1, Source.WORLD, world_events.InvariantChecked("g", "one_owner", "broke: t-0"))
    trace.add(9, Source.WORLD, world_events.RequestsCounted("g", "JoinGroup", None, 2))
    trace.add(9, Source.WORLD, world_events.InvariantChecked("g", "group_settles", "held"))
    figures = trace.figures(5 * SECOND)
    assert figures.requests == {"JoinGroup": 2}
    assert figures.invariants == {"group_settles": "held"}


def test_a_change_of_before_the_window_does_not_count_though_the_group_settles_in_it() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0", "t-1")})
    trace.start(9, "b")
    trace.revoke(11, "a", 1, "t-1")
    trace.round(12, 2, {"a": ("t-0",), "b": ("t-1",)})
    trace.end(20)
    assert trace.figures(8 * SECOND).rounds_per_change == 1
    assert trace.figures(10 * SECOND).rounds_per_change is None


def owned_by_a(*partitions: str) -> Ownership:
    """From 0 us on."""
    ownership = Ownership()
    ownership.begin_scenario(0, 1, 0)
    ownership.create(partitions, 0)
    ownership.assign("a", partitions, None, 0, 0)
    return ownership


def test_two_owners_and_pauses_that_last_until_the_window_count_from_then_on() -> None:
    """Three owners are no more than two."""
    ownership = owned_by_a("t-0", "t-1")
    ownership.assign("b", ["t-0"], None, 0, 3)
    ownership.assign("c", ["t-0"], None, 0, 12)
    ownership.pause("a", ["t-1"], None, 4)
    ownership.begin_window(10)
    ownership.finish(17)
    assert (ownership.dual_us, ownership.paused_us) == (7, 7)


def test_pauses_count_from_the_first_complete_assignment_on() -> None:
    ownership = Ownership()
    ownership.create(("t-0", "t-1"), 0)
    ownership.assign("a", ["t-0"], None, 0, 0)
    ownership.pause("a", ["t-0"], None, 3)
    ownership.assign("b", ["t-1"], None, 0, 10)
    ownership.finish(17)
    assert (ownership.paused_us, ownership.nobody_us) == (7, 0)


def test_of_a_callback_the_rest_counts_in_the_window() -> None:
    for callback_us, rest_us in ((5, 0), (10, 0), (12, 2), (90, 5)):
        ownership = owned_by_a("t-0")
        ownership.end("a", ["t-0"], None, 0, callback_us)
        ownership.begin_window(10)
        ownership.assign("b", ["t-0"], None, 0, 15)
        ownership.finish(20)
        assert ownership.paused_us == rest_us


def test_the_worst_partition_of_a_window_is_that_of_its_own_gaps() -> None:
    """In the window t-9 alone has no owner, for a microsecond; t-2 was deleted before."""
    ownership = owned_by_a("t-0", "t-9", "t-2")
    for number, partition in enumerate(("t-0", "t-2")):
        ownership.end("a", [partition], None, 2)
        ownership.assign("b", [partition], None, 0, 3 + number)
    ownership.delete(["t-2"], 5)
    ownership.begin_window(10)
    ownership.end("a", ["t-9"], None, 12)
    ownership.assign("b", ["t-9"], None, 0, 13)
    ownership.finish(20)
    gaps = ownership.unowned()
    assert gaps is not None
    assert (gaps.total, gaps.longest_of) == (1, "t-9")


def test_the_last_row_of_a_window_is_the_one_at_its_end() -> None:
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    trace.round(5, 1, {"a": ("t-0",)})
    trace.crash(7, "a", 1, "t-0")
    rows = [as_mapping(seq, *row) for seq, row in enumerate(trace.rows)]

    def until(us: int) -> Figures:
        return figures_by_group(rows, Window(to_us=us))["g"]

    assert until(5 * SECOND).generations == 1
    assert until(5 * SECOND - 1).generations == 0
    assert until(7 * SECOND).crashes == 1
    assert until(7 * SECOND - 1).crashes == 0


def outage() -> Trace:
    """t-0 has no owner from 12 s to 17 s, t-1 from 15 s on."""
    trace = Trace.begun("t-0", "t-1")
    trace.take(1, "a", 1, "t-0", "t-1")
    trace.crash(12, "a", 1, "t-0")
    trace.crash(15, "a", 1, "t-1")
    trace.take(17, "b", 2, "t-0")
    trace.end(30)
    return trace


def test_a_window_may_begin_after_rows_were_taken_and_again_later() -> None:
    rows = outage().rows
    late = FiguresAccumulator()
    for count_from_s in (5, 16):
        late.add_all(row for row in rows if (count_from_s - 11) * SECOND <= row[0] < count_from_s * SECOND)
        late.count_from(count_from_s * SECOND)
    late.add_all(row for row in rows if row[0] >= 16 * SECOND)
    assert late.figures() == outage().figures(16 * SECOND)


def test_counting_from_0_takes_every_row_whatever_the_scenario_says() -> None:
    trace = Trace()
    trace.add(0, Source.WORLD, world_events.ScenarioStarted("g", '{"figures_from": 20000}', ("t-0",), 0, 1))
    trace.take(1, "a", 1, "t-0")
    trace.crash(12, "a", 1, "t-0")
    trace.take(17, "b", 2, "t-0")
    trace.end(30)
    whole = FiguresAccumulator()
    whole.count_from(0)
    whole.add_all(trace.rows)
    assert whole.figures().unowned_partition_seconds == 5
    assert trace.figures().unowned_partition_seconds == 0


def test_partitions_without_an_owner_at_an_instant() -> None:
    seen = {}
    for at_s in (0, 1, 12, 15, 17):
        accumulator = FiguresAccumulator()
        accumulator.add_all(row for row in outage().rows if row[0] <= at_s * SECOND)
        seen[at_s] = accumulator.unowned_now(at_s * SECOND)
    t_0, t_1 = {"t-0": 12 * SECOND}, {"t-1": 15 * SECOND}
    assert seen == {0: None, 1: {}, 12: t_0, 15: t_0 | t_1, 17: t_1}


def test_a_group_that_was_deleted_has_no_partition_without_an_owner() -> None:
    trace = outage()
    trace.delete(31, "requested")
    accumulator = FiguresAccumulator()
    accumulator.add_all(trace.rows)
    assert accumulator.unowned_now(30 * SECOND) == {"t-1": 15 * SECOND}
    assert accumulator.unowned_now(31 * SECOND) == {}

"""A window: what happened before it counts no more, what lasts until then counts from then on."""

from __future__ import annotations

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.by_group import Window, figures_by_group
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.rows import as_mapping, values
from groupstorm.trace.schema import Source
from tests.figures.tracing import SECOND, Trace


def since(trace: Trace, from_s: float) -> Figures:
    accumulator = FiguresAccumulator(int(from_s * SECOND))
    for row in trace.rows:
        accumulator.add(*row)
    return accumulator.figures()


def test_a_group_has_settled_so_long_after_the_window_began() -> None:
    trace = Trace()
    trace.scenario("t-0")
    trace.take(1, "a", 1, "t-0")
    trace.crash(12, "a", 1, "t-0")
    trace.take(17, "b", 2, "t-0")
    trace.end(30)
    assert since(trace, 10).settled_after_ms == 7000


def test_requests_and_invariants_of_before_the_window_do_not_count() -> None:
    trace = Trace()
    trace.scenario("t-0")
    trace.add(1, Source.WORLD, world_events.RequestsCounted("g", "SyncGroup", None, 7))
    trace.add(1, Source.WORLD, world_events.InvariantChecked("g", "one_owner", "broke: t-0"))
    trace.add(9, Source.WORLD, world_events.RequestsCounted("g", "JoinGroup", None, 2))
    trace.add(9, Source.WORLD, world_events.InvariantChecked("g", "group_settles", "held"))
    figures = since(trace, 5)
    assert figures.requests == {"JoinGroup": 2}
    assert figures.invariants == {"group_settles": "held"}


def test_a_change_of_before_the_window_does_not_count_though_the_group_settles_in_it() -> None:
    trace = Trace()
    trace.scenario("t-0", "t-1")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0", "t-1")})
    trace.start(9, "b")
    trace.revoke(11, "a", 1, "t-1")
    trace.round(12, 2, {"a": ("t-0",), "b": ("t-1",)})
    trace.end(20)
    assert since(trace, 8).rounds_per_change == 1
    assert since(trace, 10).rounds_per_change is None


def test_the_last_row_of_a_window_is_the_one_at_its_end() -> None:
    trace = Trace()
    trace.scenario("t-0")
    trace.start(0, "a")
    trace.round(5, 1, {"a": ("t-0",)})
    trace.crash(7, "a", 1, "t-0")
    rows = [as_mapping(values(seq, *row)) for seq, row in enumerate(trace.rows)]

    def until(us: int) -> Figures:
        return figures_by_group(rows, Window(to_us=us))["g"]

    assert until(5 * SECOND).generations == 1
    assert until(5 * SECOND - 1).generations == 0
    assert until(7 * SECOND).crashes == 1
    assert until(7 * SECOND - 1).crashes == 0

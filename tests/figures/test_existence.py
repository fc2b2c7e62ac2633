"""Times in which an imported group has no members: not un-owned, and told apart."""

from __future__ import annotations

from groupstorm.explain.explanation import Reader
from groupstorm.figures import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.trace.events import imported
from groupstorm.trace.schema import Source
from tests.figures.tracing import SECOND, Trace


class Gaps(Reader):
    """Keeps the gaps that had a length."""

    def __init__(self) -> None:
        self.closed: list[ClosedGap] = []

    def gap_closed(self, gap: ClosedGap) -> None:
        if gap.gap_us:
            self.closed.append(gap)


def stopped(told: bool = True) -> Trace:
    """Two members own a partition each; b stops at 20, a at 30, and a is back 100 s later."""
    trace = Trace()
    for member, partition in (("a", "t-0"), ("b", "t-1")):
        trace.start(0, member)
        trace.take(1, member, 1, partition)
    trace.revoke(20, "b", 1, "t-1", cause="close")
    trace.remove(20, "b", "left")
    trace.revoke(30, "a", 1, "t-0", cause="close")
    trace.remove(30, "a", "left")
    if told:
        trace.add(30, Source.WORLD, imported.MembersGone("g"))
        trace.add(130, Source.WORLD, imported.MembersBack("g"))
    trace.start(130, "a", member_id="a-2")
    trace.take(135, "a", 2, "t-0", "t-1")
    trace.end(140)
    return trace


def test_partitions_need_no_owner_while_nobody_is_there() -> None:
    figures = stopped().figures()
    assert figures.unowned_partition_seconds == 10 + 5 + 5
    assert figures.unowned_max_seconds == 15
    assert figures.nobody_consuming_seconds == 5
    assert "; besides, the group had no members for 100 s;" in figures.answer


def test_a_trace_that_does_not_say_so_counts_them() -> None:
    """As every storm and every broker's trace."""
    figures = stopped(told=False).figures()
    assert figures.unowned_partition_seconds == 115 + 105
    assert "no members" not in figures.answer


def test_nothing_counts_from_the_last_members_end_to_the_end_of_the_trace() -> None:
    trace = stopped()
    trace.rows = [row for row in trace.rows if row[0] <= 30 * SECOND]
    accumulator = FiguresAccumulator()
    accumulator.add_all(trace.rows)
    figures = accumulator.figures(300 * SECOND)
    assert figures.unowned_partition_seconds == 10
    assert "no members for 270 s" in figures.answer


def test_a_window_counts_its_own_part() -> None:
    figures = stopped().figures(60 * SECOND)
    assert "no members for 70.0 s" in figures.answer
    assert figures.unowned_partition_seconds == 10
    assert "no members" not in stopped().figures(132 * SECOND).answer


def test_a_group_that_is_unloaded_while_nobody_is_there_is_away_until_both_are_over() -> None:
    trace = stopped()
    gone = next(n for n, row in enumerate(trace.rows) if isinstance(row[2], imported.MembersGone))
    for at_s, back_at_s, expected in ((40, 50, 20), (40, 133, 20 - 6)):
        one = Trace()
        one.rows = [*trace.rows]
        one.delete(at_s, "unloaded")
        one.create(back_at_s, "loaded")
        one.rows.sort(key=lambda row: row[0])
        assert isinstance(one.rows[gone][2], imported.MembersGone)
        assert one.figures().unowned_partition_seconds == expected


def test_gaps_are_heard_without_the_time_in_which_nobody_was_there() -> None:
    heard = Gaps()
    accumulator = FiguresAccumulator(listener=heard)
    accumulator.add_all(stopped().rows)
    figures = accumulator.figures()
    assert sorted((one.partition, one.gap_us // SECOND) for one in heard.closed) == [("t-0", 5), ("t-1", 15)]
    assert figures.unowned_worst_partition == "t-1"

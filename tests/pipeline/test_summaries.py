"""Ends, rounds, slowest handovers and output folders of `analyze`, of traces of a few rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.pipeline.analysis import Engine, all_or_none, analyze
from groupstorm.pipeline.results import TABLES, Handover, Request, Round, why
from groupstorm.pipeline.trace_fold import Summary, read_groups
from groupstorm.trace.reader import read_entries
from tests.figures.synthetic_rows import TracedRow
from tests.figures.tracing import Trace
from tests.pipeline.traces import write_trace

S = 1_000_000


def written(rows: list[TracedRow], folder: Path) -> Path:
    write_trace(sorted(rows, key=lambda row: row[0]), folder)
    return folder


def test_a_chosen_group_lasts_until_the_last_row_of_the_trace(tmp_path: Path) -> None:
    one, other = Trace(), Trace("h")
    one.scenario("t-0")
    one.take(1, "a", 1, "t-0")
    one.crash(10, "a", 1, "t-0")
    other.scenario("u-0")
    other.take(30, "b", 1, "u-0")
    run = written([*one.rows, *other.rows], tmp_path / "run")
    for groups in ((), ("g",)):
        content = read_groups(read_entries(run), groups)
        assert content.figures["g"].unowned_partition_seconds == 20
        [gap] = content.tables["g"].rows("handovers")
        assert isinstance(gap, Handover)
        assert (gap.from_us, gap.to_us, gap.new_owner) == (10 * S, 30 * S, None)


def test_the_times_of_a_round_are_those_of_its_states_and_first_answers(tmp_path: Path) -> None:
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    trace.state_to(1, "PreparingRebalance", 0, "new-member")
    trace.start(2, "b")
    trace.state_to(4, "CompletingRebalance", 1)
    trace.join(5, "a", 1)
    trace.join(6, "b", 1)
    trace.state_to(8, "Stable", 1)
    trace.sync(9, "a", 1, "t-0")
    trace.sync(11, "b", 1)
    trace.sync(13, "a", 1, "t-0")  # once more: not a first answer
    trace.state_to(20, "PreparingRebalance", 1, "left")
    trace.state_to(25, "CompletingRebalance", 2)
    trace.sync(26, "a", 1, "t-0")  # of an older generation
    trace.end(30)
    content = read_groups(read_entries(written(trace.rows, tmp_path / "run")))
    first, second = (
        dict(zip(TABLES["rounds"], row, strict=True)) for row in content.tables["g"].rows("rounds")
    )
    assert [first[name] for name in ("prepared_us", "completing_us", "stable_us", "answered_us")] == [
        1 * S, 4 * S, 8 * S, 11 * S,
    ]  # fmt: skip
    assert (first["latency_us"], first["cause"], first["generation"]) == (10 * S, "new-member", 1)
    assert [second[name] for name in ("prepared_us", "completing_us", "stable_us", "latency_us")] == [
        20 * S, 25 * S, None, None,
    ]  # fmt: skip


def test_the_slowest_handovers_come_first_and_of_equal_ones_the_earlier(tmp_path: Path) -> None:
    """Gaps of closing members that need no round: 2 s, 5 s, 5 s, 3 s, of two partitions at once."""
    trace = Trace.begun("t-0", "t-1", "t-2")
    trace.start(0, "a")
    trace.round(0, 1, {"a": ("t-0", "t-1", "t-2")})
    for at_s, lasts_s, partitions in (
        (10, 2, ("t-0",)),
        (20, 5, ("t-2",)),
        (30, 5, ("t-1",)),
        (40, 3, ("t-0", "t-1")),
    ):
        trace.revoke(at_s, "a", 1, *partitions, cause="close")
        trace.take(at_s + lasts_s, "a", 1, *partitions)
    trace.end(60)
    run = written(trace.rows, tmp_path / "run")
    found = analyze(Request({"run": run}, slowest=3), Engine.LOCAL).handovers
    assert [(one.from_us // S, one.gap_us // S, one.partition, one.partitions) for one in found] == [
        (20, 5, "t-2", 1),
        (30, 5, "t-1", 1),
        (40, 3, "t-1", 2),
    ]
    assert {(one.ended_by, one.cause, one.generations, one.round_us) for one in found} == {
        ("partitions_revoked", "close", 0, None)
    }


def test_of_gaps_that_are_equally_long_and_early_the_partition_decides(tmp_path: Path) -> None:
    """b crashes with t-1 when a closes with t-0: two kinds of gaps, from 10 s to 14 s."""
    trace = Trace.begun("t-0", "t-1")
    trace.start(1, "a")
    trace.start(1, "b")
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",)})
    trace.crash(10, "b", 1, "t-1")
    trace.revoke(10, "a", 1, "t-0", cause="close")
    trace.take(14, "c", 2, "t-1")
    trace.take(14, "c", 2, "t-0")
    run = written(trace.rows, tmp_path / "run")
    found = analyze(Request({"run": run}), Engine.LOCAL).handovers
    assert [(one.partition, one.ended_by) for one in found] == [
        ("t-0", "partitions_revoked"),
        ("t-1", "member_crashed"),
    ]


def test_a_gap_that_nobody_ends_is_of_no_round(tmp_path: Path) -> None:
    """No member reads t-0 after the crash of a; the round because of that of b brings t-1 to c."""
    trace = Trace.begun("t-0", "t-1")
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",)})
    trace.crash(10, "a", 1, "t-0")
    trace.round(20, 2, {"b": ("t-1",)}, "session-expired")
    trace.crash(40, "b", 2, "t-1")
    trace.round(50, 3, {"c": ("t-1",)}, "session-expired")
    trace.end(90)
    found = analyze(Request({"run": written(trace.rows, tmp_path / "run")}), Engine.LOCAL).handovers
    assert [(one.partition, one.partitions, one.gap_us // S, why(one)) for one in found] == [
        ("t-0", 1, 80, "a crashed; nobody took it"),
        ("t-1", 1, 10, "b crashed; the next round began 10.0 s later (session-expired); c took it"),
    ]


def test_each_group_of_each_run_has_its_slowest_handovers(tmp_path: Path) -> None:
    """Two runs of the group g, one of which has the group h, too; each group has gaps of 2 s and 1 s."""
    for run, groups in (("one", ("g", "h")), ("two", ("g",))):
        rows: list[TracedRow] = []
        for group in groups:
            trace = Trace(group)
            trace.scenario("t-0")
            trace.take(1, "a", 1, "t-0")
            for at_s, lasts_s in ((10, 1), (20, 2)):
                trace.revoke(at_s, "a", 1, "t-0")
                trace.take(at_s + lasts_s, "a", 1, "t-0")
            rows += trace.rows
        written(rows, tmp_path / run)
    request = Request({run: tmp_path / run for run in ("one", "two")}, slowest=1)
    found = analyze(request, Engine.LOCAL).handovers
    assert [(one.run, one.from_us // S, one.gap_us // S) for one in found] == [
        ("one:g", 20, 2),
        ("one:h", 20, 2),
        ("two", 20, 2),
    ]


def test_rounds_are_summed_up_by_cause_the_most_frequent_first(tmp_path: Path) -> None:
    trace = Trace.begun("t-0")
    trace.start(0, "a")
    for number, cause in enumerate(("left", "new-member", "new-member", "session-expired"), start=1):
        trace.state_to(10 * number, "PreparingRebalance", number - 1, cause)
        trace.state_to(10 * number + number, "CompletingRebalance", number)
        if cause != "session-expired":
            trace.state_to(10 * number + number, "Stable", number)
            trace.sync(10 * number + number, "a", number, "t-0")
    trace.end(60)
    found = analyze(Request({"run": written(trace.rows, tmp_path / "run")}), Engine.LOCAL).rounds
    assert [(one.cause, one.rounds, one.stable, one.latency_avg_us, one.latency_max_us) for one in found] == [
        ("new-member", 2, 2, 2.5 * S, 3 * S),
        ("left", 1, 1, 1 * S, 1 * S),
        ("session-expired", 1, 0, None, None),
    ]


def test_of_the_rounds_of_a_cause_the_one_with_the_most_members_counts() -> None:
    """A round that was never joined has no number of members."""
    summary = Summary()
    times = None, None, None
    summary.add(
        Round(number, 0, 0, "left", number, None, None, None, members, *times)
        for number, members in enumerate((3, None, 5, 2))
    )
    assert summary.rounds_by_cause() == [("left", 4, 0, 5, None, None)]


def test_new_tables_replace_old_ones_all_or_none(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    with pytest.raises(ValueError, match="in the middle"), all_or_none(out, ["one"]):
        raise ValueError("in the middle")
    assert not (tmp_path / "new").exists(), "folders that it made are gone"
    for content in ("first", "second"):
        with all_or_none(out, ["one"]) as partial:
            (partial / "one").mkdir()
            (partial / "one" / "part").write_text(content)
        assert (out / "one" / "part").read_text() == content
        assert [folder.name for folder in out.iterdir()] == ["one"]
    (out / ".partial").mkdir()  # of an analysis that was killed
    with pytest.raises(ValueError, match="in the middle"), all_or_none(out, ["one"]):
        raise ValueError("in the middle")
    assert (out / "one" / "part").read_text() == "second"
    assert [folder.name for folder in out.iterdir()] == ["one"]

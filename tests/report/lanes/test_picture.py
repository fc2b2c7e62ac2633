"""The picture in the terminal: what stands in which column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groupstorm.cli.trace_views import Part, print_timeline
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.report.lanes.picture import MEMBERS_MAX
from groupstorm.trace.reader import read_rows
from tests.command import groupstorm, refused
from tests.explain.explaining import storm
from tests.figures.tracing import SECOND, Trace
from tests.imports.importing import import_texts
from tests.imports.test_several_logs import BROKER
from tests.report.lanes.drawing import cells, drawn, of_coordinator, recorded, write_rows, written


@pytest.fixture
def handover(tmp_path: Path) -> Path:
    """Twenty seconds: a and b own from 2 s on, a dies at 10 s, b has all from 14 s on."""
    trace = Trace.begun("t-0", "t-1")
    trace.start(0, "a")
    trace.start(1, "b")
    trace.state_to(1, "PreparingRebalance", 0)
    trace.state_to(2, "Stable", 1)
    trace.take(2, "a", 1, "t-0")
    trace.take(2, "b", 1, "t-1")
    trace.crash(10, "a", 1, "t-0")
    trace.remove(12, "a")
    trace.state_to(12, "PreparingRebalance", 1, "session-expired")
    trace.rejoin(12, "b")
    trace.revoke(13, "b", 1, "t-1")
    trace.state_to(14, "Stable", 2)
    trace.take(14, "b", 2, "t-0", "t-1")
    trace.end(20)
    return written(tmp_path / "handover", trace)


def test_a_column_for_each_second(handover: Path) -> None:
    one = drawn(handover, width=30)  # of which 8 are labels, and two stay free
    assert cells(one) == {
        "seconds": "|0        |10",
        "group": " P==========PP======",
        "un-owned": "22........1112......",
        "a": "JJ########x",
        "b": " J##########+J######",
    }


def test_a_column_of_several_seconds_shows_what_was_rare(handover: Path) -> None:
    one = drawn(handover, width=20)
    assert cells(one)["a"] == "J####x"
    assert cells(one)["b"] == "j#####j###"
    assert cells(one)["un-owned"] == "2....12..."


def test_the_legend_names_what_is_drawn_and_nothing_else(handover: Path) -> None:
    notes = " ".join(drawn(handover).notes)
    assert "x ends, j joins, owns no partitions, + joins, keeps its partitions, # owns partitions" in notes
    assert "p PreparingRebalance, = Stable" in notes
    assert "stands still" not in notes
    assert "Assigning" not in notes


def test_a_window_is_drawn_with_its_own_seconds(handover: Path) -> None:
    one = drawn(handover, width=18, window=Window(10 * SECOND, 18 * SECOND))
    assert one.title == "g: 10 s to 18 s, 1 s in a column"
    assert cells(one)["b"] == "##+J####"


@pytest.mark.parametrize("name", ["eager", "cooperative", "consumer", "slow"])
def test_the_counted_partitions_are_those_of_the_figures(name: str, request: pytest.FixtureRequest) -> None:
    """The line of un-owned partitions, summed over time, is unowned_partition_seconds."""
    run: Path = request.getfixturevalue(name)
    one, recording = recorded(run)
    history = one.history
    spells = recording.unowned.spells(history.from_us, history.to_us)
    area_us = sum((count or 0) * lasted_us for count, lasted_us in spells)
    assert history.figures is not None
    assert area_us / SECOND == history.figures.unowned_partition_seconds
    assert area_us > 0


def test_the_rows_of_the_coordinator_draw_nearly_the_same(cooperative: Path, tmp_path: Path) -> None:
    """A coordinator hears of each thing some milliseconds later, and of restarts as of new members."""
    one = drawn(of_coordinator(cooperative, tmp_path / "served"))
    assert len(cells(one)) == 3 + 2 * 5
    joined = "".join(cells(one).values())
    assert "#" in joined
    assert "?" not in joined


def test_threads_of_a_streams_application_are_lanes_and_its_instances_are_not(tmp_path: Path) -> None:
    settings = {"members": 1, "partitions": 4, "topics": 1, "num.stream.threads": 2}
    one = drawn(storm(tmp_path / "run", "stateful-warmup", "shipped", settings))
    labels = [line.label.strip() for line in one.lines[3:]]
    assert labels[:2] == ["instance-0-StreamThread-1", "instance-0-StreamThread-2"]
    assert all("StreamThread" in label for label in labels)


def test_a_lower_bound_is_called_one(tmp_path: Path) -> None:
    """A coordinator does not hear when static members stop: the figures have no un-owned time."""
    run = storm(tmp_path / "run", "static-trap", "twins", {})
    words = "a lower bound"
    assert words not in " ".join(drawn(run).notes)
    assert words in " ".join(drawn(of_coordinator(run, tmp_path / "served")).notes)


def test_what_is_unknown_has_a_question_mark_and_its_reason(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": BROKER})
    one = drawn(tmp_path / "out")
    assert "?" in "".join(line.cells for line in one.lines[3:])
    assert "who owned which partition is not known" in " ".join(one.notes)


def test_partitions_without_an_owner_are_unknown_as_soon_as_a_log_is_missing(
    handover: Path, tmp_path: Path
) -> None:
    missing = {"time_us": 16 * SECOND, "source": "world", "event": "evidence_missing", "group": "g"}
    missing |= {"cause": "ownership", "detail": "no log says who owns what"}
    rows = [*read_rows(handover), missing]
    trace = write_rows(tmp_path / "cut", sorted(rows, key=lambda row: row["time_us"]))
    one = drawn(trace, width=30)
    assert cells(one)["un-owned"] == "22........1112..????"
    assert cells(one)["b"] == " J##########+J##????"
    assert "no log says who owns what" in one.notes


def test_of_many_members_those_that_lost_the_most_are_drawn(tmp_path: Path) -> None:
    settings = {"members": 45, "partitions": 45}
    run = storm(tmp_path / "run", "deploy-and-crash", "static", settings)
    _, recording = recorded(run)
    picture = drawn(run)
    labels = {line.label.strip() for line in picture.lines[3:]}
    assert len(labels) == MEMBERS_MAX
    worst = sorted(recording.left_unowned_us, key=lambda name: -recording.left_unowned_us[name])[:3]
    assert set(worst) <= labels
    assert "5 more members, 5 of them own partitions at the end" in " ".join(picture.notes)


def test_it_fits_80_columns_and_says_nothing_in_colours_in_a_pipe(eager: Path) -> None:
    result = groupstorm("trace", str(eager), "--timeline", cwd=eager)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert 70 <= max(map(len, lines)) <= 80
    assert "\x1b" not in result.stdout
    assert sum(line.startswith("member-") for line in lines) == 5


def test_a_terminal_shows_it_in_colours_unless_no_color_is_set(
    handover: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Part(handover, (), WHOLE)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_timeline(part, None)
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_timeline(part, None)
    plain = capsys.readouterr().out
    assert "\x1b[32m#\x1b[0m" in coloured
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_one_member(eager: Path) -> None:
    result = groupstorm("trace", str(eager), "--timeline", "--member", "member-3", cwd=eager)
    assert [line.split()[0] for line in result.stdout.splitlines() if line.startswith("member-")] == [
        "member-3"
    ]
    wrong = groupstorm("trace", str(eager), "--timeline", "--member", "member-9", cwd=eager)
    assert refused(wrong).startswith("groupstorm: --member member-9: not in the trace; near it:")


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--timeline", "--all"], "--timeline: expected no --all"),
        (["--timeline", "--perfetto", "x.json"], "--timeline: expected no --perfetto"),
        (["--perfetto", "x.json", "--member", "a"], "--perfetto: expected no --member"),
        (["--perfetto", "x.json", "--begin", "2026-01-01T00:00:00Z"], "--perfetto: expected no --begin"),
        (["--begin", "2026-01-01T00:00:00Z"], "--begin: needs --otlp"),
    ],
)
def test_options_that_would_do_nothing_are_refused(handover: Path, options: list[str], wrong: str) -> None:
    assert refused(groupstorm("trace", str(handover), *options, cwd=handover)) == f"groupstorm: {wrong}"

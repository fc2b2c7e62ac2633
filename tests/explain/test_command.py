"""`groupstorm explain` as a user meets it: text that fits 80 columns, --json, windows, bad input."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.command import groupstorm, refused
from tests.explain.explaining import END_OF_FORMED, FORMED, removed, round_of, storm, trace_of
from tests.imports.importing import LOGS

SEGMENTS = Path(__file__).parents[1] / "imports/offsets/data/__consumer_offsets-0"

EXPIRED = [
    *FORMED,
    removed(95, "b", "b-1", "session-expired"),
    *round_of(95, 2, "session-expired", "b-1"),
    END_OF_FORMED,
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return trace_of(tmp_path, EXPIRED)


def explained(trace: Path, *words: str) -> str:
    result = groupstorm("explain", str(trace), *words, cwd=trace.parent)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_text_names_pattern_culprit_and_evidence(trace: Path) -> None:
    text = explained(trace)
    assert "1. Sessions that expired (session-expired)" in text
    assert "| 95.000 s  b is removed from the group: session-expired" in text
    assert ["b-1", "session-expired", "1"] in [line.split()[:3] for line in text.splitlines()]
    assert all(len(line) <= 80 for line in text.splitlines())


def test_all_lists_every_rebalance(trace: Path) -> None:
    lines = explained(trace, "--all").splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("0.000", "95.000"))] == ["0.000", "95.000"]


def test_json_has_stable_keys(trace: Path) -> None:
    (group,) = json.loads(explained(trace, "--json"))["groups"]
    keys = "group from_us to_us rebalances rebalances_at_least refusals absences unowned_us"
    more = "unowned_is_lower_bound without_members"
    assert " ".join(group) == f"{keys} {more} without_worker alone unloaded_us baseline patterns unknown"
    (pattern,) = group["patterns"]
    assert (pattern["name"], pattern["rebalances"], pattern["members"]) == ("session-expired", [2], ["b-1"])
    assert pattern["evidence"][-1]["text"].split() == [
        "b",
        "is",
        "removed",
        "from",
        "the",
        "group:",
        "session-expired",
    ]
    assert [one["pattern"] for one in group["rebalances"]] == [None, "session-expired"]
    assert group["rebalances"][1] == {
        "number": 2,
        "begun_us": 95_000_000,
        "ended_us": 96_010_000,
        "lasted_us": 1_010_000,
        "rounds": 1,
        "cause": "session-expired",
        "culprit": "b-1",
        "unowned_us": None,
        "pattern": "session-expired",
    }


def test_a_window_before_the_crash_is_quiet(trace: Path) -> None:
    text = explained(trace, "--from", "10", "--to", "90")
    assert "No pattern found. The group was quiet." in text


def test_lines_of_a_log_are_quoted_if_the_log_is_there(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text((LOGS / "E6.log").read_text("utf-8"), "utf-8")
    assert groupstorm("import", "server.log", "--out", "out", cwd=tmp_path).returncode == 0
    text = explained(tmp_path / "out")
    assert "| server.log:1: [2020-01-17 10:24:24,876] INFO [GroupCoordinator 3]: Member" in " ".join(
        text.split()
    )
    assert "Time without an owner: unknown: who owned which partition is not known" in text
    assert " no owner " in text
    assert "at least" not in text
    log.unlink()
    assert "| server.log:1\n" in explained(tmp_path / "out")


def test_times_by_the_coordinator_alone_are_lower_bounds(tmp_path: Path) -> None:
    """A segment of `__consumer_offsets`: members stop before they join, which no record tells."""
    assert groupstorm("import", str(SEGMENTS), "--out", "out", cwd=tmp_path).returncode == 0
    text = explained(tmp_path / "out", "--group", "pay")
    assert "Time without an owner, summed over partitions: at least 116 ms." in text
    table = " ".join(text[text.index("Who began the rebalances") :].split())
    assert table.startswith("Who began the rebalances no owner, began by cause rebalances lasted at least")
    (group,) = json.loads(explained(tmp_path / "out", "--group", "pay", "--json"))["groups"]
    assert group["unowned_is_lower_bound"] is True


def test_a_group_that_is_not_there(trace: Path) -> None:
    result = groupstorm("explain", str(trace), "--group", "other", cwd=trace.parent)
    assert refused(result) == "groupstorm: --group other: not in the trace; there are: g"


def test_a_folder_without_a_trace(tmp_path: Path) -> None:
    assert "no trace in it (" in refused(groupstorm("explain", str(tmp_path), cwd=tmp_path))
    for variant in ("static", "eager"):  # as a comparison's folder has them
        (tmp_path / variant / "seed-0").mkdir(parents=True)
        (tmp_path / variant / "seed-0" / "trace.jsonl").touch()
    told = "groupstorm: .: no trace in it, but below: name one, as eager/seed-0"
    assert refused(groupstorm("explain", ".", cwd=tmp_path)) == told


def test_the_commands_that_it_prints_run(trace: Path) -> None:
    (first, *_) = re.findall(r"Try: ((?:.*\\\n)*.+)", explained(trace))
    words = shlex.split(first.replace("\\\n", " "))
    assert words[-2:] == ["compare", "deploy-and-crash"]
    listed = groupstorm("list", cwd=trace.parent).stdout
    assert words[-1] in listed.splitlines()


def test_the_rounds_of_a_consumer_group_are_epochs(tmp_path: Path) -> None:
    small = {"members": 4, "partitions": 8}
    told = explained(storm(tmp_path / "run", "rolling-deploy", "consumer", small), "--all")
    assert "8 rebalances (8 epochs)" in told
    assert re.search(r"by +epochs +lasted", told)
    both = explained(storm(tmp_path / "both", "migrate-to-consumer-protocol", "eager", small), "--all")
    assert "rounds)" in both

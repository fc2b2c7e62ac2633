"""Logs of a real group: what of them a scenario repeats. The recordings are those of the tests of imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.problems import InputError
from groupstorm.trace.reader import read_entries
from groupstorm.whatif.agreement import repeat
from groupstorm.whatif.facts import Reading
from groupstorm.whatif.inference import infer_settings, timeouts_of
from groupstorm.whatif.lives import lives_of
from groupstorm.whatif.reading import read_run
from tests.imports.importing import LOGS, broker_line, emptied, failed, import_texts, joins, rows, stabilized
from tests.imports.test_ends_of_members import A, B

DATA = LOGS.parent / "offsets/data/__consumer_offsets-0"
RECORDING = LOGS / "real" / "kafka-4.3.1-java"


def read(folder: Path, *more: Path) -> Reading:
    logs = find_logs([str(path) for path in (*sorted(RECORDING.glob("*.log.gz")), *more)])
    import_logs(logs, folder / "out", Options())
    return read_run(folder / "out" / "trace.jsonl", "orders-dynamic")


def test_a_broker_that_stops_behind_the_group_is_no_problem(tmp_path: Path) -> None:
    reading = read(tmp_path)
    assert reading.problems == []
    assert reading.configured["app-0"]["session.timeout.ms"] == "6000"


def test_a_coordinator_that_goes_on_afterwards_is_one(tmp_path: Path) -> None:
    later = tmp_path / "server-2.log"
    prefix = "[GroupCoordinator id=2 topic=__consumer_offsets partition=0]"
    later.write_text(
        f"[2027-01-01 00:00:00,000] INFO {prefix} Dynamic member with unknown member id joins group "
        "orders-dynamic in Empty state. Created a new member id "
        "app-0-11111111-2222-3333-4444-555555555555 and requesting the member to rejoin with this id. "
        "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n",
        "utf-8",
    )
    problems = read(tmp_path, later).problems
    assert ["lost its coordinator" in one for one in problems] == [True]


def test_a_member_that_left_sooner_than_its_assumed_interval_allows_is_a_problem(tmp_path: Path) -> None:
    """kafka-python does not log max_poll_interval_ms. With the default of five minutes the member would have
    polled last before it started."""
    logs = sorted((LOGS / "real" / "kafka-4.3.1-kafka-python").glob("*.log.gz"))
    import_logs(find_logs([str(path) for path in logs]), tmp_path / "out", Options())
    reading = read_run(tmp_path / "out" / "trace.jsonl", "orders-dynamic")
    session, problem = sorted(
        lives_of(reading, timeouts_of(reading, infer_settings(reading, {}))).problems, key=len
    )
    assert "its session.timeout.ms cannot be 45 s" in session
    assert "its max.poll.interval.ms cannot be 300 s" in problem
    assert "--known max.poll.interval.ms=" in problem
    known = infer_settings(reading, {"max.poll.interval.ms": "8s", "session.timeout.ms": 6_000})
    assert lives_of(reading, timeouts_of(reading, known)).problems == []


def test_a_known_timeout_that_is_no_duration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--known session\.timeout\.ms"):
        infer_settings(read(tmp_path), {"session.timeout.ms": "long"})


def test_a_group_ends_when_its_last_member_has_gone(tmp_path: Path) -> None:
    """Its log goes on for half a minute, in which six partitions have no owner."""
    logs = sorted((LOGS / "real" / "kafka-4.3.1-librdkafka").glob("*.log.gz"))
    import_logs(find_logs([str(path) for path in logs]), tmp_path / "out", Options())
    trace = tmp_path / "out" / "trace.jsonl"
    reading = read_run(trace, "orders-static")
    accumulator, ended_us, gone_us = FiguresAccumulator(), 0, 0
    for row, entry in read_entries(trace):
        ended_us = row["time_us"]
        if entry is not None and row["group"] == "orders-static":
            accumulator.add(*entry)
            gone_us = ended_us if row["event"] == "members_gone" else gone_us
    told = accumulator.figures(ended_us).unowned_partition_seconds
    assert reading.figures is not None
    assert told is not None
    assert gone_us > 0
    assert gone_us < ended_us
    assert reading.ended_us == gone_us
    assert reading.figures.unowned_partition_seconds == pytest.approx(told)


def test_a_group_that_is_deleted_after_its_last_member_has_gone(tmp_path: Path) -> None:
    """Three groups whose records of `__consumer_offsets` end with their deletion."""
    import_logs(find_logs([str(DATA)]), tmp_path / "out", Options())
    for group in ("coop", "new", "pay"):
        reading = read_run(tmp_path / "out", group)
        assert reading.problems == []
        assert reading.ended_us < 380_000_000


def test_a_group_that_is_deleted_and_made_again_is_a_problem(tmp_path: Path) -> None:
    lines = ""
    for second, member_id in ((0, A), (40, B)):
        at = [f"10:00:{second + more:02},000" for more in (0, 1, 9, 15)]
        lines += joins(at[0], 0, member_id) + stabilized(at[1], 1, 1) + emptied(at[2], 2)
        lines += broker_line(at[3], "Group g transitioned to Dead in generation 2")
    import_texts(tmp_path, {"server.log": lines})
    (problem,) = read_run(tmp_path / "out", "g").problems
    place = f"at 15.0 s: {tmp_path / 'server.log'}:4"
    assert problem == f"the group was deleted, expired, or lost its coordinator ({place})"


def test_a_time_without_members_counts_if_somebody_comes_back(tmp_path: Path) -> None:
    """Two processes, one after the other, and 30 s in between."""
    lines = joins("10:00:00,000", 0, A) + stabilized("10:00:01,000", 1, 1) + emptied("10:00:10,000", 2)
    lines += joins("10:00:40,000", 2, B) + stabilized("10:00:41,000", 3, 1) + emptied("10:00:50,000", 4)
    lines += failed("10:00:59,000", "x", group="h")
    import_texts(tmp_path, {"server.log": lines})
    reading = read_run(tmp_path / "out", "g")
    assert reading.ended_us == 50_000_000
    assert [row["event"] for row in rows(tmp_path) if row["event"].startswith("members_")] == [
        "members_gone",
        "members_back",
        "members_gone",
    ]


def test_a_log_without_a_round_is_not_repeated(tmp_path: Path) -> None:
    """A replay would agree with it, whatever it does."""
    session = "2026-11-20T10:{}Z [INFO] new group session begun; group: g, added: t[0 1], lost: \n"
    leaving = "2026-11-20T11:00:00Z [INFO] leaving group; group: g, member_id: m-1\n"
    import_texts(tmp_path, {"app.log": session.format("00:00") + session.format("30:00") + leaving})
    with pytest.raises(InputError, match="no row is about a round of the group, or says for how long"):
        repeat(tmp_path / "out", None, {})

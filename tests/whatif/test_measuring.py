"""The settings of a group that its trace measures: of a storm, of the same as logs, of real logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.problems import InputError
from groupstorm.storms.scenario.setting_names import How, Measured
from groupstorm.trace.reader import read_rows
from groupstorm.whatif.measuring import measure
from tests.imports.importing import LOGS
from tests.whatif.storms import as_logs, storm
from tools.log_printing.logs import LogKind

START = {"start_ms": {"uniform": ["8s", "31s"]}}


def values(found: Measured) -> dict[str, Any]:
    return {name: known.value for name, known in found.settings.items()}


def real(folder: Path, recording: str) -> Path:
    """The folder of an import of a real group's logs."""
    logs = sorted((LOGS / "real" / recording).glob("*.log.gz"))
    import_logs(find_logs([str(path) for path in logs]), folder / "out", Options())
    return folder / "out"


def test_starts_that_logs_show_are_those_of_the_storm(tmp_path: Path) -> None:
    run = storm(tmp_path / "run", "rolling-deploy", "eager", **START, record_rate=7, drain_ms="2s")
    of_storm = values(measure(run, None))
    assert (of_storm["record_rate"], of_storm["drain_ms"]) == (7, "2s")
    assert of_storm["topic_partitions"] == {"topic-0": 12}
    found = measure(as_logs(run, tmp_path / "logs"), None)
    starts = found.settings["start_ms"]
    assert starts.why.startswith("4 starts, ")
    for at, ms in starts.value["quantiles"].items():
        assert ms == pytest.approx(of_storm["start_ms"]["quantiles"][at], abs=2)
        assert 8_000 <= ms <= 31_100
    assert list(found.unknown) == ["record_rate", "stop_grace_ms", "drain_ms", "process_ms"]


def test_new_names_say_nothing_of_starts(tmp_path: Path) -> None:
    run = storm(tmp_path / "run", "rolling-deploy", "eager", deployment="deployment", max_surge=1)
    found = measure(as_logs(run, tmp_path / "logs", LogKind.BROKER), None)
    assert "start_ms" not in found.settings
    assert found.unknown["start_ms"] == "no process stops and comes back under its name"


def test_a_client_id_of_several_processes_says_nothing_of_starts(tmp_path: Path) -> None:
    run = storm(tmp_path / "run", "rolling-deploy", "eager")
    as_logs(run, tmp_path / "logs", LogKind.BROKER)
    log = tmp_path / "logs" / f"{LogKind.BROKER}.log"
    text = log.read_text("utf-8")
    for name in {row["member"] for row in read_rows(run) if row["event"] == "member_started"}:
        text = text.replace(f"{name}-", "consumer-orders-1-")
    log.write_text(text, "utf-8")
    import_logs(find_logs([str(log)]), tmp_path / "out", Options())
    found = measure(tmp_path / "out", None)
    assert "start_ms" not in found.settings
    assert found.unknown["start_ms"] == "no process stops and comes back under its name"


def test_real_logs(tmp_path: Path) -> None:
    out = real(tmp_path, "kafka-4.0.0-java")
    with pytest.raises(InputError, match="name one with --group"):
        measure(out, None)
    measured = measure(out, "orders-dynamic")
    dynamic = values(measured)
    assert dynamic["session.timeout.ms"] == 6_000
    assert dynamic["max.poll.interval.ms"] == 8_000
    assert dynamic["topic_partitions"] == {"orders": 6}
    assert "group.instance.id" not in dynamic
    # range is the first of the client's default
    assert measured.settings["partition.assignment.strategy"].how == How.ASSUMED
    static = measure(out, "orders-static").settings
    assert static["partition.assignment.strategy"].value == ["cooperative-sticky"]
    assert static["partition.assignment.strategy"].why.startswith("server.log.gz:")
    assert static["group.instance.id"].value == "ordinal"


def written(folder: Path, *rows: dict[str, Any]) -> Measured:
    """The measures of a trace of these rows."""
    common = {"source": "coordinator", "group": "g"}
    lines = [
        json.dumps({**common, **row, "seq": number, "time_us": row["time_us"] * 1_000_000})
        for number, row in enumerate(rows)
    ]
    (folder / "trace.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return measure(folder / "trace.jsonl", None)


def test_the_record_rate_is_that_of_the_ends_of_logs_or_else_of_commits(tmp_path: Path) -> None:
    def committed(second: int) -> dict[str, Any]:
        positions = {"partitions": ["a-0", "a-1"], "positions": [second, 5 * second]}
        return {"time_us": second, "event": "offsets_committed", **positions}

    refused = {**committed(50), "positions": [9_999, 9_999], "error": "REBALANCE_IN_PROGRESS"}
    commits = [committed(0), committed(20), committed(40), refused]
    rate = written(tmp_path, *commits).settings["record_rate"]
    assert (rate.value, "of 2 partitions by the commits of the group" in rate.why) == (3.0, True)
    assert "record_rate" in written(tmp_path, committed(0), committed(20)).unknown
    ends = {"event": "record_rates_changed", "source": "world", "partitions": ["a-0"], "rates": [1_000]}
    grown = [{**ends, "time_us": 60, "positions": [100]}, {**ends, "time_us": 160, "positions": [9_100]}]
    rate = written(tmp_path, *commits, *grown).settings["record_rate"]
    assert (rate.value, "of 1 partition by the ends of the logs" in rate.why) == (90, True)

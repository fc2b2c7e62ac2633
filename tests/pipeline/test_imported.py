"""Imported traces: both engines give the same figures, with the unknown ones null, tables and summaries."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.pipeline.analysis import Engine, analyze
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import TABLES, Request
from groupstorm.problems import InputError
from groupstorm.trace.schema import IMPORTED_VERSION, VERSION_KEY
from tests.imports.importing import LOGS
from tests.imports.real_logs import CLIENTS, SOURCES, imported, recordings
from tests.pipeline.both_engines import assert_the_engines_agree, locally
from tests.soaking import in_soak

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces made from recorded logs (the broker's, the clients', both), and from short excerpts."""
    folder = tmp_path_factory.mktemp("imported")
    for recording in recordings():
        for source in SOURCES:
            imported(recording, source, folder / f"{recording.name}-{source}")
    for log in sorted(LOGS.glob("*.log")):
        with suppress(InputError):  # a log without a group
            import_logs(find_logs([str(log)]), folder / log.stem, Options())
    return folder


@pytest.mark.parametrize("window", [*in_soak(WHOLE), Window(5_000_000, None)])
def test_the_engines_agree_on_imported_traces(spark: SparkSession, traces: Path, window: Window) -> None:
    assert_the_engines_agree(spark, Request(find_traces([traces]), window=window, slowest=4))


@pytest.mark.slow
def test_imported_traces_that_know_little_are_among_them(traces: Path) -> None:
    """Null figures, positions and generations: without them the comparison would prove little."""
    result, tables = locally(Request(find_traces([traces])))
    unowned = [figures.unowned_partition_seconds for figures in result.figures.values()]
    assert None in unowned
    assert any(unowned)
    intervals = [
        dict(zip(("run", "group", *TABLES["intervals"]), row, strict=True)) for row in tables["intervals"]
    ]
    assert {row["from_position"] for row in intervals} == {None}
    assert tables["handovers"]


def test_a_generation_without_a_round_of_its_own_has_first_answers_of_its_own(tmp_path: Path) -> None:
    """Clients' logs do not always tell of a PreparingRebalance: the figures and the table say the same."""
    recording = next(one for one in recordings() if one.name == "kafka-3.4.1-librdkafka")
    imported(recording, CLIENTS, tmp_path / "run")
    result, tables = locally(Request(find_traces([tmp_path])))
    for key, figures in result.figures.items():
        latencies = [row[13] for row in tables["rounds"] if row[:2] == key and row[13] is not None]
        assert figures.rebalance_latency_max_ms == max(latencies) / 1000
        assert figures.rebalance_latency_avg_ms == round(sum(latencies) / len(latencies) / 1000, 3)


def test_an_answer_of_an_unknown_generation_belongs_to_no_round(engine: str, tmp_path: Path) -> None:
    changed = {"event": "group_state_changed", "previous_state": "unknown", "cause": "unknown", "count": 1}
    rows: list[dict[str, Any]] = [
        {"event": "group_imported", "cause": "coordinator", "detail": "{}"},
        {**changed, "state": "PreparingRebalance"},
        {**changed, "state": "CompletingRebalance"},
        {"event": "sync_answered", "member": "a", "member_id": "a-1", "partitions": ["t-0"]},
        {**changed, "state": "Stable"},
    ]
    common = {"source": "coordinator", "group": "g", "provenance": "observed"}
    lines = [{"seq": seq, "time_us": 10 * seq, **common, **row} for seq, row in enumerate(rows)]
    text = "".join(json.dumps(line) + "\n" for line in [{VERSION_KEY: IMPORTED_VERSION}, *lines])
    (tmp_path / "trace.jsonl").write_text(text, "utf-8")
    analysis = analyze(Request({"run": tmp_path}), Engine(engine))
    [one] = analysis.rounds
    assert (one.rounds, one.stable, one.latency_max_us) == (1, 1, None)
    assert analysis.figures["run"].rebalance_latency_max_ms is None

"""`groupstorm.read`: traces without a scenario, groups, and folders that hold something else."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupstorm
from groupstorm.library import RunResult
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import run_in_memory
from groupstorm.storms.scenario.files import load
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.writer import DirectorySink
from tests.command import groupstorm as command


@pytest.fixture(scope="module")
def entries() -> list[TraceEntry]:
    scenario = load("cold-start").resolve(None, 0, {"members": 3, "partitions": 6, "record_rate": 10})
    return [*run_in_memory(scenario).trace.entries()]


@pytest.fixture(scope="module")
def trace(entries: list[TraceEntry], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several files, as `serve` leaves them, with the rows of two groups."""
    folder = tmp_path_factory.mktemp("traces") / "served"
    sink = DirectorySink(folder, rows_per_file=50)
    for time_us, source, event in entries:
        sink.add(time_us, source, event)
        sink.add(time_us, source, event._replace(group="other"))  # type: ignore[attr-defined]
    sink.close()
    assert len([*folder.iterdir()]) > 2
    return folder


def read_trace(path: Path, group: str | None = None) -> RunResult:
    found = groupstorm.read(path, group)
    assert isinstance(found, RunResult)
    return found


def test_the_rows_of_all_groups(trace: Path, entries: list[TraceEntry]) -> None:
    served = read_trace(trace)
    assert (served.name, served.scenario, served.variant, served.seed) == ("served", None, None, None)
    assert served.groups == ("other", "storm")
    assert len([*served.rows]) == served.to_arrow().num_rows == 2 * len(entries)
    assert repr(served) == "<RunResult served: other, storm>"
    assert {*served.to_arrow("rounds")["group"].to_pylist()} == {"other", "storm"}
    assert "other: " in str(served), "there is an answer for each group"
    assert served._repr_html_().count("<p>") >= 2
    with pytest.raises(InputError, match=r"served: the trace has 2 groups \(other, storm\): expected one"):
        served.figures  # noqa: B018


def test_one_group(trace: Path, entries: list[TraceEntry]) -> None:
    one = read_trace(trace, "other")
    assert one.groups == ("other",)
    assert {row["group"] for row in one.rows} == {"other"}
    assert one.to_arrow().num_rows == len(entries)
    assert {*one.to_arrow("rounds")["group"].to_pylist()} == {"other"}
    assert one.figures.generations > 0
    assert "served" in str(one)


def test_a_file_of_the_trace(trace: Path) -> None:
    assert len([*read_trace(trace / "trace-000000.jsonl", "storm").rows]) == 25


def test_a_group_that_is_not_there(trace: Path) -> None:
    with pytest.raises(InputError, match="group: 'billing': not in the trace; there are: other, storm"):
        groupstorm.read(trace, "billing")


def test_a_trace_without_a_scenario_can_be_neither_saved_nor_replayed(trace: Path, tmp_path: Path) -> None:
    served = read_trace(trace)
    with pytest.raises(InputError, match="not the folder of a run: copy it"):
        served.save(tmp_path / "copy")
    with pytest.raises(InputError, match=r"no scenario\.yaml in it"):
        served.replay()
    assert not (tmp_path / "copy").exists()


def test_a_trace_without_a_scenario_has_the_page_of_the_command(trace: Path, tmp_path: Path) -> None:
    page = read_trace(trace, "other").report(tmp_path / "page.html")
    command("report", str(trace), "--group", "other", "-o", "report.html", cwd=tmp_path)
    assert page.read_text("utf-8") == (tmp_path / "report.html").read_text("utf-8")


def test_places_where_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such file or folder"):
        groupstorm.read(tmp_path / "nowhere")
    with pytest.raises(InputError, match="not the folder of a run, of its seeds, or of a comparison"):
        groupstorm.read(tmp_path)
    (tmp_path / "sweep.json").write_text('{"over": {}}')
    with pytest.raises(InputError, match=r"sweep\.json: not a sweep of this version"):
        groupstorm.read(tmp_path / "sweep.json")
    (tmp_path / "sweep.json").write_text("[")
    with pytest.raises(InputError, match=r"sweep\.json: not JSON"):
        groupstorm.read(tmp_path)

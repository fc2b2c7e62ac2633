"""Logs that memory does not hold: runs on disk give the same trace."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest

from groupstorm.imports import spill
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.spill import SpillingSorter
from groupstorm.trace import writer
from tests.imports.importing import LOGS, import_texts, joins

TEXT = "".join(path.read_text("utf-8").rstrip("\n") + "\n" for path in sorted(LOGS.glob("*.log")))


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_runs_on_disk_are_sorted_together(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "HELD_MAX", 3)
    monkeypatch.setattr(spill, "_RUNS_MAX", 4)
    numbers = [random.Random(7).randrange(20) for _ in range(count)]
    sorter = SpillingSorter(key=lambda item: item[0])
    for place, number in enumerate(numbers):
        sorter.add((number, place, {"text": ["a", None]}))
    expected = sorted(((number, place) for place, number in enumerate(numbers)), key=lambda item: item[0])
    assert [item[:2] for item in sorter.sorted()] == expected


def test_an_import_that_spills_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_texts(tmp_path, {"all.log": TEXT})
    expected = (tmp_path / "out" / "trace.jsonl").read_bytes()
    monkeypatch.setattr(spill, "HELD_MAX", 5)
    import_texts(tmp_path, {"all.log": TEXT})
    assert (tmp_path / "out" / "trace.jsonl").read_bytes() == expected
    assert expected.count(b"\n") > 50


@pytest.mark.slow  # tracemalloc
def test_little_of_a_group_that_was_read_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster has 200,000 groups."""
    for module, name, held in (
        (spill, "HELD_MAX", 200),
        (spill, "_CHUNK", 5),
        (writer, "LINES_PER_WRITE", 9),
    ):
        monkeypatch.setattr(module, name, held)

    def text(groups: int) -> str:
        return "".join(
            joins("10:00:00,000", 0, f"m-{number}", group=f"g-{number}") for number in range(groups)
        )

    def peak(groups: int) -> int:
        (tmp_path / "all.log").write_text(text(groups), "utf-8")
        logs = find_logs([str(tmp_path / "all.log")])
        tracemalloc.start()
        import_logs(logs, tmp_path / "out", Options())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    import_texts(tmp_path, {"all.log": text(1)})  # what is made once stays
    assert (peak(1_200) - peak(200)) / 1_000 < 4_000  # most is garbage of the JSON encoder

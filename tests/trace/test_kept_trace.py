"""Kept traces: in memory, or in a temporary file."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.trace.events.member import MemberStarted
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import KeptTrace


def entry(number: int) -> TraceEntry:
    return number * 10, Source.MEMBER, MemberStarted("group", f"member-{number}", None, ("orders",))


@pytest.mark.parametrize(("rows", "in_memory"), [(0, True), (1, True), (3, True), (4, False), (9, False)])
def test_a_large_trace_is_kept_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: int, in_memory: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trace = KeptTrace(rows_in_memory_max=3)
    for number in range(rows):
        trace.add(*entry(number))
    trace.close()
    assert ([*tmp_path.rglob("trace.jsonl")] == []) == in_memory
    for _ in range(2):  # it can be read again
        assert [*trace.entries()] == [entry(number) for number in range(rows)]
        assert [row["seq"] for row, _ in trace.rows()] == [*range(rows)]


def test_the_file_goes_with_the_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trace = KeptTrace(rows_in_memory_max=1)
    trace.add_all([entry(0), entry(1), entry(2)])
    trace.close()
    assert [*tmp_path.rglob("trace.jsonl")]
    del trace
    assert [*tmp_path.iterdir()] == []

"""Runs and their files: a run without a folder saves what one that writes them does."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.runs.run import KeptRun, run, run_in_memory
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import read_entries

RESOLVED = load("cold-start").resolve(None, 5, {"members": 4, "partitions": 8})


@pytest.fixture(scope="module")
def kept() -> KeptRun:
    return run_in_memory(RESOLVED)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(RESOLVED, tmp_path_factory.mktemp("written") / "run").folder


def test_it_saves_the_files_of_a_run_that_writes_them(kept: KeptRun, written: Path, tmp_path: Path) -> None:
    kept.save(tmp_path / "saved", "jsonl")
    for name in ("trace.jsonl", "scenario.yaml", "figures.json"):
        assert (tmp_path / "saved" / name).read_bytes() == (written / name).read_bytes()
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {path.name for path in written.iterdir()}


def test_it_saves_as_parquet(kept: KeptRun, written: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'groupstorm[parquet]'")
    kept.save(tmp_path, "parquet")
    assert [*read_entries(tmp_path)] == [*read_entries(written)]


def test_its_rows_are_those_that_a_reader_reads(kept: KeptRun, written: Path) -> None:
    for (row, entry), (read, typed) in zip(kept.trace.rows(), read_entries(written), strict=True):
        assert (row, entry) == (read, typed)
        assert [type(value) for value in row.values()] == [type(value) for value in read.values()]


def test_a_folder_that_holds_something_else_is_refused(kept: KeptRun, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(InputError, match=r"holds thesis\.txt"):
        kept.save(tmp_path, "jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


class Interrupted(KeyboardInterrupt):
    pass


def test_a_run_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    def break_off(now_us: int, _phase: str) -> None:
        if now_us > 5_000_000:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(load("cold-start").resolve(None, 1, {"members": 3}), tmp_path / "x", progress=break_off)
    assert list(tmp_path.iterdir()) == []

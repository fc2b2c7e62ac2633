"""The benchmark of storms measures what it says, and says what it cannot."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks import storm


@pytest.mark.slow
def test_each_kind_runs_without_and_with_commits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    monkeypatch.setattr(sys, "argv", ["storm", "--kind", "pure", "--members", "42"])
    storm.main()
    lines = capsys.readouterr().out.splitlines()
    measured = {line[:33].strip(): line[33:].split() for line in lines if line.startswith(storm.PURE_KIND)}
    kinds = ["no commits", "with commits", "consumer"]
    assert list(measured) == [f"pure Python, {kind}" for kind in kinds]
    assert measured["pure Python, no commits"][1] == "1.00"
    assert all(float(cell.replace(",", "")) >= 0 for cells in measured.values() for cell in cells)


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.slow
def test_all_join_again_in_each_of_the_rebalances(commits: bool) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    measured = storm.storm(42, commits, exact=False)
    joins = sum(42 - number for number in range(1, storm.REBALANCES + 1))
    assert measured.rows > 6 * joins  # parked, answered, parked, answered, asked for, assigned


def test_a_compiled_copy_that_is_not_there_or_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["storm", "--kind", "compiled"])
    monkeypatch.setattr(storm, "COMPILED", tmp_path / "compiled")
    with pytest.raises(SystemExit, match=r"is not there: \./dev compile makes it"):
        storm.main()
    source = tmp_path / "groupstorm" / "clock.py"
    (tmp_path / "compiled").mkdir()
    source.parent.mkdir()
    source.touch()
    monkeypatch.chdir(tmp_path)
    os.utime(tmp_path / "compiled", (0, 0))
    with pytest.raises(SystemExit, match=r"is older than the sources"):
        storm.main()

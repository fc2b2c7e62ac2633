"""Calls in other processes: order, errors, and a process that ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.runs.run_folder import RUN_FILES
from groupstorm.storms.runs.several import forget_other_runs
from groupstorm.storms.runs.worker_processes import map_in_processes
from groupstorm.storms.scenario.files import load


def test_results_come_in_the_order_of_the_arguments() -> None:
    assert list(map_in_processes(abs, range(-20, 0), 3)) == list(range(20, 0, -1))


def test_an_expected_error_is_raised_here() -> None:
    with pytest.raises(InputError, match="neither a preset"):
        list(map_in_processes(load, ["cold-start", "nowhere"], 2))


def test_a_process_that_ends_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="ended in the middle of a run"):
        list(map_in_processes(os._exit, [3, 3], 2))


def test_the_script_that_starts_processes_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """multiprocessing would import it in every one of them."""
    script = ModuleType("__main__")
    script.__file__ = str(tmp_path / "script.py")
    (tmp_path / "script.py").write_text(f"open({str(tmp_path / 'run-again')!r}, 'x')")
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert list(map_in_processes(abs, [-1], 1)) == [1]
    assert sys.modules["__main__"] is script
    assert not (tmp_path / "run-again").exists()


def test_an_older_comparison_names_folders_below_it_alone(tmp_path: Path) -> None:
    """Whatever somebody has written into its file."""
    folder = tmp_path / "compared"
    for place in (folder / "eager", folder / "static", tmp_path):
        place.mkdir(exist_ok=True, parents=True)
        (place / RUN_FILES[0]).write_text("")
    names: dict[str, object] = {"eager": {}, "static": {}, "..": {}, "../compared/eager": {}, ".": {}}
    (folder / "comparison.json").write_text(json.dumps({"variants": names}))
    forget_other_runs(folder, ["eager"], [0])
    assert [path.name for path in folder.iterdir()] == ["eager"]
    assert (tmp_path / RUN_FILES[0]).exists()
    assert (folder / "eager" / RUN_FILES[0]).exists()


class Endless(Sequence[int]):
    """Two numbers by its length; asked for more, it has more."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: Any) -> Any:
        return -place


def test_a_sequence_has_as_many_arguments_as_its_length_says() -> None:
    assert [*map_in_processes(abs, Endless(), 2)] == [0, 1]

"""Calls in other processes: order, errors, and a process that ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.run_folder import RUN_FILES
from groupstorm.storms.scenario.files import load
from groupstorm.storms.several import forget_other_variants
from groupstorm.storms.worker_processes import map_in_processes


def test_results_come_in_the_order_of_the_arguments() -> None:
    assert list(map_in_processes(abs, range(-20, 0), 3)) == list(range(20, 0, -1))


def test_an_expected_error_is_raised_here() -> None:
    with pytest.raises(InputError, match="neither a preset"):
        list(map_in_processes(load, ["cold-start", "nowhere"], 2))


def test_a_process_that_ends_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="ended in the middle of a run"):
        list(map_in_processes(os._exit, [3, 3], 2))


def test_an_older_comparison_names_folders_below_it_alone(tmp_path: Path) -> None:
    """Whatever somebody has written into its file."""
    folder = tmp_path / "compared"
    for place in (folder / "eager", folder / "static", tmp_path):
        place.mkdir(exist_ok=True, parents=True)
        (place / RUN_FILES[0]).write_text("")
    names: dict[str, object] = {"eager": {}, "static": {}, "..": {}, "../compared/eager": {}, ".": {}}
    (folder / "comparison.json").write_text(json.dumps({"variants": names}))
    forget_other_variants(folder, ["eager"])
    assert [path.name for path in folder.iterdir()] == ["eager"]
    assert (tmp_path / RUN_FILES[0]).exists()
    assert (folder / "eager" / RUN_FILES[0]).exists()

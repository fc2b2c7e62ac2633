"""Folders that commands choose themselves: named by what was run, and no run hides another."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.storms.runs.run_folder import folder_stem, free_folder


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_preset_as_it_is_has_its_name_and_seed() -> None:
    assert folder_stem("cold-start", "7", changed={}) == "cold-start-7"
    assert folder_stem("cold-start", "0-to-4", kind="compare", changed={}) == "cold-start-compare-0-to-4"


def test_variant_and_settings_are_in_the_name() -> None:
    stem = folder_stem("rolling-deploy", "0", variants="eager", changed={"members": 60})
    assert stem == "rolling-deploy-eager-members=60-seed0"
    odd = {"a": ["x", "y"], "start_ms": {"p50": 1}, "m": "mine/py:a b", "f": True}
    assert folder_stem("x", "0", changed=odd) == "x-a=x+y-start_ms=-p50-1-m=mine-py-a-b-f=true-seed0"
    assert folder_stem("x", "1", kind="on-127.0.0.1:9092", changed={}) == "x-on-127.0.0.1-9092-seed1"


def test_many_settings_are_counted_and_two_sets_of_them_differ() -> None:
    many = {f"a.long.setting.{number}": number for number in range(20)}
    one, other = (folder_stem("x", "0", changed=settings) for settings in (many, many | {"b": 1}))
    assert one.startswith("x-20-settings-")
    assert one != other
    assert max(len(one), len(other)) < 40


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_same_run_uses_its_folder_again_and_another_one_does_not() -> None:
    first = free_folder("x-0", {"scenario.yaml": "a"})
    assert first == Path("runs/x-0")
    put(first, scenario_yaml="a")
    assert free_folder("x-0", {"scenario.yaml": "a"}) == first
    second = free_folder("x-0", {"scenario.yaml": "b"})
    assert second == Path("runs/x-0-2")
    put(second, scenario_yaml="b")
    assert free_folder("x-0", {"scenario.yaml": "b"}) == second
    assert free_folder("x-0", {}) == Path("runs/x-0-3"), "a run in real time is another one each time"


def test_a_comparison_of_other_variants_is_another_one() -> None:
    folder = Path("runs/x")
    put(folder, eager__scenario_yaml="a", static__scenario_yaml="b")
    both = {"eager/scenario.yaml": "a", "static/scenario.yaml": "b"}
    assert free_folder("x", both) == folder
    assert free_folder("x", {"eager/scenario.yaml": "a"}) == Path("runs/x-2")


def test_somebody_elses_files_are_left_alone() -> None:
    put(Path("runs/x"), notes="mine")
    assert free_folder("x", {"scenario.yaml": "a"}) == Path("runs/x-2")
    Path("runs/y").mkdir()
    assert free_folder("y", {"scenario.yaml": "a"}) == Path("runs/y")
    Path("runs/z").write_text("a file")
    assert free_folder("z", {"scenario.yaml": "a"}) == Path("runs/z-2")

"""The examples run as their heads say, and keep what they promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import ROOT, groupstorm


@pytest.mark.parametrize("attribute", ["rendezvous", "cooperative"])
def test_the_example_assignors_keep_their_promises(attribute: str) -> None:
    arguments = ["--count", "10", "--no-speed", "--json"]
    result = groupstorm("check-assignor", f"examples.rendezvous:{attribute}", *arguments, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    verdicts = {row["property"]: row["verdict"] for row in report["properties"]}
    assert verdicts["co-partitioning"] == verdicts["any order of members"] == "held"
    assert verdicts["balance"] == "not promised"


def test_an_example_assignor_stands_the_lab(tmp_path: Path) -> None:
    strategy = "partition.assignment.strategy=examples.rendezvous:cooperative"
    out = str(tmp_path / "lab")
    result = groupstorm("run", "custom-assignor-lab", "--set", strategy, "--out", out, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    figures = json.loads((tmp_path / "lab" / "figures.json").read_text())
    assert set(figures["invariants"].values()) == {"held"}
    again = groupstorm("replay", out, "--set", strategy, cwd=ROOT)
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    unnamed = groupstorm("replay", out, cwd=ROOT)
    assert unnamed.returncode == 2, "a file names no code"
    assert f"use --set {strategy}" in unnamed.stderr

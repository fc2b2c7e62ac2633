"""The commands that read a trace, with a trace of a share group."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.command import groupstorm
from tests.storms.share.test_share_storms import SMALL
from tests.storms.storms_in_memory import START


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    steps = [START, {"at_ms": 20_000, "do": "crash", "members": [1]}]
    content = {"name": "small", "settings": {**SMALL, "least_duration_ms": 80_000}, "steps": steps}
    (folder / "small.yaml").write_text(yaml.safe_dump(content))
    ran = groupstorm("run", "small.yaml", "--out", "run", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "records done" in ran.stdout
    return folder


def test_explain_says_that_nobody_owns_a_partition(folder: Path) -> None:
    said = " ".join(groupstorm("explain", "run", cwd=folder).stdout.split())
    assert "nobody owns a partition of a share group" in said
    assert "its place in the group after group.share.session.timeout.ms" in said


def test_whatif_drafts_no_scenario_from_a_share_group(folder: Path) -> None:
    refused = groupstorm("whatif", "run", "--set", "members=6", cwd=folder)
    assert refused.returncode != 0
    assert "the members are share consumers, whose partitions have no owners" in " ".join(
        refused.stderr.split()
    )


def test_what_outlasts_its_locks_is_mended_before_there_are_more_consumers(folder: Path) -> None:
    settings = {
        **SMALL, "process_ms": 200, "max.poll.records": 500, "record_rate": 4,
        "share.auto.offset.reset": "earliest", "least_duration_ms": 480_000,
    }  # fmt: skip
    content = {"name": "long", "settings": settings, "steps": [{"at_ms": 300_000, "do": "start"}]}
    (folder / "long.yaml").write_text(yaml.safe_dump(content))
    ran = groupstorm("run", "long.yaml", "--out", "long", cwd=folder)
    said = " ".join(ran.stderr.split())
    assert "first: max.poll.records of at most 149 (now 500)" in said
    assert "members with which it keeps up" not in said


def test_a_required_figure_of_a_share_group_decides(folder: Path) -> None:
    ran = groupstorm("run", "small.yaml", "--out", "other", "--require", "in_flight_max<1", cwd=folder)
    assert ran.returncode == 1

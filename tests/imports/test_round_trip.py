"""A storm printed as logs and imported again is the same trace, as far as those logs can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groupstorm.figures.by_group import figures_by_group
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.printing import LogKind, as_log
from groupstorm.storms.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import read_rows

Row = Mapping[str, Any]
STORMS = [
    ("rolling-deploy", "eager", 0),
    ("rolling-deploy", "cooperative", 1),
    ("rolling-deploy", "static", 2),
    ("cold-start", None, 3),
]
SIZE = {"members": 4, "partitions": 8}


def storm(folder: Path, preset: str, variant: str | None, seed: int) -> list[Row]:
    """The rows of a small storm. Its figures count from its first row on, as those of an import do."""
    scenario = replace(load(preset), figures_from=0)
    run(scenario.resolve(variant or next(iter(scenario.variants)), seed, SIZE), folder)
    return [*read_rows(folder)]


def imported(folder: Path, rows: list[Row], *kinds: LogKind) -> list[Row]:
    for kind in kinds:
        (folder / f"{kind}.log").write_text("".join(f"{line}\n" for line in as_log(rows, kind)), "utf-8")
    import_logs(find_logs([str(folder / f"{kind}.log") for kind in kinds]), folder / "out", Options())
    return [*read_rows(folder / "out")]


def seen(rows: list[Row], event: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of an event, to the millisecond from the first row on, as logs print them."""
    began = min(row["time_us"] // 1000 for row in rows if row["event"] == "group_state_changed")
    return [
        (row["time_us"] // 1000 - began, *(row.get(column) for column in columns))
        for row in rows
        if row["event"] == event
    ]


@pytest.mark.parametrize(("preset", "variant", "seed"), STORMS)
def test_a_brokers_log(tmp_path: Path, preset: str, variant: str | None, seed: int) -> None:
    original = storm(tmp_path / "storm", preset, variant, seed)
    again = imported(tmp_path, original, LogKind.BROKER)
    state = ("state", "generation", "count")
    assert seen(again, "group_state_changed", *state) == seen(original, "group_state_changed", *state)
    causes = [row["cause"] for row in original if row.get("state") == "PreparingRebalance"]
    assert [row["cause"] for row in again if row.get("state") == "PreparingRebalance"] == causes
    for event in ("member_added", "member_removed"):
        columns = ("member_id", "cause")
        assert seen(again, event, *columns) == seen(original, event, *columns)
    replaced = ("member_id", "previous_member_id", "instance")
    assert seen(again, "member_replaced", *replaced) == seen(original, "member_replaced", *replaced)
    assert not [row for row in again if row["event"] == "evidence_missing" and row["cause"] == "members"]


@pytest.mark.parametrize(("preset", "variant", "seed"), STORMS)
def test_a_brokers_and_the_clients_logs(tmp_path: Path, preset: str, variant: str | None, seed: int) -> None:
    original = storm(tmp_path / "storm", preset, variant, seed)
    again = imported(tmp_path, original, LogKind.BROKER, LogKind.JAVA)
    for event in ("partitions_assigned", "partitions_revoked", "partitions_lost"):
        columns = ("member", "generation", "partitions")
        assert sorted(map(repr, seen(again, event, *columns))) == sorted(
            map(repr, seen(original, event, *columns))
        )
    (known,) = figures_by_group(again).values()
    (figures,) = figures_by_group(original).values()
    assert known.generations == figures.generations
    assert known.moves == figures.moves

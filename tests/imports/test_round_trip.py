"""A storm printed as logs and imported again is the same trace, as far as those logs can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.preset_files import preset_names
from groupstorm.trace.reader import read_rows
from tests.figures.tracing import figures_by_group
from tests.soaking import one_in
from tools.log_printing.logs import LogKind, as_log

Row = Mapping[str, Any]
STORMS = [
    ("rolling-deploy", "eager", 0),
    ("rolling-deploy", "cooperative", 1),
    ("rolling-deploy", "static", 2),
    ("cold-start", "delay-3s", 3),
    ("rolling-deploy", "consumer", 4),
    ("migrate-to-consumer-protocol", "cooperative", 5),
    ("deploy-and-crash", "consumer", 6),
]


def printable(preset: str) -> list[str]:
    """The variants of a preset whose logs `as_log` prints: it has none of share groups."""
    scenario = load(preset)
    settings = {name: {**scenario.settings, **own} for name, own in scenario.variants.items()}
    return [name for name, own in settings.items() if own.get("group.protocol") != "share"]


ALL = [
    pytest.param(preset, variant, 6, marks=pytest.mark.soak if number else pytest.mark.slow)
    for preset in preset_names()
    for number, variant in enumerate(printable(preset))
]
SIZE = {"members": 4, "partitions": 8}


def storm(folder: Path, preset: str, variant: str, seed: int) -> list[Row]:
    """The rows of a small storm, or of the preset's own size if it has no other. Its figures count from its
    first row on, as those of an import do."""
    scenario = replace(load(preset), figures_from=0)
    try:
        run(scenario.resolve(variant, seed, SIZE), folder)
    except InputError:
        run(scenario.resolve(variant, seed, {}), folder)
    return [*read_rows(folder)]


def imported(folder: Path, rows: list[Row], *kinds: LogKind) -> list[Row]:
    for kind in kinds:
        (folder / f"{kind}.log").write_text("".join(f"{line}\n" for line in as_log(rows, kind)), "utf-8")
    import_logs(find_logs([str(folder / f"{kind}.log") for kind in kinds]), folder / "out", Options())
    return [*read_rows(folder / "out")]


def seen(rows: list[Row], event: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of an event, to the millisecond from the first change of the group on, as logs print them."""
    began = min(row["time_us"] // 1000 for row in rows if row["event"] in ("member_pending", "member_added"))
    return [
        (row["time_us"] // 1000 - began, *(row.get(column) for column in columns))
        for row in rows
        if row["event"] == event
    ]


def states(rows: list[Row]) -> list[tuple[Any, ...]]:
    """The group's state and generation at the end of each millisecond, if the state has changed: within one
    request a consumer group goes through several states, and its coordinator logs none of them."""
    at = {time: state for time, *state in seen(rows, "group_state_changed", "state", "generation")}
    changes: list[tuple[Any, ...]] = []
    for time, (state, generation) in at.items():
        if not changes or changes[-1][1] != state:
            changes.append((time, state, generation))
    return changes


def is_consumer_group(rows: list[Row]) -> bool:
    return any(row["event"] == "group_epoch_bumped" or row["event"] == "group_converted" for row in rows)


@pytest.mark.parametrize(("preset", "variant", "seed"), [*one_in(2, STORMS), *ALL])
def test_a_storm_comes_back(tmp_path: Path, preset: str, variant: str, seed: int) -> None:
    original = storm(tmp_path / "storm", preset, variant, seed)
    (tmp_path / "both").mkdir()
    check_broker(imported(tmp_path, original, LogKind.BROKER), original)
    check_clients(imported(tmp_path / "both", original, LogKind.BROKER, LogKind.JAVA), original)


def test_a_group_with_members_that_own_nothing_comes_back(tmp_path: Path) -> None:
    """Targets that change nothing are not logged: a member's epoch shows that they were computed."""
    scenario = replace(load("deploy-and-crash"), figures_from=0)
    run(scenario.resolve("consumer", 6, {"members": 6, "partitions": 3}), tmp_path / "storm")
    original = [*read_rows(tmp_path / "storm")]
    check_broker(imported(tmp_path, original, LogKind.BROKER), original)


def check_broker(again: list[Row], original: list[Row]) -> None:
    """Check what a broker's log says of groups, members, rounds and causes."""
    assert states(again) == states(original)
    causes = [row["cause"] for row in original if row.get("state") == "PreparingRebalance"]
    assert [row["cause"] for row in again if row.get("state") == "PreparingRebalance"] == causes
    for event in ("member_added", "member_removed"):
        columns = ("member_id", "cause")
        assert seen(again, event, *columns) == seen(original, event, *columns)
    replaced = ("member_id", "previous_member_id", "instance")
    assert seen(again, "member_replaced", *replaced) == seen(original, "member_replaced", *replaced)
    assert not [row for row in again if row["event"] == "evidence_missing" and row["cause"] == "members"]
    reconciled = ("member_id", "generation", "state", "partitions", "revoking")
    told = [row for row in seen(original, "member_reconciled", *reconciled) if row[2] >= 0]
    assert seen(again, "member_reconciled", *reconciled) == told


def check_clients(again: list[Row], original: list[Row]) -> None:
    """Check what the members' logs add: who owned what."""
    for event in ("partitions_assigned", "partitions_revoked", "partitions_lost"):
        columns = ("member", "partitions")
        assert sorted(map(repr, seen(again, event, *columns))) == sorted(
            map(repr, seen(original, event, *columns))
        )
    if is_consumer_group(original):
        return
    (known,) = figures_by_group(again).values()
    (figures,) = figures_by_group(original).values()
    assert known.generations == figures.generations
    by_members = any(row["event"] == "group_imported" and row["cause"] == "members" for row in again)
    # no log says that poll() threw an error
    failed = any(row["event"] == "member_failed" for row in original)
    if by_members and not failed:
        assert known.moves in (None, figures.moves)

"""Imported logs: excerpts of public ones, and storms that are printed as logs and imported again."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.explanation import explain
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.printing.logs import LogKind, as_log
from groupstorm.trace.reader import read_rows
from tests.explain.explaining import explained, names, storm
from tests.imports.importing import LOGS

#: Excerpt -> the patterns that its group has, and who is behind the first one.
EXCERPTS: tuple[tuple[str, list[str], tuple[str, ...]], ...] = (
    ("E6", ["session-expired"], ("plus1connect",)),
    ("E7", ["session-expired"], ("d1ab40db-ab13-4b75-b73c-9fafb9580d0b",)),
    ("E14", ["coordinator-moved"], ()),
    ("E32b", ["session-expired"], ("consumer-8dac1751-…-3",)),
    ("E34", ["session-expired"], ("E34",)),
    ("E9", ["leader-rejoined"], ()),
    # two members that come are no pattern
    ("E4", [], ()),
)


def imported(folder: Path, *logs: Path) -> Path:
    import_logs(find_logs([str(log) for log in logs]), folder, Options())
    return folder


@pytest.mark.parametrize(("excerpt", "patterns", "members"), EXCERPTS)
def test_an_excerpt(tmp_path: Path, excerpt: str, patterns: list[str], members: tuple[str, ...]) -> None:
    (found,) = explain(imported(tmp_path / "out", LOGS / f"{excerpt}.log"))
    assert names(found) == patterns
    if members:
        assert tuple(found.findings[0].match.members) == members
    assert found.history.unowned_us is None or excerpt.startswith("E3")


#: Storms as logs, and the first pattern by the broker's log, alone and with the clients'. A poison record
#: shows as the sessions that it costs: no log has positions.
ROUND_TRIPS = (
    ("slow-member-hostage", "eager", {"members": 4, "partitions": 8}, "held-join-phase"),
    ("aligned-restarts", "all-at-once", {"members": 4, "partitions": 8}, "aligned-restart"),
    ("rolling-deploy", "cooperative", {"members": 4, "partitions": 8}, "deploy-wave"),
    ("static-trap", "deployment", {"members": 10, "partitions": 20}, "static-orphan"),
    ("late-joiner-race", "seconds-later", {"members": 10, "partitions": 20}, "formed-in-rounds"),
    ("stream-join", "range", {"partitions": 12}, "session-expired"),
    ("poison-livelock", "crashes", {"members": 4, "partitions": 12}, "session-expired"),
)
#: What the clients' logs say without the broker's: neither who went nor why.
BY_CLIENTS = {"held-join-phase", "formed-in-rounds"}


@pytest.mark.parametrize(
    ("preset", "variant", "settings", "pattern"), ROUND_TRIPS, ids=lambda one: str(one)[:20]
)
def test_a_storm_as_logs(
    tmp_path: Path, preset: str, variant: str, settings: dict[str, int], pattern: str
) -> None:
    rows = [*read_rows(storm(tmp_path / "storm", preset, variant, settings))]
    logs = {}
    for kind in LogKind:
        logs[kind] = tmp_path / f"{kind}.log"
        logs[kind].write_text("".join(f"{line}\n" for line in as_log(rows, kind)), "utf-8")
    by_broker = explained(imported(tmp_path / "broker", logs[LogKind.BROKER]))
    assert names(by_broker)[:1] == [pattern]
    assert by_broker.history.unowned_us is None
    by_clients = explained(imported(tmp_path / "java", logs[LogKind.JAVA]))
    assert set(names(by_clients)) <= BY_CLIENTS
    by_both = explained(imported(tmp_path / "both", *logs.values()))
    assert names(by_both)[:1] == [pattern]

"""`groupstorm explain` of a trace with several groups: a table of all, then the worst ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.command import groupstorm, refused
from tests.imports.importing import broker_line, import_texts, preparing, received, stabilized


def rounds(group: str, lasted_s: int, count: int = 1) -> str:
    """The lines of ``count`` rounds, a minute apart from 10:00 on, each ``lasted_s`` long."""
    return "".join(
        preparing(
            f"10:{minute:02}:00,000", minute, f"Updating metadata for member m-{group} during Stable", group
        )
        + stabilized(f"10:{minute:02}:{lasted_s:02},000", minute + 1, 1, group=group)
        + received(f"10:{minute:02}:{lasted_s:02},000", minute + 1, 1, f"m-{group}", group)
        for minute in range(count)
    )


def quiet(groups: Iterable[str]) -> str:
    return "".join(
        broker_line("10:59:00,000", f"Loading group metadata for {group} with generation 3")
        for group in groups
    )


def explained(folder: Path, log: str, *words: str) -> list[str]:
    import_texts(folder, {"server.log": log})
    result = groupstorm("explain", "out", *words, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def in_full(lines: Iterable[str]) -> list[str]:
    return [line.split()[1].rstrip(":") for line in lines if line.startswith("Group ")]


def table(lines: list[str]) -> list[list[str]]:
    begins = next(number for number, line in enumerate(lines) if line.startswith("group "))
    return [line.split() for line in lines[begins + 1 : lines.index("", begins)]]


def test_the_worst_groups_come_first_and_are_explained(tmp_path: Path) -> None:
    log = (
        quiet(["idle-1"]) + rounds("often", 1, 5) + rounds("long", 40) + rounds("once", 2) + quiet(["idle-2"])
    )
    lines = explained(tmp_path, log)
    assert lines[0] == "The worst of 5 groups first"
    rows = table(lines)
    assert [row[:2] for row in rows[:5]] == [
        ["long", "1"],
        ["often", "5"],
        ["once", "1"],
        ["idle-1", "0"],
        ["idle-2", "0"],
    ]
    assert rows[0][3:6] == ["40.0", "s", "unknown"]
    assert float(rows[1][2]) == round(5 * 60 / 59, 1)
    assert in_full(lines) == ["long", "often", "once"]
    assert "--group NAME shows another one" in "\n".join(lines)
    assert all(len(line) <= 80 for line in lines)


def test_of_hundreds_of_groups_the_worst_are_shown(tmp_path: Path) -> None:
    log = "".join(rounds(f"g-{number}", number % 50) for number in range(1, 150))
    lines = explained(tmp_path, log)
    assert len([row for row in table(lines) if row[0].startswith("g-")]) == 20
    assert "And 129 groups that cost less." in lines


def test_chosen_groups_are_all_explained_and_so_are_those_of_json(tmp_path: Path) -> None:
    log = quiet(["idle"]) + rounds("long", 40) + rounds("once", 2)
    lines = explained(tmp_path, log, "--group", "idle", "--group", "long")
    assert lines[0].startswith("Group idle")
    assert in_full(lines) == ["idle", "long"]
    groups = json.loads("\n".join(explained(tmp_path, log, "--json")))["groups"]
    assert [one["group"] for one in groups] == ["idle", "long", "once"]


def test_one_group_has_no_table(tmp_path: Path) -> None:
    assert explained(tmp_path, rounds("long", 40))[0].startswith("Group long")


def test_a_refusal_names_the_first_of_many_groups(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": quiet(f"g-{number}" for number in range(150))})
    result = groupstorm("explain", "out", "--group", "other", cwd=tmp_path)
    named = ", ".join(f"g-{number}" for number in range(6))
    assert refused(result) == f"groupstorm: --group other: not in the trace; there are: {named} and 144 more"
    result = groupstorm("whatif", "out", cwd=tmp_path)
    assert refused(result) == f"groupstorm: out: has the groups {named} and 144 more: name one with --group"

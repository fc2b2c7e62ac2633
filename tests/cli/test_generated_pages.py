"""Tables of the documentation that are made from the code."""

from __future__ import annotations

import json

from groupstorm.cli.presets import shown_values
from groupstorm.problems import ExitCode
from groupstorm.storms.scenario.settings_table import SETTINGS
from tests.command import ROOT, groupstorm
from tests.generated_pages import check_section


def table(*rows: tuple[str, ...]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def test_the_settings() -> None:
    rows = [(f"`{s.name}`", f"`{json.dumps(s.default)}`", shown_values(s), s.meaning) for s in SETTINGS]
    check_section("scenarios.md", "settings", table(("setting", "default", "values", "meaning"), *rows))


def test_the_exit_codes() -> None:
    rows = [(str(int(code)), code.meaning) for code in ExitCode]
    check_section("development.md", "exit-codes", table(("code", "meaning"), *rows))


def test_list_has_the_same_settings() -> None:
    listed = json.loads(groupstorm("list", "--settings", "--json", cwd=ROOT).stdout)
    defaults = json.loads(json.dumps({setting.name: setting.default for setting in SETTINGS}))
    assert {row["name"]: row["default"] for row in listed} == defaults

"""Tables of the documentation that are made from the code."""

from __future__ import annotations

import json
import re

from groupstorm.problems import ExitCode
from groupstorm.storms.scenario.setting_names import SETTINGS
from tests.command import ROOT, groupstorm
from tests.generated_pages import check_section
from tools.documentation.reference import settings_page


def table(*rows: tuple[str, ...]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def test_the_sites_page_of_settings_has_the_settings_and_steps_that_list_prints() -> None:
    page = settings_page().replace("\\|", "|")
    for listed in json.loads(groupstorm("list", "--settings", "--json", cwd=ROOT).stdout):
        assert f"| `{listed['name']}` | {listed['meaning']} (`{json.dumps(listed['default'])}`; " in page
    for listed in json.loads(groupstorm("list", "--steps", "--json", cwd=ROOT).stdout):
        (row,) = re.findall(rf"^\| `{listed['do']}` \| (.*) \|$", page, re.MULTILINE)
        assert row.startswith(listed["meaning"])
        assert sorted(re.findall("`([^`]+)`", row.removeprefix(listed["meaning"]))) == listed["fields"]


def test_the_exit_codes() -> None:
    rows = [(str(int(code)), code.meaning) for code in ExitCode]
    check_section("development.md", "exit-codes", table(("code", "meaning"), *rows))


def test_list_has_the_same_settings() -> None:
    listed = json.loads(groupstorm("list", "--settings", "--json", cwd=ROOT).stdout)
    defaults = json.loads(json.dumps({setting.name: setting.default for setting in SETTINGS}))
    assert {row["name"]: row["default"] for row in listed} == defaults

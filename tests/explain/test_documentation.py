"""The outputs in docs/explain.md are what the command prints. GROUPSTORM_REWRITE=1 writes them anew."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from groupstorm.explain.patterns import PATTERNS
from tests.command import groupstorm
from tests.generated_pages import check_section
from tools.documentation.reference import patterns_page

PAGE = "explain.md"


def printed(folder: Path, *words: str) -> str:
    result = groupstorm(*words, cwd=folder, GROUPSTORM_COMMAND="groupstorm")
    assert result.returncode == 0, result.stderr
    return result.stdout.rstrip("\n")


@pytest.mark.slow
def test_a_storm(tmp_path: Path) -> None:
    size = ("--set", "members=6", "--set", "partitions=24")
    printed(tmp_path, "run", "slow-member-hostage", "--variant", "eager", *size, "--out", "run")
    check_section(PAGE, "storm", f"```\n$ groupstorm explain run\n{printed(tmp_path, 'explain', 'run')}\n```")


def test_the_sites_page_has_the_rule_and_the_advice_of_every_pattern() -> None:
    page = patterns_page()
    for one in PATTERNS:
        (section,) = re.findall(rf"^## {one.name}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert one.title in section
        assert (inspect.getdoc(one.rule) or "nothing").splitlines()[0] in section
        assert one.advice in section

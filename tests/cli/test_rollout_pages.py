"""The answer to a manifest that the documentation shows is what `groupstorm rollout` prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import groupstorm
from tests.generated_pages import DOCS, check_section

OPTIONS = ("--set", "partitions=240", "--set", "record_rate=50", "--set", "start_ms=25s")


@pytest.mark.slow
def test_the_answer_to_the_manifest(tmp_path: Path) -> None:
    """GROUPSTORM_REWRITE=1 writes both sections anew; the second with a second run of the test."""
    page = (DOCS / "rollout.md").read_text("utf-8")
    found = re.search(r"<!-- manifest -->\n```yaml\n(.*?)```\n<!-- /manifest -->", page, re.DOTALL)
    assert found is not None
    (tmp_path / "orders.yaml").write_text(found[1], "utf-8")
    result = groupstorm("rollout", "orders.yaml", *OPTIONS, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    answer, _, _ = result.stdout.partition("\nThe scenarios and their runs:")
    advice, _, rest = answer.partition("As it is:")
    _, table, notes = rest.partition("rollout-orders, seeds")
    check_section("rollout.md", "answer", f"```\n{advice}...\n\n{table}{notes.rstrip()}\n```")
    _, _, lines = answer.partition("To paste for")
    lines, _, _ = lines.partition("\n\n")
    command = f"$ groupstorm rollout orders.yaml {' '.join(OPTIONS)}"
    shown = f"{command}\n{advice.rstrip()}\n\nTo paste for{lines}"
    check_section("../README.md", "rollout", f"```\n{shown}\n```")

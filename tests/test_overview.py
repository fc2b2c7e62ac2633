"""The page of all commands shows what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import groupstorm
from tests.generated_pages import DOCS, check_section

OVERVIEW = "overview.md"
COMPARED = "compare rolling-deploy --set members=20 --set partitions=100 --out runs/deploy"
STORY = "trace runs/deploy/cooperative/seed-0 --partition topic-0-7 --to 300"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def printed(command: str, folder: Path) -> str:
    """The output of a command that the page names."""
    assert f"`./dev run {command}`" in (DOCS / OVERVIEW).read_text("utf-8")
    done = groupstorm(*command.split(), cwd=folder, GROUPSTORM_COMMAND="./dev run")
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip()


@pytest.mark.slow
def test_a_comparison_and_the_story_of_a_partition(folder: Path) -> None:
    """GROUPSTORM_REWRITE=1 writes them anew. The page leaves out the table of figures behind the answer."""
    answer, _ = printed(COMPARED, folder).split("\n\nrolling-deploy, seeds 0 to 4\n")
    check_section(OVERVIEW, "compare", f"```\n{answer.rstrip()}\n```")
    check_section(OVERVIEW, "story", f"```\n{printed(STORY, folder)}\n```")

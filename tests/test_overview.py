"""The page of all commands shows what one prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import groupstorm
from tests.generated_pages import DOCS, check_section

OVERVIEW = "overview.md"
RUN = "run rolling-deploy --variant cooperative --set members=20 --set partitions=100 --out runs/deploy"
STORY = "trace runs/deploy --partition topic-0-7 --to 300"


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
def test_the_story_of_a_partition(folder: Path) -> None:
    """GROUPSTORM_REWRITE=1 writes it anew."""
    printed(RUN, folder)
    check_section(OVERVIEW, "story", f"```\n{printed(STORY, folder)}\n```")

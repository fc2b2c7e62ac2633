"""The outputs in docs/import.md are what the commands print. GROUPSTORM_REWRITE=1 writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import groupstorm
from tests.generated_pages import check_section
from tests.imports.offsets_dumps import DUMP
from tests.imports.test_several_logs import BROKER, FOLLOWER, LEADER, client_log

PAGE = "import.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("logs")
    (folder / "server.log").write_text(BROKER)
    (folder / "app-a.log").write_text(client_log("app-a", LEADER))
    (folder / "app-b.log").write_text(client_log("app-b", FOLLOWER))
    return folder


def block(command: str, folder: Path) -> str:
    printed = groupstorm(*command.split()[1:], cwd=folder, GROUPSTORM_COMMAND="groupstorm")
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.rstrip("\n").split("The story of it:")[0].rstrip("\n")
    return f"```\n$ {command}\n{lines}\n```"


@pytest.mark.slow
def test_the_records_of_the_offsets_topic(tmp_path: Path) -> None:
    """The output of Kafka 4.3.1's kafka-dump-log is of a group of one member, of two, and of one again."""
    (tmp_path / "offsets.txt").write_text(DUMP.read_text("utf-8"), "utf-8")
    check_section(PAGE, "dump", block("groupstorm import offsets.txt --group pay --out written", tmp_path))


COMMANDS = {
    "import": "groupstorm import server.log app-a.log app-b.log --out imported",
    "story": "groupstorm trace imported --partition t-1",
}


@pytest.mark.slow
@pytest.mark.parametrize("section", COMMANDS)
def test_the_commands(section: str, folder: Path) -> None:
    if not (folder / "imported").exists():
        block(COMMANDS["import"], folder)
    check_section(PAGE, section, block(COMMANDS[section], folder))

"""The image of the `groupstorm` command, on files of the folder that is mounted at /work."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.containers.engine import COMMAND, need_images
from tests.imports.importing import broker_line

pytestmark = pytest.mark.slow

README = Path(__file__).resolve().parents[2] / "compose" / "README.md"


def test_a_log_is_imported_and_explained(tmp_path: Path) -> None:
    client = need_images(COMMAND)
    expired = "Member c-1 in group g has failed, removing it from the group"
    (tmp_path / "broker.log").write_text(broker_line("10:00:00,000", expired))

    def run(*arguments: str) -> str:
        mounted = {str(tmp_path): {"bind": "/work", "mode": "rw"}}
        printed: bytes = client.containers.run(
            COMMAND, [*arguments], remove=True, network_mode="none", user=os.getuid(), volumes=mounted
        )
        return printed.decode()

    assert "group g: 0 rounds" in run("import", "broker.log", "--out", "incident")
    assert "(session-expired)" in run("explain", "incident")
    assert (tmp_path / "incident" / "import.json").stat().st_uid == os.getuid()


def test_the_broker_of_the_readme_listens() -> None:
    client = need_images(COMMAND)
    (line,) = [one for one in README.read_text("utf-8").splitlines() if "groupstorm/groupstorm serve" in one]
    words = shlex.split(line)
    arguments = words[words.index("groupstorm/groupstorm") + 1 :]
    broker = client.containers.run(COMMAND, arguments, detach=True, network_mode="none")
    try:
        assert next(broker.logs(stream=True)) == b"listening on 0.0.0.0:9092\n"
    finally:
        broker.remove(force=True)

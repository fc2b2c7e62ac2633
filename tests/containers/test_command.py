"""The image of the `groupstorm` command, on files of the folder that is mounted at /work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.containers.engine import COMMAND, need_images
from tests.imports.importing import broker_line

pytestmark = pytest.mark.slow


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

"""The transcripts beside this file: read them, they are the documentation by example.

After a change that is meant, run `GROUPSTORM_REWRITE=1 pytest tests/coordinator/test_transcripts.py`
and look at the difference: commit it only if you understand every line of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.coordinator.transcript import play

_FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_transcript(file: Path) -> None:
    written = file.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get("GROUPSTORM_REWRITE"):
        file.write_text(played, encoding="utf-8")
    assert played == written


def test_there_are_transcripts() -> None:
    assert {file.stem for file in _FILES} >= {
        "cooperative_revocation_in_two_rounds",
        "initial_delay_extended",
        "pending_member_holds_the_round_open",
        "static_member_restarts",
    }

"""Transcripts as golden files: a player writes what is below the commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path


def transcripts_beside(test_file: str) -> Sequence[Path]:
    """The files of the folder `transcripts` beside the test."""
    return sorted((Path(test_file).parent / "transcripts").glob("*.txt"))


def check_transcript(file: Path, play: Callable[[str], str]) -> None:
    """Play the file: its text must not change. GROUPSTORM_REWRITE=1 writes the new text, and fails."""
    written = file.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get("GROUPSTORM_REWRITE"):
        file.write_text(played, encoding="utf-8")
    assert played == written

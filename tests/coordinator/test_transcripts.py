"""The transcripts beside this file show the coordinator's behaviour by example, one rule of Kafka each.

The commands are explained in `tests.coordinator.transcript`. To write a new one, write the comment and the
commands; to get its output, or after a change of the output that is meant, run

    GROUPSTORM_REWRITE=1 pytest tests/coordinator/test_transcripts.py

The rewritten files fail in that run, so nothing is rewritten silently. Inspect the difference and commit it
only if Kafka does what every line of it says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordinator.transcript import play
from tests.transcript_files import check_transcript, transcripts_beside

_FILES = transcripts_beside(__file__)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_transcript(file: Path) -> None:
    check_transcript(file, play)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_each_transcript_says_first_what_it_shows_and_whose_rule_it_is(file: Path) -> None:
    comment = file.read_text(encoding="utf-8").partition("\n\n")[0]
    text = " ".join(line.removeprefix("# ") for line in comment.splitlines() if line.startswith("# "))
    assert "KIP-" in text or "Kafka: " in text
    assert text.count(". ") < 5, "two or three sentences and the place in Kafka"


def test_output_is_what_the_commands_bring_about() -> None:
    wrong = "join a version=3\nshow\n----\n<Group 'g' Empty gen=0 members=0>\n"
    assert play(wrong).splitlines()[-1] == "<Group 'g' PreparingRebalance gen=0 members=1 joining=1>"


def test_an_unknown_command_fails() -> None:
    with pytest.raises(AssertionError, match="jump is no command"):
        play("jump a\n")

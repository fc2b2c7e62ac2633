"""The transcripts beside this file show what steps do to the pods of a fleet, one rule of Kubernetes each.

The format and the settings are those of `tests.storms.transcript`: a pod polls 10 s after its start and is
available 5 s later. It closes 500 ms after SIGTERM, which takes 2 ms. Only rows of pods and steps are shown,
from the step at 60,000 on. ``GROUPSTORM_REWRITE=1 pytest`` of this file writes the rows anew, and fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storms.transcript import DIVIDER, rows, run
from tests.transcript_files import check_transcript, transcripts_beside

PODS: dict[str, tuple[str, ...]] = {
    "step_taken": ("member", "cause", "detail"),
    "member_started": ("member",),
    "member_closed": ("member",),
    "member_crashed": ("member",),
    "scenario_ended": (),
}


def play(text: str) -> str:
    question, divider, _ = text.partition(DIVIDER)
    return question + divider + rows(run(question), 60_000, PODS)


@pytest.mark.parametrize("file", transcripts_beside(__file__), ids=lambda file: file.stem)
def test_transcript(file: Path) -> None:
    check_transcript(file, play)

"""What Kafka's own classes answered in a story: a line of JSON for every question, beside the story.

``{"release": "2.8.0", "case": {...}, "answer": {...}}``: case and answer are those of `groupstorm assign`,
without ids. They are written from Kafka's answers, never from ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.assignors.historical.released import Answerer, Case
from groupstorm.assignors.historical.stories import folder


class Recorded(NamedTuple):
    """One question to the assignor of a release, and what it answered."""

    release: str
    case: Case
    answer: Mapping[str, Any]


def recorded(story: str) -> list[Recorded]:
    """All answers that were recorded for a story of ours, in the order of the rounds."""
    lines = (folder() / f"{story}.jsonl").read_text("utf-8").splitlines()
    return [Recorded(**json.loads(line)) for line in lines]


def playback(story: str, release: str) -> Answerer:
    """Answers what was recorded; KeyError for a question that Kafka was not asked."""
    answers = {_key(told.case): told.answer for told in recorded(story) if told.release == release}
    return lambda case: answers[_key(case)]


def _key(case: Case) -> str:
    return json.dumps(case)

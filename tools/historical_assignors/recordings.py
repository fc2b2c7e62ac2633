"""Recorded answers of Kafka's own classes: one line of JSON per question, beside the history.

``{"release": "2.8.0", "case": {...}, "answer": {...}}``: case and answer are those of `groupstorm assign`,
without ids. The recordings come from Kafka's classes, never from ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tools.historical_assignors.bug_histories import FOLDER
from tools.historical_assignors.released import Answerer, Case


class Recorded(NamedTuple):
    """One question to the assignor of a release, and its answer."""

    release: str
    case: Case
    answer: Mapping[str, Any]


def recorded(bug: str) -> list[Recorded]:
    """All recorded answers of a history, in the order of the rounds."""
    lines = (FOLDER / f"{bug}.jsonl").read_text("utf-8").splitlines()
    return [Recorded(**json.loads(line)) for line in lines]


def playback(bug: str, release: str) -> Answerer:
    """Answers from the recordings; KeyError for a question that Kafka was not asked."""
    answers = {_key(entry.case): entry.answer for entry in recorded(bug) if entry.release == release}
    return lambda case: answers[_key(case)]


def _key(case: Case) -> str:
    return json.dumps(case)

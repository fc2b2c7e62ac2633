"""Plays a bug history with Kafka's recorded answers and with our assignors, and renders both step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupstorm.assignors import registry
from groupstorm.assignors.check.history import Change, play
from groupstorm.assignors.check.properties import Subject
from groupstorm.assignors.check.rendering import render_change, render_topics
from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.promises import promises_of
from groupstorm.assignors.userdata import TopicPartition
from tools.historical_assignors.bug_histories import FOLDER, OURS, QUESTIONS, BugHistory
from tools.historical_assignors.released import Answerer, Case, ReleasedAssignor


class Side(NamedTuple):
    """One assignor's way through the history. ``broken``: the step, and a sentence for the property."""

    title: str
    changes: tuple[Change, ...]
    broken: tuple[int, str] | None


def sides(bug: BugHistory) -> Iterator[Side]:
    """Kafka's releases before and after the fix, from recordings, and our assignor.

    If ours answers exactly as the release after the fix, one side stands for both.
    """
    ours = side(bug, registry.get(bug.assignor), f"{bug.assignor}, as groupstorm has it")
    if bug.before is None:
        yield ours
        return
    yield _recorded(bug, bug.before, "before")
    if bug.after is None or bug.after == OURS:
        yield ours._replace(title=f"after: {ours.title}")
        return
    after = _recorded(bug, bug.after, "after")
    if answers(after) == answers(ours):
        yield ours._replace(title=f"after: {bug.assignor} of Kafka {bug.after}, and groupstorm's: the same")
    else:
        yield after
        yield ours._replace(title=f"today: {ours.title}")


def answers(side_: Side) -> list[tuple[dict[str, tuple[TopicPartition, ...]], str | None]]:
    """Every round's answer, lists in the assignor's order, or the refusal."""
    return [(dict(one.assigned), one.refusal) for change in side_.changes for one in change.rounds]


def _recorded(bug: BugHistory, release: str, place: str) -> Side:
    released = ReleasedAssignor(bug.assignor, release, playback(bug.name, release))
    title = f"{place}: {bug.assignor} of Kafka {release}, from a recording of its own classes"
    return side(bug, released, title)


def side(bug: BugHistory, assignor: Assignor, title: str) -> Side:
    """The history with one assignor."""
    changes = tuple(play(assignor, bug.history))
    return Side(title, changes, _first_broken(bug, assignor, changes))


def _first_broken(bug: BugHistory, assignor: Assignor, changes: tuple[Change, ...]) -> tuple[int, str] | None:
    """The first violation of the property, or of any promised one if the history names none."""
    subject = Subject(assignor, promises_of(assignor))
    asked = [bug.property] if bug.property else [name for name in QUESTIONS if subject.promised(name)]
    for change in changes:
        for name in asked:
            broken = QUESTIONS[name](subject, change) if change.rounds else None
            if broken is not None:
                return change.number, broken
    return None


def render(bug: BugHistory) -> Iterator[str]:
    """The history and its sides as lines of text."""
    if bug.question:
        yield bug.question
    yield render_topics(bug.history)
    for side_ in sides(bug):
        yield ""
        yield side_.title
        for change in side_.changes:
            for line in render_change(change):
                yield f"  {line}"
            if side_.broken is not None and change.number == side_.broken[0]:
                yield f"  => {side_.broken[1]}"
        if side_.broken is None:
            yield f"  => {bug.property}: held" if bug.property else "  => nothing is broken"
    for words in (bug.meant, bug.mend):
        if words:
            yield ""
            yield words


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

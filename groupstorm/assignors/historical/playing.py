"""Plays a story: before by Kafka's recorded answers, after by our assignors, each told step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from groupstorm.assignors import registry
from groupstorm.assignors.check.history import Change, play
from groupstorm.assignors.check.properties import Subject
from groupstorm.assignors.check.telling import tell_change, tell_topics
from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.historical.properties import QUESTIONS
from groupstorm.assignors.historical.recordings import playback
from groupstorm.assignors.historical.released import ReleasedAssignor
from groupstorm.assignors.historical.stories import OURS, Story
from groupstorm.assignors.promises import promises_of


class Side(NamedTuple):
    """One way in which a story went. ``broken``: number of the step, and a sentence for its property."""

    title: str
    changes: tuple[Change, ...]
    broken: tuple[int, str] | None


def sides(story: Story) -> Iterator[Side]:
    """Before and after, or only ours where the story is nobody's bug."""
    if story.before is not None:
        released = ReleasedAssignor(story.assignor, story.before, playback(story.name, story.before))
        title = f"before: {story.assignor} of Kafka {story.before}, from a recording of its own classes"
        yield side(story, released, title)
    assignor = registry.get(story.assignor)
    if story.after is None:
        yield side(story, assignor, f"{story.assignor}, as groupstorm has it")
    elif story.after == OURS:
        yield side(story, assignor, f"after: {story.assignor}, as groupstorm has it")
    else:
        title = f"after: {story.assignor} as of Kafka {story.after}, played by groupstorm's"
        yield side(story, assignor, title)


def side(story: Story, assignor: Assignor, title: str) -> Side:
    """The story with one assignor."""
    changes = tuple(play(assignor, story.history))
    return Side(title, changes, _first_broken(story, assignor, changes))


def _first_broken(
    story: Story, assignor: Assignor, changes: tuple[Change, ...]
) -> tuple[int, str] | None:
    """Where the story's property is broken first; where it has none, any of them."""
    subject = Subject(assignor, promises_of(assignor))
    asked = [story.property] if story.property else [name for name in QUESTIONS if subject.promised(name)]
    for change in changes:
        for name in asked:
            broken = QUESTIONS[name](subject, change) if change.rounds else None
            if broken is not None:
                return change.number, broken
    return None


def tell(story: Story) -> Iterator[str]:
    """The story as people read it, line by line."""
    if story.question:
        yield story.question
    yield tell_topics(story.history)
    for told in sides(story):
        yield ""
        yield told.title
        for change in told.changes:
            for line in tell_change(change):
                yield f"  {line}"
            if told.broken is not None and change.number == told.broken[0]:
                yield f"  => {told.broken[1]}"
        if told.broken is None:
            yield f"  => {story.property or 'nothing is broken'}{': held' if story.property else ''}"
    for words in (story.meant, story.mend):
        if words:
            yield ""
            yield words

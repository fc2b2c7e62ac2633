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
from groupstorm.assignors.userdata import TopicPartition


class Side(NamedTuple):
    """One way in which a story went. ``broken``: number of the step, and a sentence for its property."""

    title: str
    changes: tuple[Change, ...]
    broken: tuple[int, str] | None


def sides(story: Story) -> Iterator[Side]:
    """How Kafka's releases before and after went, from recordings, and how ours goes.

    Where ours answers exactly as the release after, it speaks for both.
    """
    ours = side(story, registry.get(story.assignor), f"{story.assignor}, as groupstorm has it")
    if story.before is None:
        yield ours
        return
    yield _recorded(story, story.before, "before")
    if story.after is None or story.after == OURS:
        yield ours._replace(title=f"after: {ours.title}")
        return
    after = _recorded(story, story.after, "after")
    if answers(after) == answers(ours):
        yield ours._replace(
            title=f"after: {story.assignor} of Kafka {story.after}, and groupstorm's: the same"
        )
    else:
        yield after
        yield ours._replace(title=f"today: {ours.title}")


def answers(told: Side) -> list[tuple[dict[str, tuple[TopicPartition, ...]], str | None]]:
    """Every round's answer, lists in the assignor's order, or why there is none."""
    return [(dict(one.assigned), one.refusal) for change in told.changes for one in change.rounds]


def _recorded(story: Story, release: str, place: str) -> Side:
    released = ReleasedAssignor(story.assignor, release, playback(story.name, release))
    title = f"{place}: {story.assignor} of Kafka {release}, from a recording of its own classes"
    return side(story, released, title)


def side(story: Story, assignor: Assignor, title: str) -> Side:
    """The story with one assignor."""
    changes = tuple(play(assignor, story.history))
    return Side(title, changes, _first_broken(story, assignor, changes))


def _first_broken(story: Story, assignor: Assignor, changes: tuple[Change, ...]) -> tuple[int, str] | None:
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
            yield f"  => {story.property}: held" if story.property else "  => nothing is broken"
    for words in (story.meant, story.mend):
        if words:
            yield ""
            yield words

"""Historical bugs of Kafka's assignors: broken before, held after, and ours answers as the fixed release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors import registry
from groupstorm.assignors.cases import answers
from groupstorm.assignors.check.properties import BALANCE, MOVES, Subject
from groupstorm.assignors.check.rendering import history_from_json, history_to_json
from groupstorm.assignors.promises import promises_of
from groupstorm.problems import InputError
from tools.historical_assignors import comparison
from tools.historical_assignors.bug_histories import OURS, QUESTIONS, BugHistory, load, names, read
from tools.historical_assignors.comparison import Side, recorded, render, sides

STORIES = [load(name) for name in names()]
WITH_PROPERTY = [story for story in STORIES if story.property is not None]
OF_ANOTHER_ALGORITHM = {"kafka-7026"}
"""Mended before KAFKA-9987 brought the form for equal subscriptions: today's answer is another, as valid."""


def named(story: BugHistory) -> str:
    return story.name


def title_of(side: Side) -> str:
    return side.title.partition(":")[0]


@pytest.mark.parametrize("story", WITH_PROPERTY, ids=named)
def test_the_property_is_broken_before_and_held_after(story: BugHistory) -> None:
    before, *after = sides(story)
    assert title_of(before) == "before"
    assert before.broken is not None
    assert before.broken[0] == len(story.history.steps), "the last step of a story is the one that breaks"
    assert after
    assert all(side.broken is None for side in after)


@pytest.mark.parametrize("story", STORIES, ids=named)
def test_ours_is_the_answer_of_the_release_that_mended_it(story: BugHistory) -> None:
    """List order included, in every round; `sides` tells one release more where it is not."""
    titles = [title_of(side) for side in sides(story)]
    expected = ["before", "after", "today"] if story.name in OF_ANOTHER_ALGORITHM else ["before", "after"]
    assert titles == expected
    if story.after != OURS and story.name not in OF_ANOTHER_ALGORITHM:
        assert "groupstorm's: the same" in list(sides(story))[1].title


def test_kafka_12464_is_another_answer_of_the_same_quality() -> None:
    """The old one steals the first partitions of full members, the new one leaves them with theirs."""
    before, after = sides(load("kafka-12464"))
    assert comparison.answers(before) != comparison.answers(after)
    subject = Subject(registry.get("cooperative-sticky"), promises_of(registry.get("cooperative-sticky")))
    for change in (*before.changes, *after.changes):
        assert QUESTIONS[BALANCE](subject, change) is None
        assert QUESTIONS[MOVES](subject, change) is None
    assert _of_a(before, 2) == ["t-1", "t-2", "t-3"]
    assert _of_a(after, 2) == ["t-0", "t-1", "t-2", "t-3"]


def _of_a(side: Side, step: int) -> list[str]:
    return [str(partition) for partition in side.changes[step].after["a"]]


def _with_bug_compat(case: dict[str, Any]) -> dict[str, Any]:
    (line,) = answers([json.dumps({"id": 0, "bug_compat": True, **case}).encode()])
    answer = json.loads(line)
    return {name: answer[name] for name in ("assignment", "error", "message") if name in answer}


@pytest.mark.parametrize("story", STORIES, ids=named)
def test_what_newer_releases_answered_ours_answers(story: BugHistory) -> None:
    """Case by case; what 4.3.1 gets wrong is ours with bug_compat."""
    releases = {told.release for told in recorded(story.name)}
    assert releases == {story.before, story.after} - {OURS}
    asked = [
        told
        for told in recorded(story.name)
        if told.release == (story.before if story.after == OURS else story.after)
    ]
    assert asked
    if story.name not in OF_ANOTHER_ALGORITHM:
        assert [_with_bug_compat(dict(told.case)) for told in asked] == [told.answer for told in asked]


@pytest.mark.parametrize("name", ["kafka-14639", "kafka-4.3.1-unsubscribed"])
def test_the_story_as_it_is_told(name: str) -> None:
    told = Path(__file__).with_name("golden") / f"history-{name}.txt"
    assert "\n".join(render(load(name))) + "\n" == told.read_text("utf-8")


OWN = """
question: Who gets the rest?
assignor: range
topics: {t: 3}
client_racks: {a: r1}
replica_racks: {t: [[r1], [r2], [r1]]}
steps:
  - {do: join, member: a, topics: [t]}
  - {do: join, member: b, topics: [t]}
"""


def test_a_history_of_ones_own_is_played_by_ours_alone() -> None:
    story = read(OWN, "own.yaml", "own")
    (side,) = sides(story)
    assert side.broken is None
    assert side.changes[0].rounds[0].subscriptions["a"].rack == "r1"
    assert side.changes[0].rounds[0].topics["t"].racks == tuple(map(frozenset, (["r1"], ["r2"], ["r1"])))
    assert list(render(story))[-1] == "  => nothing is broken"


def test_a_broken_promise_is_found_without_a_property_being_named() -> None:
    story = read(OWN, "own.yaml", "own")._replace(assignor="two-phase-sticky/java-sketch")
    sketch = story._replace(history=story.history._replace(topics={"t": 4}))
    third = sketch.history.steps[1]._replace(member="c")
    (side,) = sides(sketch._replace(history=sketch.history._replace(steps=(*sketch.history.steps, third))))
    assert side.broken == (3, "members with equal subscriptions have 2/2/0: more than 1 apart")
    assert "two-phase-sticky/java-sketch" in registry.names()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("assignor: range", "assignor: rang"), 'own.yaml: field assignor: "rang": expected one of'),
        (("assignor: range", "assignor: range\nproperty: luck"), 'field property: "luck": expected one of'),
        (("assignor: range", "assignor: range\nbefore: two"), 'field before: "two": expected a release'),
        (("assignor: range", "assignor: range\nbefore: 2.8"), "field before: 2.8: expected a string"),
        (("{t: 3}", "{t: -3}"), "field topics.t: -3: expected an integer from 0"),
        (("do: join, member: b", "do: hop, member: b"), 'field steps.1.do: "hop": expected one of join'),
        ((", member: b", ""), "field steps.1.member: null: expected a value"),
        (("b, topics: [t]", "b"), "field steps.1.topics: null: expected a value"),
        (("topics: {t: 3}", "topics: [t"), "own.yaml: not YAML"),
    ],
)
def test_bad_files_are_refused(change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        read(OWN.replace(*change), "own.yaml", "own")
    assert complaint in str(refused.value)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="neither a history of ours"):
        load("kafka-1")
    with pytest.raises(InputError, match="no such file"):
        load("missing.yaml")


def test_the_page_has_every_story_and_its_example_can_be_played() -> None:
    page = (Path(__file__).parents[3] / "docs" / "historical-bugs.md").read_text("utf-8")
    for story in STORIES:
        assert f"| `{story.name}` |" in page
        assert all(str(release) in page for release in (story.before, story.after) if release != OURS)
    example = page.rpartition("```yaml\n")[2].partition("```")[0]
    (side,) = sides(read(example, "the page", "example"))
    assert side.broken is None
    assert side.changes[-1].rounds


def test_a_step_with_the_next_shares_its_rebalance() -> None:
    changes = next(sides(load("kafka-4.3.1-null-pointer"))).changes
    assert [len(change.rounds) for change in changes] == [1, 0, 1, 0, 0, 1]
    written = history_to_json(load("kafka-4.3.1-null-pointer").history)
    assert history_from_json(written) == load("kafka-4.3.1-null-pointer").history

"""Makes a failing history smaller as long as it fails: fewer steps, topics and partitions, plain names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import ascii_lowercase

from groupstorm.assignors.check.history import History, HistoryStep, StepKind

#: How many smaller histories are tried: that takes a few seconds.
MAX_TRIALS = 3_000


def shrink(history: History, fails: Callable[[History], bool]) -> History:
    """The smallest history found for which ``fails`` is still true."""
    trials = 0
    smaller = True
    while smaller and trials < MAX_TRIALS:
        smaller = False
        for candidate in _candidates(history):
            trials += 1
            if fails(candidate):
                history, smaller = candidate, True
                break
            if trials >= MAX_TRIALS:
                break
    plain = _plainly_named(history)
    return plain if fails(plain) else history


def _candidates(history: History) -> Iterator[History]:
    """Smaller histories, those that leave out the most first."""
    yield from _without_steps(history)
    for topic in history.topics:
        if len(history.topics) > 1:
            yield _without_topic(history, topic)
    for topic, count in history.topics.items():
        for fewer in _smaller(count):
            yield history._replace(topics={**history.topics, topic: fewer})
    yield from _smaller_alike(history)
    yield from _from_the_beginning(history)
    for place, step in enumerate(history.steps):
        for changed in _smaller_steps(step):
            yield history._replace(steps=(*history.steps[:place], changed, *history.steps[place + 1 :]))


def _without_steps(history: History) -> Iterator[History]:
    steps = history.steps
    length = len(steps)
    while length:
        for begin in range(0, len(steps), length):
            yield history._replace(steps=steps[:begin] + steps[begin + length :])
        length //= 2


def _without_topic(history: History, gone: str) -> History:
    topics = {topic: count for topic, count in history.topics.items() if topic != gone}
    steps = (step._replace(topics=tuple(t for t in step.topics if t != gone)) for step in history.steps)
    return History(topics, tuple(steps))


def _smaller_alike(history: History) -> Iterator[History]:
    """Make topics of one size smaller together: joined topics have to keep equal sizes."""
    for size in sorted(set(history.topics.values()), reverse=True):
        for fewer in _smaller(size):
            changed = {t: fewer if count == size else count for t, count in history.topics.items()}
            yield history._replace(topics=changed)


def _from_the_beginning(history: History) -> Iterator[History]:
    """Without a step, whose effect the beginning of the history has instead."""
    for place, step in enumerate(history.steps):
        others = (*history.steps[:place], *history.steps[place + 1 :])
        if step.do is StepKind.RESIZE:
            yield History({**history.topics, **dict.fromkeys(step.topics, step.partitions)}, others)
        elif step.do is StepKind.SUBSCRIBE:
            yield history._replace(
                steps=tuple(
                    other._replace(topics=step.topics)
                    if other.do is StepKind.JOIN and step.member in ("", other.member)
                    else other
                    for other in others
                )
            )


def _smaller(count: int) -> list[int]:
    return sorted({fewer for fewer in (0, 1, count // 2, count - 1) if 0 <= fewer < count})


def _smaller_steps(step: HistoryStep) -> Iterator[HistoryStep]:
    if step.do is StepKind.RESIZE:
        for fewer in _smaller(step.partitions):
            yield step._replace(partitions=fewer)
    elif len(step.topics) > 1:
        for gone in step.topics:
            yield step._replace(topics=tuple(topic for topic in step.topics if topic != gone))


def _plainly_named(history: History) -> History:
    """Members a, b, c, ..., if their names do not matter."""
    names = sorted({step.member for step in history.steps if step.member}, key=lambda name: (len(name), name))
    if len(names) > len(ascii_lowercase):
        return history
    plain = dict(zip(names, ascii_lowercase, strict=False))
    steps = (step._replace(member=plain.get(step.member, "")) for step in history.steps)
    return history._replace(steps=tuple(steps))

"""Makes a failing scenario smaller as long as it fails in the same way.

Fewer steps first, then members, partitions and topics, then settings at their defaults, then plain steps:
short, early, of one member. The order of the candidates is fixed, so the same scenario shrinks to the same
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tools.fuzz.drawing import Document

MAX_TRIALS: Final = 400
"""The number of smaller scenarios that are tried at most."""

#: Settings that say how large the world is; all others are dropped.
_SIZES: Final = ("members", "partitions", "topics")

Fails = Callable[[Document], bool]


def shrink(document: Document, fails: Fails, max_trials: int = MAX_TRIALS) -> Document:
    """The smallest scenario found for which ``fails`` is still true."""
    trials = 0
    smaller = True
    while smaller and trials < max_trials:
        smaller = False
        for candidate in _candidates(document):
            if trials >= max_trials:
                break
            trials += 1
            if fails(candidate):
                document, smaller = candidate, True
                break
    return document


def _candidates(document: Document) -> Iterator[Document]:
    """Smaller scenarios, those that leave out the most first."""
    yield from _without_steps(document)
    for name in _SIZES:
        for fewer in _smaller(document["settings"].get(name, 1), least=1):
            yield _resized(document, name, fewer)
    yield from _without_settings(document)
    for place, step in enumerate(document["steps"]):
        for changed in _plainer(step):
            yield _with_step(document, place, changed)
    if document["seed"] != 0:
        yield {**document, "seed": 0}


def _without_steps(document: Document) -> Iterator[Document]:
    """The first step, which starts the group, stays."""
    first, *steps = document["steps"]
    length = len(steps)
    while length:
        for begin in range(0, len(steps), length):
            yield {**document, "steps": [first, *steps[:begin], *steps[begin + length :]]}
        length //= 2


def _resized(document: Document, name: str, count: int) -> Document:
    settings = {**document["settings"], name: count}
    if "member_settings" in settings:
        rules = [smaller for rule in settings["member_settings"] if (smaller := _within(rule, settings))]
        settings["member_settings"] = rules
    steps = [smaller for step in document["steps"] if (smaller := _within(step, settings)) is not None]
    return {**document, "settings": settings, "steps": steps}


def _within(step: Document, settings: Document) -> Document | None:
    """The step, or the rule, in a smaller world; None if nothing is left of it."""
    if isinstance(step.get("members"), list):
        members = [index for index in step["members"] if index < settings["members"]]
        return {**step, "members": members} if members else None
    if "topic" in step:
        number = int(step["topic"].removeprefix("topic-"))
        return step if number < settings.get("topics", 1) else None
    return step


def _without_settings(document: Document) -> Iterator[Document]:
    """All others at their defaults, then one after the other."""
    settings = document["settings"]
    sizes = {name: settings[name] for name in _SIZES if name in settings}
    if len(settings) > len(sizes) + 1:
        yield {**document, "settings": sizes}
    for name in settings:
        if name not in _SIZES:
            yield {**document, "settings": {n: value for n, value in settings.items() if n != name}}


def _plainer(step: Document) -> Iterator[Document]:
    members = step.get("members")
    if isinstance(members, list) and len(members) > 1:
        for index in members:
            yield {**step, "members": [index]}
    if step.get("over_ms"):
        yield {**step, "over_ms": 0}
    if step.get("count", 1) > 1:
        yield {**step, "count": 1}
    for name in ("for_ms", "append_ms", "at_ms"):
        for fewer in _rounder(step.get(name, 0)):
            yield {**step, name: fewer}


def _with_step(document: Document, place: int, step: Document) -> Document:
    """The scenario with another step; steps stay in the order of their times."""
    steps = [*document["steps"][:place], step, *document["steps"][place + 1 :]]
    return {**document, "steps": [steps[0], *sorted(steps[1:], key=_at_ms)]}


def _at_ms(step: Document) -> Any:
    return step["at_ms"]


def _smaller(count: int, least: int) -> list[int]:
    return sorted({fewer for fewer in (least, count // 2, count - 1) if least <= fewer < count})


def _rounder(duration_ms: int) -> list[int]:
    """Shorter durations, and round ones of about the same length."""
    if duration_ms == 0:
        return []
    halved = {duration_ms // 2 // unit * unit for unit in (60_000, 10_000, 1_000) if duration_ms >= 2 * unit}
    rounded = {duration_ms // unit * unit for unit in (10_000, 1_000) if duration_ms > unit}
    return sorted(each for each in {*halved, *rounded} if 0 < each < duration_ms)

"""Shrinks a script to the shortest that still differs: leaves out steps, then fields, then options.

Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002) over the
list of steps; fields and options one by one, which puts their defaults in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Script = dict[str, Any]

#: Fields without which a step would be another one.
_KEPT_FIELDS = ("op", "as", "ms")


def shrink(script: Script, differs: Callable[[Script], bool], tries_max: int = 3_000) -> Script:
    """A script of the same id, no part of which can be left out without the difference going.

    ``differs`` is asked about at most ``tries_max`` scripts; what is left then may not be the shortest.
    """
    parts = (_without_fields, _without_elements, _without_options, _shorter_pauses)
    return Search(script, differs, tries_max).smallest(_without_beginning, "steps", *parts)


class Search:
    """Goes from a case to smaller ones that still differ; ``script`` is the smallest so far."""

    def __init__(self, script: Script, differs: Callable[[Script], bool], tries_max: int) -> None:
        self.script = script
        self._differs = differs
        self._tries_left = tries_max

    def smallest(self, *ways: str | Callable[[Script], Iterator[Script]]) -> Script:
        """Try each way in turn until none makes the case smaller: a list's name, or what leaves parts out."""
        before: Script | None = None
        while before != self.script:
            before = self.script
            for way in ways:
                if isinstance(way, str):
                    self.shorten(way)
                else:
                    self.drop_parts(way)
        return self.script

    def _take(self, candidate: Script) -> bool:
        """Go on from the candidate if it still differs."""
        if self._tries_left == 0:
            return False
        self._tries_left -= 1
        if self._differs(candidate):
            self.script = candidate
            return True
        return False

    def shorten(self, name: str) -> None:
        """Leave out ever smaller pieces of the list of that name."""
        size = max(1, len(self.script[name]) // 2)
        while size >= 1:
            start = 0
            while start < len(self.script[name]):
                listed = self.script[name]
                shorter = {**self.script, name: listed[:start] + listed[start + size :]}
                if not self._take(shorter):
                    start += size
            size //= 2

    def drop_parts(self, without: Callable[[Script], Iterator[Script]]) -> None:
        """Take the first smaller script that still differs, again and again."""
        while any(self._take(candidate) for candidate in without(self.script)):
            pass


def _without_beginning(script: Script) -> Iterator[Script]:
    """As many first steps as can go; what comes before a difference is often another story."""
    steps = script["steps"]
    for start in range(len(steps) - 1, 0, -1):
        yield {**script, "steps": steps[start:]}


def _with_step(script: Script, index: int, step: dict[str, Any]) -> Script:
    steps = script["steps"]
    return {**script, "steps": [*steps[:index], step, *steps[index + 1 :]]}


def _without_fields(script: Script) -> Iterator[Script]:
    for index, step in enumerate(script["steps"]):
        for name in step:
            if name not in _KEPT_FIELDS:
                yield _with_step(script, index, {key: step[key] for key in step if key != name})


def _without_elements(script: Script) -> Iterator[Script]:
    """Lists (protocols, members) and objects (offsets) lose one element."""
    for index, step in enumerate(script["steps"]):
        for name, value in step.items():
            if isinstance(value, list):
                for place in range(len(value)):
                    yield _with_step(script, index, {**step, name: value[:place] + value[place + 1 :]})
            elif isinstance(value, dict):
                for key in value:
                    rest = {other: value[other] for other in value if other != key}
                    yield _with_step(script, index, {**step, name: rest})


def _without_options(script: Script) -> Iterator[Script]:
    for name in script["config"]:
        yield {**script, "config": {key: value for key, value in script["config"].items() if key != name}}


def _shorter_pauses(script: Script) -> Iterator[Script]:
    """Two pauses in a row become one; a pause is rounded down to one digit and noughts, or halved."""
    steps = script["steps"]
    for index, step in enumerate(steps):
        if step.get("op") != "advance" or not isinstance(step.get("ms"), int):
            continue
        if index + 1 < len(steps) and steps[index + 1].get("op") == "advance":
            both = {**step, "ms": step["ms"] + steps[index + 1].get("ms", 0)}
            yield {**script, "steps": [*steps[:index], both, *steps[index + 2 :]]}
        magnitude = 10 ** (len(str(abs(step["ms"]))) - 1)
        for shorter in (step["ms"] // magnitude * magnitude, step["ms"] // 2):
            if 0 < shorter < step["ms"]:
                yield _with_step(script, index, {**step, "ms": shorter})

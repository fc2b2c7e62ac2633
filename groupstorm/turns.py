"""Work that is carried out in turns, between which its driver may do something else.

Such work is a generator. It yields wherever the state may change: whatever it has looked up before may have
changed behind that. The number that it yields is the work it has done since; the unit is the time that one
structure of a response takes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")

Turns: TypeAlias = Generator[int, None, _T]


def in_turns(values: Iterable[_T], work: int = 1) -> Turns[tuple[_T, ...]]:
    """The values. Each is made when its turn comes, and costs so much work."""
    made = []
    for value in values:
        made.append(value)
        yield work
    return tuple(made)


def at_once(turns: Turns[_T]) -> _T:
    """The result, without anything in between."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: _T = end.value
            return result

"""Shrinks a case to the smallest that still differs: leaves out parts of lists and objects, lessens numbers.

Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002) over every
list; fields one by one, which puts their defaults in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupstorm.problems import InputError
from tests.oracle.running import Case


def shrink(case: Case, differs: Callable[[Case], bool], tries_max: int = 3_000) -> Case:
    """A case of the same id, no part of which can be left out without the difference going.

    ``differs`` raises InputError for what is no case. It is asked about at most ``tries_max`` cases; what is
    left then may not be the smallest.
    """
    tries_left = tries_max

    def still_differs(candidate: Case) -> bool:
        nonlocal tries_left
        if tries_left == 0 or candidate.get("id") != case["id"]:
            return False
        tries_left -= 1
        try:
            return differs(candidate)
        except InputError:
            return False

    smallest = case
    while (smaller := _smaller(smallest, still_differs)) != smallest:
        smallest = smaller
    return smallest


def _smaller(value: Any, differs: Callable[[Any], bool]) -> Any:
    """The value without the parts that ``differs`` does not need."""
    if isinstance(value, list):
        value = _shorter(value, differs)
        for place in range(len(value)):
            value = _with_smaller(value, place, differs)
    elif isinstance(value, dict):
        for name in value:
            rest = {other: value[other] for other in value if other != name}
            value = rest if differs(rest) else value
        for name in value:
            value = _with_smaller(value, name, differs)
    elif type(value) is int:
        magnitude = 10 ** (len(str(abs(value))) - 1)
        for less in sorted({0, value // 2, value // magnitude * magnitude, value - 1}):
            if 0 <= less < value and differs(less):
                return less
    return value


def _with_smaller(value: Any, place: Any, differs: Callable[[Any], bool]) -> Any:
    def put(less: Any) -> Any:
        whole = value.copy()
        whole[place] = less
        return whole

    return put(_smaller(value[place], lambda less: differs(put(less))))


def _shorter(value: list[Any], differs: Callable[[Any], bool]) -> list[Any]:
    """The list without ever smaller pieces."""
    size = len(value)
    while size:
        start = 0
        while start < len(value):
            shorter = value[:start] + value[start + size :]
            if differs(shorter):
                value = shorter
            else:
                start += size
        size //= 2
    return value

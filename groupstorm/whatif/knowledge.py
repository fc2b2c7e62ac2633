"""The values of a scenario that was made from a trace, each with the way in which it is known."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class How(StrEnum):
    """observed: a row of the trace says it. inferred: a rule says it. assumed: nothing says it."""

    OBSERVED = "observed"
    INFERRED = "inferred"
    ASSUMED = "assumed"
    GIVEN = "given"


class Known(NamedTuple):
    """A value with its reason: the row behind it, the rule, or what would say it."""

    value: Any
    how: How
    why: str

    @property
    def comment(self) -> str:
        return f"{self.how}: {self.why}"


def observed(value: Any, why: str) -> Known:
    return Known(value, How.OBSERVED, why)


def inferred(value: Any, why: str) -> Known:
    return Known(value, How.INFERRED, why)


def assumed(value: Any, why: str) -> Known:
    return Known(value, How.ASSUMED, why)

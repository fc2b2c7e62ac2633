"""Settings of a scenario that come from a trace, each with the way in which it is known."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple


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


class Measured(NamedTuple):
    """Settings that a trace says. ``source``: the trace. ``unknown``: settings that it does not say, with the
    reasons."""

    source: str
    settings: Mapping[str, Known]
    unknown: Mapping[str, str]


NO_TRACE: Final = Measured("", {}, {})

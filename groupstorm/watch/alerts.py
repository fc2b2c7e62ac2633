"""Alerts: a figure of a group over a span, and a limit: `generations>3 per 1h`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.units import duration_us
from groupstorm.verdicts.measures import BY_KEY
from groupstorm.verdicts.requirements import Requirement, parse
from groupstorm.watch.group import GroupPicture

_FORM: Final = re.compile(r"\s*([\w-]+?)\s*([<>=].*?)\s+per\s+(\S+)\s*")
_SECOND_US: Final = 1_000_000

#: The alerts that have begun and are not over: (the alert as written, the group).
Active = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Alert:
    """``text``: as the user wrote it. It is on if the figure of the last ``span_us`` is beyond the limit."""

    text: str
    beyond: Requirement
    span_us: int


@dataclass(frozen=True, slots=True)
class AlertChange:
    """An alert begins for a group, or is over. ``value``: of the figure; None if it is not known any more."""

    alert: Alert
    group: str
    begins: bool
    value: float | None

    def to_json(self) -> dict[str, Any]:
        beyond = self.alert.beyond
        return {
            "alert": self.alert.text,
            "state": "begun" if self.begins else "over",
            "group": self.group,
            "figure": beyond.figure,
            "value": self.value,
            "comparison": beyond.comparison,
            "limit": beyond.limit,
            "span_seconds": self.alert.span_us / _SECOND_US,
        }

    def __str__(self) -> str:
        begins = "ALERT" if self.begins else "ALERT over"
        value = "not known" if self.value is None else f"{self.value:g}"
        return f"{begins} {self.group}: {self.alert.text}: {self.alert.beyond.figure} is {value}"


def read_alert(text: str) -> Alert:
    """``FIGURE>NUMBER per SPAN``; the figure by its name, or by its word in `--rank`. Raises InputError."""
    where = f"--alert {text!r}"
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"{where}: expected FIGURE>NUMBER per TIME, for example 'generations>3 per 1h'")
    figure, limit, span = match.groups()
    measure = BY_KEY.get(figure)
    beyond = parse(f"{measure.figure if measure else figure}{limit}", "--alert")
    if beyond.share != 100:
        raise InputError(f"{where}: expected no 'for ...%': an alert is about one group")
    span_us = duration_us(where, span, _SECOND_US)
    if not span_us:
        raise InputError(f"{where}: {span}: expected more than 0")
    return Alert(text, beyond, span_us)


def compare(
    alerts: Iterable[Alert], spans: Mapping[int, Sequence[GroupPicture]], before: Active
) -> tuple[list[AlertChange], Active]:
    """The alerts that have begun or are over since ``before``, and those that are on now."""
    changes, active = [], set()
    for alert in alerts:
        for one in spans[alert.span_us]:
            key = alert.text, one.group
            figures, is_more = one.figures, alert.beyond.comparison.startswith(">")
            if figures.unowned_partition_seconds is None and is_more and one.open_us:  # as much at least
                figures = replace(figures, unowned_partition_seconds=one.open_us / _SECOND_US)
            is_on = alert.beyond.is_met(figures)
            if is_on:
                active.add(key)
            if is_on != (key in before):
                value = getattr(figures, alert.beyond.figure)
                changes.append(AlertChange(alert, one.group, is_on, value))
    return changes, frozenset(active)

"""What the difference between variants is, in a sentence or two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from groupstorm.storms.figures.answer import seconds
from groupstorm.storms.figures.table import Figures


class _Measure(NamedTuple):
    """A figure of which less is better: how it is read, introduced and printed."""

    name: str
    read: Callable[[Figures], float | None]
    show: Callable[[float], str]


def _count(value: float) -> str:
    return f"{value:,.0f}"


UNOWNED = _Measure("partitions were un-owned", lambda f: f.unowned_partition_seconds, seconds)

#: What else may set variants apart, most telling first; ties between ratios go to the first.
OTHERS: tuple[_Measure, ...] = (
    _Measure("nobody consuming at all", lambda f: f.nobody_consuming_seconds, seconds),
    _Measure("time with two owners", lambda f: f.dual_owner_seconds, seconds),
    _Measure("longest single gap", lambda f: f.unowned_max_seconds, seconds),
    _Measure("records processed again", lambda f: f.records_duplicated, _count),
    _Measure("records skipped", lambda f: f.records_skipped, _count),
    _Measure("partitions moved", lambda f: f.moves, _count),
    _Measure("peak lag in records", lambda f: f.lag_peak, _count),
    _Measure("generations", lambda f: f.generations, _count),
)

Values = list[tuple[float, list[str]]]


def compare_answer(variants: Mapping[str, Figures]) -> str:
    """One or two sentences: un-owned time of each variant, least first, and the widest other difference.

    Ratios are to the variant with the least; variants with equal values stand together. Works for any
    number of variants and for figures that are null or zero.
    """
    if not variants:
        return "There is nothing to compare."
    values, unknown = _ascending(UNOWNED, variants)
    sentences = [_unowned_sentence(values, unknown)]
    other = _widest(variants)
    if other is not None:
        sentences.append(other)
    elif len(variants) > 1 and len(values) == 1 and not unknown:
        sentences.append("They do not differ in anything else that is compared here.")
    return " ".join(sentences)


def _ascending(measure: _Measure, variants: Mapping[str, Figures]) -> tuple[Values, list[str]]:
    """Distinct values, least first, each with its variants; and the variants that have none."""
    by_value: dict[float, list[str]] = {}
    unknown: list[str] = []
    for variant, figures in variants.items():
        value = measure.read(figures)
        if value is None:
            unknown.append(variant)
        else:
            by_value.setdefault(value, []).append(variant)
    return sorted(by_value.items()), unknown


def _unowned_sentence(values: Values, unknown: list[str]) -> str:
    parts = []
    least = values[0][0] if values else 0
    for index, (value, names) in enumerate(values):
        who = _names(names)
        if index == 0:
            how_long = f"for {seconds(value)} in all" if value else "at no time"
            parts.append(f"under {who} partitions were un-owned {how_long}")
        else:
            parts.append(f"under {who} for {seconds(value)}{_ratio(value, least, 'as long')}")
    if unknown:
        parts.append(f"under {_names(unknown)} there was no time at which every partition had an owner")
    sentence = ", ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _widest(variants: Mapping[str, Figures]) -> str | None:
    """The measure with the largest ratio between most and least, as a sentence; None if all are equal."""
    best: tuple[float, _Measure, Values] | None = None
    for measure in OTHERS:
        values, _ = _ascending(measure, variants)
        if len(values) < 2:
            continue
        least, most = values[0][0], values[-1][0]
        spread = most / least if least > 0 else float("inf")
        if best is None or spread > best[0]:
            best = (spread, measure, values)
    if best is None:
        return None
    _, measure, values = best
    least = values[0][0]
    parts = [
        f"{_names(names)} {measure.show(value)}{_ratio(value, least, 'as much') if index else ''}"
        for index, (value, names) in enumerate(values)
    ]
    return f"The widest other difference is {measure.name}: {', '.join(parts)}."


def _ratio(value: float, least: float, what: str) -> str:
    """How many times the least a value is; nothing is not measured in nothings."""
    if least <= 0:
        return ""
    ratio = value / least
    shown = f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
    return f" ({shown} times {what})"


def _names(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"

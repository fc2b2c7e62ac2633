"""What the difference between variants is, in a sentence or two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupstorm.storms.figures.table import Figures
from groupstorm.storms.figures.wording import counted, dollars, listed, seconds, size


class _Measure(NamedTuple):
    """A figure of which less is better: how it is read, introduced and printed."""

    name: str
    read: Callable[[Figures], float | None]
    show: Callable[[float], str]


def _count(value: float) -> str:
    return f"{value:,.0f}"


class _Lead(NamedTuple):
    """What a comparison begins with: a time, and what it means to have none."""

    measure: _Measure
    unknown: str


UNOWNED = _Lead(
    _Measure("partitions were un-owned", lambda f: f.unowned_partition_seconds, seconds),
    "there was no time at which every partition had an owner",
)
#: The same of a Kafka Streams application, whose partitions have owners long before they are processed.
DOWN = _Lead(
    _Measure("tasks were down", lambda f: f.task_downtime_seconds, seconds),
    "there was no time at which every task ran",
)

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

OTHERS_OF_TASKS: tuple[_Measure, ...] = (
    _Measure("longest downtime of a task", lambda f: f.task_downtime_max_seconds, seconds),
    _Measure("state restored before tasks could run", lambda f: f.restored_bytes, size),
    _Measure("tasks restored from nothing", lambda f: f.tasks_from_scratch, _count),
    _Measure("state built up by standbys", lambda f: f.standby_restored_bytes, size),
    _Measure("partitions moved", lambda f: f.moves, _count),
    _Measure("tasks that one instance has more than another", lambda f: f.task_imbalance, _count),
    _Measure("peak lag in records", lambda f: f.lag_peak, _count),
    _Measure("generations", lambda f: f.generations, _count),
)

Values = list[tuple[float, list[str]]]


def compare_answer(variants: Mapping[str, Figures]) -> str:
    """A few sentences: un-owned time of each variant, least first, and the widest other difference.

    Of a Kafka Streams application: the downtime of its tasks, whether it came to balance, what crossed racks.

    Ratios are to the variant with the least; variants with equal values stand together. Works for any
    number of variants and for figures that are null or zero.
    """
    if not variants:
        return "There is nothing to compare."
    of_tasks = any(figures.probing_rebalances is not None for figures in variants.values())
    lead = DOWN if of_tasks else UNOWNED
    values, unknown = _ascending(lead.measure, variants)
    sentences = [_lead_sentence(lead, values, unknown)]
    if of_tasks:
        sentences += [_balance_sentence(variants), *_traffic_sentences(variants)]
    other = _widest(variants, OTHERS_OF_TASKS if of_tasks else OTHERS)
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


def _lead_sentence(lead: _Lead, values: Values, unknown: list[str]) -> str:
    parts = []
    least = values[0][0] if values else 0
    for index, (value, names) in enumerate(values):
        who = listed(names)
        if index == 0:
            how_long = f"for {seconds(value)} in all" if value else "at no time"
            parts.append(f"under {who} {lead.measure.name} {how_long}")
        else:
            parts.append(f"under {who} for {seconds(value)}{_ratio(value, least, 'as long')}")
    if unknown:
        parts.append(f"under {listed(unknown)} {lead.unknown}")
    sentence = ", ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _balance_sentence(variants: Mapping[str, Figures]) -> str:
    """After how long, and how many probing rebalances, nothing was left to be moved."""
    parts = []
    for name, figures in variants.items():
        probing = counted(figures.probing_rebalances or 0, "probing rebalance")
        if figures.converged_after_seconds is None:
            parts.append(f"under {name} never ({probing})")
        else:
            after = seconds(figures.converged_after_seconds)
            parts.append(f"under {name} {after} after the change ({probing})")
    return f"A stable assignment came {', '.join(parts)}."


def _traffic_sentences(variants: Mapping[str, Figures]) -> list[str]:
    """What went from rack to rack, and what saving it took: movements, tasks of a kind on one instance."""
    crossing = [
        f"{size(figures.cross_rack_bytes)} ({dollars(figures.cross_rack_usd)}) under {name}"
        for name, figures in variants.items()
        if figures.cross_rack_bytes is not None and figures.cross_rack_usd is not None
    ]
    if not crossing:
        return []
    taken = [
        f"{counted(figures.moves or 0, 'move')} and {_count(figures.subtopology_imbalance or 0)} under {name}"
        for name, figures in variants.items()
    ]
    return [
        f"From rack to rack went {', '.join(crossing)}.",
        "That took so many moves of partitions, and at the end an instance has so many tasks of one "
        f"sub-topology more than another: {', '.join(taken)}.",
    ]


def _widest(variants: Mapping[str, Figures], measures: Sequence[_Measure]) -> str | None:
    """The measure with the largest ratio between most and least, as a sentence; None if all are equal."""
    best: tuple[float, _Measure, Values] | None = None
    for measure in measures:
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
        f"{listed(names)} {measure.show(value)}{_ratio(value, least, 'as much') if index else ''}"
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

"""Sentences on the gain and the loss of a share group: its consumers, and the order of its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median
from typing import TypeVar

from groupstorm.figures.overload import lag_growth
from groupstorm.figures.table import Figures
from groupstorm.verdicts.ranking import Runs
from groupstorm.wording import counted, listed

T = TypeVar("T")


def is_shared(runs: Sequence[Figures]) -> bool:
    """Whether the runs are of a share group."""
    return any(run.delivery_counts is not None for run in runs)


def share_sentences(variants: Runs) -> list[str]:
    """The consumers that the load keeps busy, the records that lost their order, and who keeps it.

    Variants of which the same is to be said share a sentence.
    """
    shared = {name: runs for name, runs in variants.items() if is_shared(runs)}
    sentences = _consumers(shared)
    done = {name: percent for name, runs in shared.items() if (percent := _out_of_order(runs)) is not None}
    late = _grouped(done)
    if late:
        parts = [f"{percent} % under {listed(names)}" for percent, names in late.items()]
        sentences.append(f"Of the records {', '.join(parts)} were done out of order.")
    owned = [name for name in variants if name not in shared]
    if shared and owned:
        sentences.append(
            f"What a share group loses is the order: {listed(owned)} processes the records of a partition in "
            "their order (but for those processed again)."
        )
    return sentences


def _consumers(shared: Runs) -> list[str]:
    """As many as were busy are the least that can do the work; none are spare for a deploy or a crash."""
    busy = {name: found for name, runs in shared.items() if (found := _busy(runs))}
    few = {name: any(lag_growth(run) is not None for run in shared[name]) for name in busy}
    least = _grouped({name: None if few[name] else ceil(max(found)) for name, found in busy.items()})
    sentences = []
    for number, names in least.items():
        means = [median(busy[name]) for name in names]
        shown = dict.fromkeys(f"{mean:.1f}" for mean in (min(means), max(means)))
        takes = "that is too few" if number is None else f"that takes {counted(number, 'consumer')} at least"
        sentences.append(f"{listed(names)} kept {' to '.join(shown)} consumers busy in the mean: {takes}.")
    return sentences


def _busy(runs: Sequence[Figures]) -> list[float]:
    return [run.busy_consumers_mean for run in runs if run.busy_consumers_mean is not None]


def _out_of_order(runs: Sequence[Figures]) -> str | None:
    """The share of the records, in per cent; None if none were done."""
    done = median(run.records_processed or 0 for run in runs)
    late = median(run.records_out_of_order or 0 for run in runs)
    return f"{100 * late / done:.0f}" if done else None


def _grouped(said: Mapping[str, T]) -> dict[T, list[str]]:
    """The names by what is said of them."""
    names: dict[T, list[str]] = {}
    for name, each in said.items():
        names.setdefault(each, []).append(name)
    return names

"""Sentences on the gain and the loss of a share group: its consumers, and the order of its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Final, TypeVar

from groupstorm.figures.overload import lag_growth
from groupstorm.figures.table import Figures
from groupstorm.verdicts.ranking import Runs
from groupstorm.wording import counted, listed

T = TypeVar("T")
#: A load is steady if no more than the so-manieth part of the records waited at once.
_STEADY: Final = 5


def is_shared(runs: Sequence[Figures]) -> bool:
    """Whether the runs are of a share group."""
    return any(run.delivery_counts is not None for run in runs)


def share_sentences(variants: Runs) -> list[str]:
    """The consumers that the load keeps busy, what was delivered again or given up, and the order.

    Variants of which the same is to be said share a sentence.
    """
    shared = {name: runs for name, runs in variants.items() if is_shared(runs)}
    if not shared:
        return []
    again = {name: f"{_median(run.records_duplicated for run in runs):,}" for name, runs in shared.items()}
    late = {name: part for name, runs in shared.items() if (part := _out_of_order(runs)) is not None}
    sentences = [
        *_consumers(shared),
        f"Deliveries of a record beyond its first: {_parts(_grouped(again))}.",
        *_given_up(shared),
    ]
    if late:
        sentences.append(f"Of the records {_parts(_grouped(late))} were done out of order.")
    owned = [name for name in variants if name not in shared]
    if owned:
        sentences.append(
            f"What a share group loses is the order: {listed(owned)} processes the records of a partition in "
            "their order (but for those processed again)."
        )
    return sentences


def _parts(names: Mapping[str, Sequence[str]]) -> str:
    return ", ".join([f"{what} under {listed(who)}" for what, who in names.items()])


def _given_up(shared: Runs) -> list[str]:
    """The records that nobody gets any more: rejected ones, and those at the limit of deliveries."""
    ends = {}
    for name, runs in shared.items():
        count = _median(run.records_archived for run in runs)
        if count:
            most = max(int(times) for run in runs for times in run.delivery_counts or ())
            is_kept = all(run.records_dead_lettered == run.records_archived for run in runs)
            where = "in the dead letter queue" if is_kept else "lost, without a dead letter queue"
            ends[name] = f"{counted(count, 'record')} ({where}; delivered up to {counted(most, 'time')})"
    return [f"Given up: {_parts(_grouped(ends))}."] if ends else []


def _consumers(shared: Runs) -> list[str]:
    """As many as were busy are the least that can do the work; none are spare for a deploy or a crash."""
    busy = {name: found for name, runs in shared.items() if (found := _busy(runs))}
    sentences = []
    for takes, names in _grouped({name: _takes(shared[name], found) for name, found in busy.items()}).items():
        means = [median(busy[name]) for name in names]
        shown = dict.fromkeys(f"{mean:.1f}" for mean in (min(means), max(means)))
        sentences.append(f"{listed(names)} kept {' to '.join(shown)} consumers busy in the mean: {takes}.")
    return sentences


def _takes(runs: Sequence[Figures], busy: Sequence[float]) -> str:
    """Locks and too few consumers bound how many can be busy: then that is less than the load needs."""
    if any(lag_growth(run) is not None for run in runs):
        return "the lag grew, and it takes more than that"
    if any((run.lag_peak or 0) * _STEADY > (run.records_processed or 0) for run in runs):
        return "so many records waited at times that this does not say how many it takes"
    return f"that takes {counted(ceil(max(busy)), 'consumer')} at least, and more for deploys and crashes"


def _busy(runs: Sequence[Figures]) -> list[float]:
    return [run.busy_consumers_mean for run in runs if run.busy_consumers_mean is not None]


def _out_of_order(runs: Sequence[Figures]) -> str | None:
    """The share of the records, in per cent; None if none were done."""
    done = _median(run.records_processed for run in runs)
    late = _median(run.records_out_of_order for run in runs)
    if not done:
        return None
    return "less than 1 %" if 0 < 100 * late < done else f"{100 * late / done:.0f} %"


def _median(numbers: Iterable[int | None]) -> int:
    return round(median(number or 0 for number in numbers))


def _grouped(said: Mapping[str, T]) -> dict[T, list[str]]:
    """The names by what is said of them."""
    names: dict[T, list[str]] = {}
    for name, each in said.items():
        names.setdefault(each, []).append(name)
    return names

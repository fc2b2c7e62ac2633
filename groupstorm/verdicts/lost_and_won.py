"""The price and the gain of group.protocol=streams, in runs that differ from classic ones in nothing else,
and of share groups: their consumers, and the order of their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Final, TypeVar

from groupstorm.figures.table import Figures, grows_in_most
from groupstorm.history.protocols import CLASSIC, STREAMS
from groupstorm.history.reasons import Reasons
from groupstorm.verdicts.measures import BY_FIGURE, NOTICED_SHARE, spread_of
from groupstorm.verdicts.ranking import Runs
from groupstorm.wording import counted, listed, seconds

#: The figures that are set side by side, where they differ so much that a person would notice.
_FIGURES: Final = (
    "task_downtime_seconds",
    "task_downtime_max_seconds",
    "tasks_from_scratch",
    "restored_bytes",
    "unowned_partition_seconds",
    "staleness_max_seconds",
    "moves",
    "cross_rack_usd",
)


def lost_and_won_sentences(variants: Runs, reasons: Mapping[str, Sequence[Reasons]]) -> list[str]:
    """One sentence for each variant of streams groups that has a classic counterpart."""
    tasks = {name: runs[0].tasks for name, runs in reasons.items() if runs and name in variants}
    classic = {one.others: name for name, one in tasks.items() if one.protocol == CLASSIC}
    return [
        _sentence(name, classic[one.others], variants, reasons)
        for name, one in tasks.items()
        if one.protocol == STREAMS and one.others in classic
    ]


def _sentence(new: str, old: str, variants: Runs, reasons: Mapping[str, Sequence[Reasons]]) -> str:
    lost, won = _beyond_figures(new, old, variants, reasons)
    for figure in _FIGURES:
        measure = BY_FIGURE[figure]
        after, before = (spread_of(map(measure.read, variants[name])) for name in (new, old))
        if after is None or before is None or not measure.compares(variants[new], variants[old]):
            continue
        by = after.median - before.median
        every = [figures for name in (new, old) for figures in variants[name]]
        if abs(by) < max(measure.noticed_among(every), NOTICED_SHARE * max(after.median, before.median)):
            continue
        text = f"{measure.phrase} {measure.show(after.median)} instead of {measure.show(before.median)}"
        (lost if by > 0 else won).append(text)
    return (
        f"With group.protocol=streams, under {new} against {old}, lost: {listed(lost or ['nothing'])}; "
        f"won: {listed(won or ['nothing'])}."
    )


def _beyond_figures(
    new: str, old: str, variants: Runs, reasons: Mapping[str, Sequence[Reasons]]
) -> tuple[list[str], list[str]]:
    """Warm-ups and restorations, and the way to the last assignment."""
    lost: list[str] = []
    won: list[str] = []
    warm_ups = round(median(run.tasks.warm_ups for run in reasons[old]))
    if warm_ups:
        lost.append(f"{counted(warm_ups, 'warm-up')} (Kafka 4.4.0 places none in streams groups)")
    after, before = (median(run.tasks.restored_us / 1e6 for run in reasons[name]) for name in (new, old))
    if seconds(after) != seconds(before):
        text = f"tasks restored for {seconds(after)} instead of {seconds(before)}"
        (lost if after > before else won).append(text)
    last, last_before = (
        spread_of(one.converged_after_seconds for one in variants[name]) for name in (new, old)
    )
    if last is not None and last_before is not None and seconds(last.median) != seconds(last_before.median):
        probes = spread_of(one.probing_rebalances for one in variants[old])
        probing = counted(round(probes.median) if probes else 0, "probing rebalance")
        after_change = (
            f"{seconds(last.median)} after the first change instead of {seconds(last_before.median)}"
        )
        text = f"the last assignment {after_change} and {probing}"
        (lost if last.median > last_before.median else won).append(text)
    return lost, won


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
        verb = "processes" if len(owned) == 1 else "process"
        sentences.append(
            f"What a share group loses is the order: {listed(owned)} {verb} the records of a partition in "
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
            times = "once" if most == 1 else f"up to {most:,} times"
            ends[name] = f"{counted(count, 'record')} ({where}; delivered {times})"
    return [f"Given up: {_parts(_grouped(ends))}."] if ends else []


def _consumers(shared: Runs) -> list[str]:
    """Tell how many were busy: the least that can do the work; none are spare for a deploy or a crash."""
    busy = {name: found for name, runs in shared.items() if (found := _busy(runs))}
    sentences = []
    for takes, names in _grouped({name: _takes(shared[name], found) for name, found in busy.items()}).items():
        means = [median(busy[name]) for name in names]
        shown = dict.fromkeys(f"{mean:.1f}" for mean in (min(means), max(means)))
        sentences.append(f"{listed(names)} kept {' to '.join(shown)} consumers busy in the mean: {takes}.")
    return sentences


def _takes(runs: Sequence[Figures], busy: Sequence[float]) -> str:
    """Locks and too few consumers bound how many can be busy: then that is less than the load needs. A
    consumer counts as busy while it holds records, not while it works on some whose locks have ended."""
    if any(_outlasted(run) * _STEADY > sum((run.delivery_counts or {}).values()) for run in runs):
        return "others worked on records whose locks had ended, and this does not say how many it takes"
    if grows_in_most(runs):
        return "the lag grew, and it takes more than that"
    if any((run.lag_peak or 0) * _STEADY > (run.records_processed or 0) for run in runs):
        return "so many records waited at times that this does not say how many it takes"
    return f"that takes {counted(ceil(max(busy)), 'consumer')} at least, and more for deploys and crashes"


def _outlasted(run: Figures) -> int:
    """The deliveries whose locks ended."""
    return (run.redeliveries_by_cause or {}).get("lock-expired", 0)


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

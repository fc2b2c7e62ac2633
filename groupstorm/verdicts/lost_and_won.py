"""The price and the gain of group.protocol=streams: of runs that differ from classic ones in nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from groupstorm.history.reasons import Reasons
from groupstorm.history.task_runs import CLASSIC, STREAMS
from groupstorm.verdicts.measures import BY_FIGURE, NOTICED_SHARE
from groupstorm.verdicts.ranking import Runs
from groupstorm.verdicts.spread import spread_of
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
        if after is None or before is None:
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
        after_change = f"{seconds(last.median)} after the change instead of {seconds(last_before.median)}"
        text = f"the last assignment {after_change} and {probing}"
        (lost if last.median > last_before.median else won).append(text)
    return lost, won

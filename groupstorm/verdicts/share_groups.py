"""What a share group wins and loses, in sentences: the consumers that it needs, the order of its records."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median

from groupstorm.figures.overload import lag_growth
from groupstorm.figures.table import Figures
from groupstorm.verdicts.ranking import Runs
from groupstorm.wording import counted, listed


def is_shared(runs: Sequence[Figures]) -> bool:
    """Whether the runs are of a share group."""
    return any(run.delivery_counts is not None for run in runs)


def share_sentences(variants: Runs) -> list[str]:
    """One for each share group among the variants, and one on the order if others keep it."""
    shared = {name: runs for name, runs in variants.items() if is_shared(runs)}
    sentences = [_consumers(name, runs) for name, runs in shared.items()]
    owned = [name for name in variants if name not in shared]
    if shared and owned:
        sentences.append(
            f"What a share group loses is the order: {listed(owned)} processes the records of a partition in "
            "their order (but for those processed again)."
        )
    return [sentence for sentence in sentences if sentence]


def _consumers(name: str, runs: Sequence[Figures]) -> str:
    """How many consumers the load keeps busy, and what part of the records lost its order."""
    busy = [run.busy_consumers_mean for run in runs if run.busy_consumers_mean is not None]
    if not busy:
        return ""
    grows = any(lag_growth(run) is not None for run in runs)
    enough = "and that is too few" if grows else f"{counted(ceil(max(busy)), 'consumer')} would do"
    done = median(run.records_processed or 0 for run in runs)
    late = median(run.records_out_of_order or 0 for run in runs)
    order = "" if not done else f"; {100 * late / done:.0f} % of the records were done out of order"
    return f"{name} kept {median(busy):.1f} consumers busy in the mean, {enough}{order}."

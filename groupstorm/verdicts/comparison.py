"""The difference between the variants of a scenario, in a few sentences; and whether two runs of one scenario
agree, one in virtual and one in real time.

The sentences speak of medians over the seeds, and of differences that count (`measures`): which variant
costs least (`ranking`), un-owned time, the one or two other differences that count most, what lies within the
spread of the seeds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from groupstorm.figures.answer import skipped_words
from groupstorm.figures.reasons import reasons_sentences
from groupstorm.figures.table import Figures, records_left
from groupstorm.history.reasons import Reasons
from groupstorm.verdicts.lost_and_won import is_shared, lost_and_won_sentences, share_sentences
from groupstorm.verdicts.measures import (
    BY_FIGURE,
    MEASURES,
    NOTICED_SHARE,
    Measure,
    Spread,
    all_within_spread,
    spread_of,
)
from groupstorm.verdicts.ranking import Runs, Verdict, has_tasks, not_ranked, rank, unfit_variants
from groupstorm.wording import counted, dollars, listed, number, ratio, seconds, size

#: More values than this are not all named: the least and the most are.
VALUES_NAMED_MAX = 4
#: Beside the first measure, so many differences are named.
DIFFERENCES_MAX = 2
#: Among more variants than this a sentence does not name the best ones one by one.
BEST_NAMED_MAX = 4


class _Lead(NamedTuple):
    """The first measure of a comparison: a time, and the words for it and for a time of zero."""

    figure: str
    what: str
    unknown: str


UNOWNED = _Lead(
    "unowned_partition_seconds",
    "partitions were un-owned",
    "there was no time at which every partition had an owner",
)
#: The same of a Kafka Streams application, whose partitions have owners long before they are processed.
DOWN = _Lead("task_downtime_seconds", "tasks were down", "there was no time at which every task ran")


class _Difference(NamedTuple):
    """``size``: what lies between the least and the most, in multiples of what a person notices."""

    measure: Measure
    size: float
    spreads: Mapping[str, Spread]


#: One value, as it is shown, and the variants that have it.
Values = list[tuple[float, str, list[str]]]


def compare_answer(variants: Runs) -> str:
    """`compare_sentences` in one text."""
    return " ".join(compare_sentences(variants))


def compare_sentences(
    variants: Runs,
    weights: Mapping[str, float] | None = None,
    reasons: Mapping[str, Sequence[Reasons]] | None = None,
    circumstances: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """A few sentences on the runs (one per seed) of each variant.

    ``weights``: see `ranking`. ``reasons``: why partitions were un-owned in each run, if known.
    ``circumstances``: what befell the group -> the variants that it befell; only these are ranked together.

    Of a Kafka Streams application also whether it came to balance, and what crossed racks. Works for any
    number of variants and for figures that are null or zero.
    """
    if not variants:
        return ["There is nothing to compare."]
    of_tasks = has_tasks(variants)
    lead = DOWN if of_tasks else UNOWNED
    unfit = unfit_variants(variants)
    fit = {name: runs for name, runs in variants.items() if name not in unfit}
    sentences = _verdict_sentences(fit, weights, circumstances or {"": list(fit)})
    if not fit and len(variants) > 1:
        sentences.append("There is no best variant: none of them can be ranked.")
    sentences += not_ranked(unfit) if len(variants) > 1 else []
    owned = {name: runs for name, runs in variants.items() if not is_shared(runs)}
    if owned:
        sentences.append(_lead_sentence(lead, owned))
    said = {BY_FIGURE[lead.figure].family}
    if of_tasks:
        sentences += [_balance_sentence(variants), *_traffic_sentences(variants)]
        said.add(BY_FIGURE["cross_rack_usd"].family)
    sentences += share_sentences(variants)
    noticed, in_spread = _differences(variants, said)
    named = noticed[:DIFFERENCES_MAX]
    sentences += [_difference_sentence(difference) for difference in named]
    if len(variants) > 1 and not named:
        sentences.append("Nothing else differs by so much that a person would notice.")
    if in_spread:
        sentences.append(f"Within the spread of the seeds: {listed(in_spread)}.")
    sentences += [*_skipped_sentences(variants), *_left_sentences(variants)]
    sentences += reasons_sentences(reasons or {})
    sentences += lost_and_won_sentences(variants, reasons or {})
    return sentences


def _verdict_sentences(
    variants: Runs, weights: Mapping[str, float] | None, circumstances: Mapping[str, Collection[str]]
) -> list[str]:
    """One for each circumstance under which there are several variants to choose from."""
    sentences = []
    for words, names in circumstances.items():
        alike = {name: variants[name] for name in names if name in variants}
        verdict = rank(alike, weights)
        if verdict is None:
            continue
        sentence = _verdict_sentence(verdict, alike)
        if len(circumstances) > 1:
            sentence = f"With {words}: {sentence[0].lower()}{sentence[1:]}"
        sentences.append(sentence)
    if len(circumstances) > 1 and len(variants) > 1 and not sentences:
        sentences.append(
            "There is no best variant: they differ in what befalls the group or in figures_from."
        )
    return sentences


def _verdict_sentence(verdict: Verdict, variants: Runs) -> str:
    seeds = max(len(runs) for runs in variants.values())
    medians = f"medians of {seeds} seeds" if seeds > 1 else "one seed; runs with --seeds 5 show the spread"
    basis = f"by {verdict.by} ({medians})"
    if len(verdict.best) == 1:
        return f"Best {basis}: {verdict.best[0]}."
    why = "they differ by less than a person would notice"
    if verdict.within_spread:
        why = "what lies between them is within the spread of the seeds"
    elif min(cost.median for cost in verdict.costs.values()) >= 1:  # even the least pays for something
        why = "what each saves in one of these it pays in another"
    if len(verdict.best) == len(variants):
        return f"There is no winner {basis}: {why}."
    if len(verdict.best) > BEST_NAMED_MAX:
        others = [name for name in variants if name not in verdict.best]
        return f"There is no winner {basis}: {why}, and only {listed(others)} cost more."
    return f"Best {basis}: {listed(verdict.best)}; there is no winner between them, {why}."


def _spreads(measure: Measure, variants: Runs) -> dict[str, Spread]:
    """Return the spreads of the variants that have the figure."""
    found = {name: spread_of(map(measure.read, runs)) for name, runs in variants.items()}
    return {name: spread for name, spread in found.items() if spread is not None}


def _values(measure: Measure, spreads: Mapping[str, Spread]) -> Values:
    """Medians, least first; variants whose medians are shown alike stand together."""
    ascending = sorted((spread.median, name) for name, spread in spreads.items())
    order = list(spreads)
    return [
        (members[0][0], shown, sorted((name for _, name in members), key=order.index))
        for shown, found in groupby(ascending, key=lambda pair: measure.show(pair[0]))
        if (members := list(found))
    ]


def _lead_sentence(lead: _Lead, variants: Runs) -> str:
    measure = BY_FIGURE[lead.figure]
    spreads = _spreads(measure, variants)
    values = _values(measure, spreads)
    parts = []
    for index, (value, shown, names) in enumerate(_few(values)):
        if index == 0:
            how_long = f"for {shown} in all" if value else "at no time"
            parts.append(f"under {listed(names)} {lead.what} {how_long}")
        else:
            times = ratio(value, values[0][0])
            parts.append(f"under {listed(names)} for {shown}{f' ({times} as long)' if times else ''}")
    unknown = [name for name in variants if name not in spreads]
    if unknown:
        parts.append(f"under {listed(unknown)} {lead.unknown}")
    if len(values) > VALUES_NAMED_MAX:
        parts[-1] += ", under the others for something between"
    sentence = ", ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _few(values: Values) -> Values:
    return values if len(values) <= VALUES_NAMED_MAX else [values[0], values[-1]]


def _differences(variants: Runs, said: Collection[str]) -> tuple[list[_Difference], list[str]]:
    """The differences that count, the largest first, one of a family; and what lies within the spread.

    ``said``: families that have their sentence already.
    """
    every = [figures for runs in variants.values() for figures in runs]
    found: list[_Difference] = []
    in_spread: list[str] = []
    for measure in MEASURES:
        spreads = _spreads(measure, variants)
        if not measure.is_told or measure.family in said or len(spreads) < 2:
            continue
        medians = [spread.median for spread in spreads.values()]
        least, most = min(medians), max(medians)
        times = (most - least) / measure.noticed_among(every)
        if times < 1 or most - least < NOTICED_SHARE * abs(most):
            continue
        if all_within_spread(list(spreads.values())):
            in_spread.append(measure.phrase)
        else:
            found.append(_Difference(measure, times, spreads))
    found.sort(key=lambda difference: -difference.size)
    families: set[str] = set()
    noticed = []
    for difference in found:
        if difference.measure.family not in families:
            families.add(difference.measure.family)
            noticed.append(difference)
    return noticed, in_spread


def _difference_sentence(difference: _Difference) -> str:
    measure = difference.measure
    values = _values(measure, difference.spreads)
    parts = []
    for value, shown, names in _few(values):
        times = ratio(value, values[0][0])
        parts.append(f"{listed(names)} {shown}{f' ({times})' if times else ''}")
    if len(values) > VALUES_NAMED_MAX:
        parts[-1] += ", the others between"
    return f"{measure.phrase[0].upper()}{measure.phrase[1:]}: {', '.join(parts)}."


def _skipped_sentences(variants: Runs) -> list[str]:
    """Name records that nobody reads, even if no variant skips more than another: a setting reads them."""
    worst = max((one for runs in variants.values() for one in runs), key=lambda one: one.records_skipped or 0)
    if not worst.records_skipped:
        return []
    told_apart = bool(worst.records_skipped_at_start) and len(variants) > 1
    those = "that does" if worst.records_skipped_at_start == 1 else "those do"
    ranked = f"; {those} not count in the ranking" if told_apart else ""
    up_to = "Up to " if sum(map(len, variants.values())) > 1 else ""
    return [f"{up_to}{counted(worst.records_skipped, 'record')} skipped{skipped_words(worst)}{ranked}."]


def _left_sentences(variants: Runs) -> list[str]:
    """Name the records of groups that were still catching up when their runs ended."""
    left = {name: round(median(map(records_left, runs))) for name, runs in variants.items()}
    parts = [f"{count:,} under {name}" for name, count in left.items() if count]
    longer = "a longer settle_timeout_ms tells when, if ever, they are processed"
    return [f"Records that still waited at the end: {', '.join(parts)}; {longer}."] if parts else []


def _balance_sentence(variants: Runs) -> str:
    """After how long, and how many probing rebalances, nothing was left to be moved."""
    parts, unneeded, more = [], [], ""
    for name, runs in variants.items():
        probes = spread_of(figures.probing_rebalances for figures in runs)
        probing = counted(round(probes.median) if probes else 0, "probing rebalance")
        if not any(figures.generations for figures in runs):
            unneeded.append(name)
            continue
        never = sum(figures.converged_after_seconds is None for figures in runs)
        more = " A longer settle_timeout_ms tells whether one comes later." if never else more
        after = spread_of(figures.converged_after_seconds for figures in runs)
        if after is None:
            parts.append(f"under {name} not before the end ({probing})")
            continue
        but = f", but not in {never} of {len(runs)} seeds" if never else ""
        parts.append(f"under {name} {seconds(after.median)} after the first change ({probing}{but})")
    sentences = [f"A stable assignment came {', '.join(parts)}.{more}"] if parts else []
    return " ".join(
        [*sentences, *([f"No new assignment was needed under {listed(unneeded)}."] if unneeded else [])]
    )


def _traffic_sentences(variants: Runs) -> list[str]:
    """Tell the traffic between racks, and what saving it took: movements, tasks of a kind on one instance."""
    crossing = []
    for name, runs in variants.items():
        volume = spread_of(figures.cross_rack_bytes for figures in runs)
        cost = spread_of(figures.cross_rack_usd for figures in runs)
        if volume is not None and cost is not None:
            crossing.append(f"{size(volume.median)} ({dollars(cost.median)}) under {name}")
    if not crossing:
        return []
    taken = []
    for name, runs in variants.items():
        moves = spread_of(figures.moves for figures in runs)
        uneven = spread_of(figures.subtopology_imbalance for figures in runs)
        moved = counted(round(moves.median) if moves else 0, "move")
        taken.append(f"{moved} and {number(uneven.median if uneven else 0)} under {name}")
    longer = "Traffic adds up, and these runs differ in length: compare it with least_duration_ms."
    return [
        f"From rack to rack went {', '.join(crossing)}.",
        "That took so many moves of partitions, and at the end an instance has so many tasks of one "
        f"sub-topology more than another: {', '.join(taken)}.",
        *([] if BY_FIGURE["cross_rack_usd"].compares(*variants.values()) else [longer]),
    ]


def one_run_each(variants: Mapping[str, Figures]) -> dict[str, Sequence[Figures]]:
    """Runs of a single seed, as `compare_answer` takes them."""
    return {name: [figures] for name, figures in variants.items()}


#: Times may differ by the larger of these two.
TOLERATED_SHARE = 0.1
TOLERATED_MS = 200.0

#: Figures that are one time, not a sum of many -> milliseconds in one of their unit.
TIMES = {
    "unowned_max_seconds": 1000,
    "unowned_p50_seconds": 1000,
    "unowned_p95_seconds": 1000,
    "nobody_consuming_seconds": 1000,
    "rebalance_latency_avg_ms": 1,
    "rebalance_latency_max_ms": 1,
    "settled_after_ms": 1,
}
#: Figures that have to be equal.
COUNTS = ("generations",)


class Judged(NamedTuple):
    """One figure of both runs."""

    figure: str
    virtual: float | None
    real: float | None
    agrees: bool


def judge(virtual: Figures, real: Figures) -> list[Judged]:
    """Every figure that is compared: counts have to be equal, times near each other."""
    judged = []
    for figure in COUNTS:
        one, other = getattr(virtual, figure), getattr(real, figure)
        judged.append(Judged(figure, one, other, one == other))
    for figure, milliseconds in TIMES.items():
        one, other = getattr(virtual, figure), getattr(real, figure)
        judged.append(Judged(figure, one, other, _near(one, other, milliseconds)))
    return judged


def _near(one: float | None, other: float | None, milliseconds: int) -> bool:
    if one is None or other is None:
        return one is other
    tolerated = max(TOLERATED_SHARE * max(abs(one), abs(other)), TOLERATED_MS / milliseconds)
    return abs(one - other) <= tolerated


def agreement_answer(judged: list[Judged]) -> str:
    """In a sentence."""
    differing = [one.figure for one in judged if not one.agrees]
    rule = "generations equal, every time within the larger of 10 % and 200 ms"
    if not differing:
        return f"Virtual and real time agree: {rule}."
    return f"Virtual and real time differ beyond the rule ({rule}) in {', '.join(differing)}."

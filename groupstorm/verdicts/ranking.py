"""Which variant costs least, by one figure or by several that are weighed together; perhaps none does.

The cost of a run: for each figure of the ranking, its weight times what the figure lies above the least
median of all variants, in multiples of what a person notices (`measures`). A figure counts for a variant only
if its median lies above the least one by a tenth of itself: what all variants pay alike decides nothing.
Without a ranking of the scenario's or the person's own it also has to lie above it by one notice; who names a
figure asks about less than that, too. A variant is the winner if its median cost lies below every other's by
more than the seeds of both vary, and by one notice at least: by the figures that count for one of the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from groupstorm.figures.table import (
    HELD,
    OWNED_AT_END,
    SETTLED_LATE,
    SETTLES,
    Figures,
    grows_in_most,
    lag_growth,
    overload_sentence,
)
from groupstorm.history.protocols import REFUSED
from groupstorm.problems import InputError
from groupstorm.verdicts.measures import BY_KEY, NOTICED_SHARE, Measure, Spread, spread_of, within_spread
from groupstorm.wording import listed

Runs = Mapping[str, Sequence[Figures]]

#: Requests of members of the newer protocols that a classic group refuses.
_NEW_PROTOCOLS: Final = frozenset({"ConsumerGroupHeartbeat", "StreamsGroupHeartbeat"})

#: Without --rank: what partitions, records and their readers suffer, each weighed once.
DEFAULT_RANKING: Mapping[str, float] = {
    "unowned": 1,
    "staleness": 1,
    "duplicates": 1,
    "skipped": 1,
    "lost": 1,
}
#: The same of a Kafka Streams application.
DEFAULT_RANKING_OF_TASKS: Mapping[str, float] = {"downtime": 1, "staleness": 1, "duplicates": 1, "skipped": 1}


class Verdict(NamedTuple):
    """``best``: one variant, or several that do not differ enough. ``by``: the words of the ranking.

    ``measures``: those that were weighed.
    """

    best: tuple[str, ...]
    by: str
    costs: Mapping[str, Spread]
    #: Whether seeds alone may explain what lies between several that are best.
    within_spread: bool
    measures: Sequence[Measure]

    @property
    def families(self) -> frozenset[str]:
        return frozenset(measure.family for measure in self.measures)


def parse_ranking(text: str, option: str = "--rank") -> Mapping[str, float]:
    """`lag`, or weights: `unowned=2,duplicates=1`. Raises InputError."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        key, equals, written = part.strip().partition("=")
        if key not in BY_KEY:
            raise InputError(f"{option} {text!r}: {key!r} is none of {', '.join(BY_KEY)}")
        try:
            weight = float(written) if equals else 1.0
        except ValueError:
            weight = -1
        if not 0 < weight < float("inf"):
            raise InputError(f"{option} {text!r}: {key}: {written!r}: expected a weight above 0")
        if key in weights:
            raise InputError(f"{option} {text!r}: {key} stands twice")
        weights[key] = weight
    return weights


def has_tasks(variants: Runs) -> bool:
    """Whether these are runs of a Kafka Streams application."""
    return any(figures.probing_rebalances is not None for runs in variants.values() for figures in runs)


def rank(variants: Runs, weights: Mapping[str, float] | None = None) -> Verdict | None:
    """The verdict; None if there is only one variant, or no figure of the ranking has a value in all runs."""
    if len(variants) < 2:
        return None
    is_asked = weights is not None
    weights = _default_ranking(variants) if weights is None else weights
    measures = [BY_KEY[key] for key in weights if _known(BY_KEY[key], variants)]
    if not measures:
        return None
    every = [figures for runs in variants.values() for figures in runs]
    notices = {measure: measure.noticed_among(every) for measure in measures}
    medians = {
        measure: {name: median(map(measure.weigh, runs)) for name, runs in variants.items()}
        for measure in measures
    }
    leasts = {measure: min(of_variants.values()) for measure, of_variants in medians.items()}

    def cost(name: str, *counted_for: str) -> Spread:
        """The cost by the figures that count for one of those variants."""
        counting = [m for m in measures if any(counts(m, each) for each in counted_for)]
        spread = spread_of(
            sum(weights[m.key] * (m.weigh(figures) - leasts[m]) / notices[m] for m in counting)
            for figures in variants[name]
        )
        assert spread is not None
        return spread

    def counts(measure: Measure, name: str) -> bool:
        return _counts(medians[measure][name], leasts[measure], 0 if is_asked else notices[measure])

    costs = {name: cost(name, name) for name in variants}
    least = min(costs, key=lambda name: costs[name].median)
    pairs = {name: (cost(least, least, name), cost(name, least, name)) for name in variants}
    best = [name for name in costs if name == least or not _is_less(*pairs[name])]
    tied = [pairs[name] for name in best if name != least]
    several = any(len(runs) > 1 for runs in variants.values())
    return Verdict(
        best=tuple(best),
        by=_words(measures),
        costs=costs,
        within_spread=several
        and any(each.least < each.most for pair in tied for each in pair)
        and any(within_spread(*pair) for pair in tied),
        measures=measures,
    )


def ranks_unowned(variants: Runs, weights: Mapping[str, float] | None) -> bool:
    """Whether time without an owner, from the group's start on, is among what variants are ranked by."""
    weights = _default_ranking(variants) if weights is None else weights
    return not weights.keys().isdisjoint({"unowned", "gap", "nobody"})


def deciding_measure(variants: Runs, weights: Mapping[str, float] | None = None) -> Measure | None:
    """The first figure of the ranking by which the variants differ so much that a person would notice.

    If they differ by none, the first one that is not 0 everywhere; None if there is no such figure.
    """
    weights = _default_ranking(variants) if weights is None else weights
    every = [figures for runs in variants.values() for figures in runs]
    measures = [BY_KEY[key] for key in weights if any(map(BY_KEY[key].read, every))]
    for measure in measures:
        spreads = [spread_of(map(measure.read, runs)) for runs in variants.values()]
        medians = [spread.median for spread in spreads if spread is not None]
        if max(medians) - min(medians) >= measure.noticed_among(every):
            return measure
    return measures[0] if measures else None


def _default_ranking(variants: Runs) -> Mapping[str, float]:
    weights = DEFAULT_RANKING_OF_TASKS if has_tasks(variants) else DEFAULT_RANKING
    if _known(BY_KEY["staleness"], variants):
        return weights
    return {"lag" if key == "staleness" else key: weight for key, weight in weights.items()}


def _known(measure: Measure, variants: Runs) -> bool:
    return all(measure.read(figures) is not None for runs in variants.values() for figures in runs)


def _counts(value: float, least: float, noticed: float) -> bool:
    return value - least >= max(noticed, NOTICED_SHARE * value)


def _is_less(one: Spread, other: Spread) -> bool:
    """Whether ``one`` costs so much less that a person would choose it for that."""
    return other.median - one.median >= 1 and not within_spread(one, other)


def _words(measures: Sequence[Measure]) -> str:
    names = [measure.phrase.removesuffix(", in all") for measure in measures]
    return f"{listed(names)} together" if len(names) > 1 else names[0]


FATAL: Final[Mapping[str, str]] = {
    "INCONSISTENT_GROUP_PROTOCOL": "they offer no assignor that all others offer",
    "FENCED_INSTANCE_ID": "another process has their group.instance.id",
    "UNRELEASED_INSTANCE_ID": "one that has not left has their group.instance.id until its session ends",
    "GROUP_MAX_SIZE_REACHED": "the group is full, see group.max.size or group.consumer.max.size",
    "INVALID_SESSION_TIMEOUT": "the broker does not allow their session.timeout.ms",
    "GROUP_AUTHORIZATION_FAILED": "they may not read the group",
    "NoOffsetForPartitionException": "auto.offset.reset=none, and the group has committed no offset",
}
"""Errors that end a consumer, and the reason for people."""


_OVERLOAD: Final = "overload"
_BRACKETS: Final = re.compile(r" ?\([^()]*\)").sub


def unfit_variants(variants: Runs) -> dict[str, str]:
    """Variant -> why it is not ranked: consumers died of errors, partitions were left without an owner, or
    the group cannot settle or keep up.

    Each kind of reason as it was in the first run that had it.
    """
    found: dict[str, str] = {}
    for name, runs in variants.items():
        reasons = {kind: reason for figures in reversed(runs) for kind, reason in _reasons(figures).items()}
        if not grows_in_most(runs):
            reasons.pop(_OVERLOAD, None)
        if reasons:
            found[name] = "; ".join(reasons.values())
    return found


def not_ranked(unfit: Mapping[str, str]) -> list[str]:
    """One sentence for all variants of ``unfit`` (variant -> reasons) that differ in brackets, if at all."""
    kinds: dict[str, list[str]] = {}
    for name, why in unfit.items():
        kinds.setdefault(_BRACKETS("", _BRACKETS("", why)), []).append(name)  # which hold others
    sentences = []
    for alike in kinds.values():
        why = unfit[alike[0]]
        if any(unfit[name] != why for name in alike):
            why = why.replace(" (", f" ({alike[0]}: ", 1)
        sentences.append(f"Not ranked {'is' if len(alike) == 1 else 'are'} {listed(alike)}: {why}.")
    return sentences


def consumers_ended(figures: Figures) -> str | None:
    """The errors that ended consumers, with the reasons of each; None if none did."""
    # a response to a process that has closed meanwhile is an error, too, but ends none
    failed = figures.consumers_failed
    counts = {error: (figures.errors or {}).get(error) for error in FATAL} if failed is None else failed
    others = counts.keys() - FATAL.keys() - {REFUSED}  # which has a sentence of its own
    errors = [*(error for error in FATAL if counts.get(error)), *sorted(others)]
    dead = [f"{error} ({FATAL[error]})" if error in FATAL else error for error in errors]
    return f"consumers ended with {listed(dead)}" if dead else None


def _reasons(figures: Figures) -> dict[str, str]:
    reasons = {}
    if (dead := consumers_ended(figures)) is not None:
        reasons[dead] = dead
    refused = (figures.errors or {}).get(REFUSED, 0)
    if refused and not _NEW_PROTOCOLS.isdisjoint(figures.requests or {}):
        reasons["refused"] = f"the group could not change its protocol ({REFUSED})"
    verdict = (figures.invariants or {}).get(SETTLES, HELD)
    if verdict != HELD and not verdict.startswith(SETTLED_LATE):
        reasons["restless"] = f"the group did not come to rest ({verdict})"
    elif (at_end := (figures.invariants or {}).get(OWNED_AT_END, HELD)) != HELD:
        reasons["left out"] = f"partitions were left without an owner ({at_end})"
    elif (growth := lag_growth(figures)) is not None:
        reasons[_OVERLOAD] = f"the group cannot keep up ({overload_sentence(growth)})"
    return reasons

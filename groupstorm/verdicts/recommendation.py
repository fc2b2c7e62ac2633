"""Which of several configurations to take, with its spread, and what that buys against the defaults.

The winner of the ranking (`ranking`), if there is one. Of several that are as good by the ranking, it is the
one that is nearest to the defaults, unless others beat it at no cost in a figure that the ranking does not
weigh; then it is the nearest of those that do. So a change that buys nothing is not recommended, and one that
may buy something is named if the seeds differ too much to tell. There is no recommendation if the seeds alone
may explain all differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.verdicts.measures import MEASURES, NOTICED_SHARE, Measure, Spread, spread_of, within_spread
from groupstorm.verdicts.ranking import Runs, Verdict, rank, unfit_variants
from groupstorm.wording import counted, listed

#: What the recommended configuration costs: these figures are told with their spread, if they have a value.
PRICE = (
    "cost_per_deploy_partition_seconds",
    "cost_per_crash_partition_seconds",
    "task_downtime_seconds",
    "unowned_max_seconds",
    "staleness_max_seconds",
    "records_duplicated",
)
#: The longest single gap says nearly what the sum says.
_SAID_BY_UNOWNED = frozenset({"gap"})
#: Figures that may set one of several apart that are as good. Generations are none of them: two protocols
#: count them differently, and what they cost is un-owned time.
_SET_APART = tuple(one for one in MEASURES if one.is_told and one.family != "generations")
_SUM = "unowned_partition_seconds"
_LOAD = next(measure for measure in MEASURES if measure.key == "load")
#: A range is told beside a change if it goes so far from the median.
WIDE_SHARE = 0.25
#: So many others that are as good are named; of more only the number is said.
OTHERS_NAMED_MAX = 3


class Distance(NamedTuple):
    """The distance of a configuration from the defaults: settings that differ, then how far numbers do."""

    changes: int
    of_numbers: float


class Defaults(NamedTuple):
    """``words``: the defaults of the settings that differ; "" if a run refuses them. ``distances``: of each
    configuration.

    ``cautions``: what a person has to know who takes that configuration. ``contradictory``: configurations
    whose settings cannot go well together, however their runs ended. ``called``: the defaults, in a sentence.
    ``sets``: the settings of each configuration that differ from the defaults.
    """

    words: str
    distances: Mapping[str, Distance]
    cautions: Mapping[str, str]
    contradictory: frozenset[str] = frozenset()
    called: str = "the defaults"
    sets: Mapping[str, str] = {}

    @property
    def has_them(self) -> str | None:
        """The configuration that has the defaults; None if there is none."""
        return next((name for name, distance in self.distances.items() if not distance.changes), None)


class Change(NamedTuple):
    """A figure before and after a change of settings, over the same seeds."""

    measure: Measure
    old: Spread
    new: Spread

    @property
    def is_better(self) -> bool:
        return self.new.median < self.old.median

    @property
    def sentence(self) -> str:
        return f"{self.measure.phrase} {_widely(self.measure, self.old)} -> {_widely(self.measure, self.new)}"


class Ahead(NamedTuple):
    """A configuration beside the chosen one: the figure in which it is better, and worse, by most notices.

    ``worse``: None if it is in none.
    """

    name: str
    better: Change
    worse: Change | None


class Choice(NamedTuple):
    """``chosen``: None if nothing lies between all of them, or the seeds may explain it. ``others``: as good.

    ``is_only``: no other configuration can be ranked. ``beaten``: those that are as good by the ranking, and
    worse than ``chosen`` in ``worse_in``. ``perhaps_better``: those that cost less in the median by what a
    person notices, but whose seeds differ by as much; ``better_at_worst``: those that are as good in the
    median and cost less with their worst seed. ``calmest``: without a choice, the one whose worst seed costs
    less than that of every other.
    """

    chosen: str | None
    others: Sequence[str]
    is_only: bool = False
    beaten: Sequence[str] = ()
    worse_in: Sequence[Measure] = ()
    perhaps_better: Sequence[Ahead] = ()
    better_at_worst: Sequence[Ahead] = ()
    calmest: str | None = None


def choose(variants: Runs, defaults: Defaults, weights: Mapping[str, float] | None = None) -> Choice | None:
    """The choice; None if nothing can be ranked, or no figure of the ranking has a value.

    A configuration whose rivals all contradict themselves is the only choice. Of several that are as good
    it is the nearest to the defaults; where the defaults are worse than these, the nearest that is better
    than them in some figure.

    Others decide before whether there is anything to choose: `ranking.unfit_variants` (groups that do not
    settle or keep up), `storms.runs.choices` (settings that nobody chooses, or that contradict themselves),
    and `storms.runs.several` (figures that are mostly those of a group's start).
    """
    unfit = unfit_variants(variants)
    fit = {name: runs for name, runs in variants.items() if name not in unfit}
    sound = {name: runs for name, runs in fit.items() if name not in defaults.contradictory}
    verdict = rank(sound, weights)
    if verdict is None:
        return Choice(next(iter(sound)), (), is_only=True) if len(sound) == 1 < len(fit) else None
    found = {name: _better_in(name, verdict, sound) for name in verdict.best}
    best = [name for name in verdict.best if not any(name in beaten for beaten in found.values())]
    if len(best) == len(sound) and (verdict.within_spread or _are_alike(sound, best)):
        worst = {name: verdict.costs[name].most for name in best}
        calmest = min(worst, key=lambda name: worst[name])
        is_calmer = all(worst[name] - worst[calmest] >= 1 for name in best if name != calmest)
        return Choice(None, best, calmest=calmest if is_calmer else None)
    nearest = [*verdict.best]
    if (plain := defaults.has_them) in sound and plain not in nearest:
        every = [figures for runs in sound.values() for figures in runs]
        gains = {name: changes(sound[plain], sound[name], every) for name in nearest}
        nearest = [name for name in nearest if any(one.is_better for one in gains[name])] or nearest
    chosen = _nearest(nearest, verdict, defaults)
    if better := [name for name in best if chosen in found[name]]:
        chosen = _nearest(better, verdict, defaults)
    worse_in = dict.fromkeys(measure for measures in found[chosen].values() for measure in measures)
    ahead = {name: verdict.costs[chosen].median - verdict.costs[name].median for name in best}
    perhaps = sorted((name for name in best if ahead[name] >= 1), key=lambda name: -ahead[name])
    as_good = [name for name in best if name != chosen and abs(ahead[name]) < 1]
    calmer = [_ahead(name, sound[name], sound[chosen], verdict, "most") for name in as_good]
    better_at_worst = [one for one in calmer if one is not None and one.worse is None]
    named = {one.name for one in better_at_worst}
    perhaps_better = [_ahead(name, sound[name], sound[chosen], verdict, "median") for name in perhaps]
    return Choice(
        chosen,
        [name for name in as_good if name not in named],
        False,
        [*found[chosen]],
        [*worse_in],
        [one for one in perhaps_better if one is not None],
        better_at_worst,
    )


def recommendation(
    variants: Runs, defaults: Defaults, weights: Mapping[str, float] | None = None
) -> list[str]:
    """Say in a few sentences what to take and what it costs; none if there is no `Choice`."""
    choice = choose(variants, defaults, weights)
    if choice is None:
        return []
    chosen, others, is_only, *_ = choice
    if chosen is None:
        why = "the seeds differ by as much as the settings do"
        if _are_alike(variants, others):
            why = "no figure of any seed differs: their settings change nothing in these runs"
        return [_no_choice(others, why, defaults, choice.calmest)]
    if is_only:
        only = "the only one that settles and keeps up and whose settings do not contradict themselves"
        sentences = [f"Recommendation: {chosen}, {only}."]
    else:
        trades = _trades(chosen, others, variants) if chosen == defaults.has_them else {}
        alike = [name for name in others if name not in trades]
        sentences = [_chosen(chosen, alike, defaults), *_may_be_better(choice), *trades.values()]
        sentences.append(_beaten(choice))
    plain = defaults.has_them
    if plain not in variants and (to_set := defaults.sets.get(chosen)):
        sentences.append(f"Set {to_set}.")
    sentences.append(cost_of(variants[chosen]))
    if plain is None:
        none = f"None of these has {defaults.called} ({defaults.words}): add them, to see what a change buys."
        sentences.append(none if defaults.words else "")
    elif plain in variants and plain != chosen:
        against = _against(variants[plain], variants[chosen], variants)
        sentences.append(f"Against {defaults.called} ({plain}) {against}")
    sentences.append(defaults.cautions.get(chosen, ""))
    return [sentence for sentence in sentences if sentence]


def _nearest(names: Sequence[str], verdict: Verdict, defaults: Defaults) -> str:
    return min(names, key=lambda name: (defaults.distances[name], verdict.costs[name].median))


def _better_in(one: str, verdict: Verdict, variants: Runs) -> dict[str, list[Measure]]:
    """The best ones that ``one`` beats at no cost, each with the figures: those that were not weighed."""
    every = [figures for runs in variants.values() for figures in runs]
    weighed = verdict.families | _SAID_BY_UNOWNED
    found: dict[str, list[Measure]] = {}
    for other in verdict.best:
        both = variants[other], variants[one]
        differing = [each for measure in _SET_APART if (each := _change(measure, *both, every))]
        better = [each.measure for each in differing if each.measure.family not in weighed]
        if better and all(each.is_better for each in differing):
            found[other] = better
    return found


def _ahead(
    name: str,
    one: Sequence[Figures],
    other: Sequence[Figures],
    verdict: Verdict,
    by: Literal["median", "most"],
) -> Ahead | None:
    """``one`` beside ``other`` in the figures of the ranking; None if it is better in none."""
    found = []
    for measure in verdict.measures:
        old, new = _spread(measure, other), _spread(measure, one)
        if old is not None and new is not None:
            before, after = getattr(old, by), getattr(new, by)
            notice = max(measure.noticed_among([*one, *other]), NOTICED_SHARE * max(before, after))
            found.append(((before - after) / notice, Change(measure, old, new)))
    found.sort(key=lambda each: each[0])
    (least, worst), (most, best) = found[0], found[-1]
    return Ahead(name, best, worst if least <= -1 else None) if most >= 1 else None


def _may_be_better(choice: Choice) -> list[str]:
    """The ones that are better in what the ranking of medians does not tell."""
    sentences = []
    for one in choice.perhaps_better[:OTHERS_NAMED_MAX]:
        if one.worse is None:
            why = "the seeds differ too much to tell, so try more of them"
            sentences.append(f"Perhaps better is {one.name} ({_in_full(one.better)}): {why}.")
        else:
            but = f"better in one figure ({_in_full(one.better)}) and worse in another"
            sentences.append(f"{one.name} is {but} ({_in_full(one.worse)}): choose by which of them counts.")
    calmer = [f"{one.name} ({_in_full(one.better)})" for one in choice.better_at_worst[:OTHERS_NAMED_MAX]]
    if calmer:
        are = "is" if len(calmer) == 1 else "are"
        sentences.append(f"As good in the median, but better with the worst seed, {are} {listed(calmer)}.")
    return sentences


def _trades(chosen: str, others: Sequence[str], variants: Runs) -> dict[str, str]:
    """Sentences on those that are as good by the ranking, and better than ``chosen`` in another figure."""
    every = [figures for runs in variants.values() for figures in runs]
    found = {name: changes(variants[chosen], variants[name], every) for name in others}
    return {
        name: f"{name} is as good by the ranking; {changes_sentence(each)}"
        for name, each in found.items()
        if any(one.is_better for one in each)
    }


def _in_full(change: Change) -> str:
    measure = change.measure
    return f"{measure.phrase} {measure.show_range(change.old)} -> {measure.show_range(change.new)}"


def _chosen(chosen: str, others: Sequence[str], defaults: Defaults) -> str:
    is_default = chosen == defaults.has_them
    if not others:
        return f"Recommendation: {chosen}{f', which has {defaults.called}' if is_default else ''}."
    named = listed(others) if len(others) <= OTHERS_NAMED_MAX else counted(len(others), "other")
    if is_default:
        verb = "buys" if len(others) == 1 else "buy"
        nothing = f"{named} {verb} nothing that a person would notice"
        return f"Recommendation: stay with {chosen}, {defaults.called}: {nothing}."
    is_nearest = all(defaults.distances[chosen] < defaults.distances[other] for other in others)
    further = f", but further from {defaults.called}" if is_nearest else ""
    return f"Recommendation: {chosen}. As good{further}: {named}."


def _beaten(choice: Choice) -> str:
    """The ones that are as good by the ranking, and why they are not recommended."""
    if not choice.beaten:
        return ""
    verb = "is" if len(choice.beaten) == 1 else "are"
    worse = listed(list(dict.fromkeys(measure.phrase for measure in choice.worse_in)))
    return f"{listed(choice.beaten)} {verb} as good by the ranking, but worse in {worse}."


def _are_alike(variants: Runs, names: Sequence[str]) -> bool:
    return all([*variants[name]] == [*variants[names[0]]] for name in names)


def _no_choice(best: Sequence[str], why: str, defaults: Defaults, calmest: str | None) -> str:
    plain = defaults.has_them
    stay = f" Stay with {plain}, {defaults.called}." if plain in best else ""
    calm = f" The worst seed of {calmest} costs less than that of every other." if calmest else ""
    return f"No recommendation: between {listed(best)} {why}.{stay}{calm}"


def cost_of(runs: Sequence[Figures]) -> str:
    """Return the sentence on what a configuration costs; empty if its figures have no value."""
    parts = []
    for measure in (one for one in MEASURES if one.figure in PRICE):
        spread = _spread(measure, runs)
        if spread is not None:
            parts.append(f"{measure.phrase} {measure.show_range(spread)}")
    if not parts:
        return ""
    basis = (
        f"medians of {len(runs)} seeds, with their range" if len(runs) > 1 else "one seed: no spread is known"
    )
    return f"It costs ({basis}): {'; '.join(parts)}."


def _widely(measure: Measure, spread: Spread) -> str:
    """The median; with the range if seeds differ by more than a quarter of it."""
    differs = max(spread.median - spread.least, spread.most - spread.median) > WIDE_SHARE * abs(spread.median)
    return measure.show_range(spread) if differs else measure.show(spread.median)


def _against(before: Sequence[Figures], after: Sequence[Figures], variants: Runs) -> str:
    every = [figures for runs in variants.values() for figures in runs]
    return changes_sentence(changes(before, after, every))


def changes(before: Sequence[Figures], after: Sequence[Figures], every: Sequence[Figures]) -> list[Change]:
    """Return what gets better or worse by more than the seeds and by more than people notice.

    ``every``: the runs whose records say how many of them are worth noticing.
    """
    found: list[Change] = []
    families: set[str] = set()
    for measure in MEASURES:
        change = _change(measure, before, after, every)
        if change is None or not measure.is_told:
            continue
        # deploys and crashes are told apart, all other figures of a family are told once
        family = measure.figure if measure.figure in PRICE[:2] else measure.family
        if family in families:
            continue
        families.add(family)
        found.append(change)
    # they say more than the sum, unless it went the other way
    apart = [one.is_better for one in found if one.measure.figure in PRICE[:2]]
    return [one for one in found if one.measure.figure != _SUM or one.is_better not in apart]


def _change(
    measure: Measure, before: Sequence[Figures], after: Sequence[Figures], every: Sequence[Figures]
) -> Change | None:
    """Return the change of a figure, or None if it does not count: fewer partitions are no gain if they are
    more load."""
    old, new = _spread(measure, before), _spread(measure, after)
    if old is None or new is None or not differ(measure, old, new, every):
        return None
    if not measure.compares(before, after):
        return None
    change = Change(measure, old, new)
    if measure.figure == "imbalance_max" and change.is_better:
        light, heavy = _spread(_LOAD, before), _spread(_LOAD, after)
        if light and heavy and heavy.median - light.median > NOTICED_SHARE * heavy.median:
            return None
    return change


def changes_sentence(found: Sequence[Change]) -> str:
    """Return what a change buys, and what it costs."""
    better = [one.sentence for one in found if one.is_better]
    worse = [one.sentence for one in found if not one.is_better]
    buys = f"it buys: {'; '.join(better)}" if better else "it buys nothing that a person would notice"
    if not better and worse:
        return f"{buys}. It costs: {'; '.join(worse)}."
    costs = f"it costs: {'; '.join(worse)}" if worse else "nothing gets noticeably worse"
    return f"{buys}. For that {costs}."


def differ(measure: Measure, old: Spread, new: Spread, every: Sequence[Figures]) -> bool:
    """Whether two medians differ by more than the seeds do, and by more than people notice."""
    difference = abs(old.median - new.median)
    enough = max(measure.noticed_among(every), NOTICED_SHARE * max(abs(old.median), abs(new.median)))
    return difference >= enough and not within_spread(old, new)


def _spread(measure: Measure, runs: Sequence[Figures]) -> Spread | None:
    return spread_of(None if measure.read(figures) is None else measure.weigh(figures) for figures in runs)

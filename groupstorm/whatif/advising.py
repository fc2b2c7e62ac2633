"""The search for the smallest change of settings that meets a goal: single changes first, then pairs.

Every change is run over the same seeds as the scenario as it is. A change counts as better only if the seeds
do not explain the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.problems import InputError
from groupstorm.storms.runs.contradictions import growing_lag
from groupstorm.storms.runs.several import start_outweighs
from groupstorm.storms.runs.sweep import Outcome, Point, Sweep
from groupstorm.storms.runs.sweep_runs import run_points
from groupstorm.storms.scenario.steps import START
from groupstorm.verdicts.alternatives import Alternative
from groupstorm.verdicts.measures import BY_FIGURE, NOTICED_SHARE, Spread, spread_of, within_spread
from groupstorm.verdicts.ranking import unfit_variants
from groupstorm.verdicts.requirements import Requirement
from groupstorm.whatif.knobs import changes_of, noticed_after_ms, removes_healthy

#: Without a goal: what is to become less; of Kafka Streams DOWN, as a task that restores has an owner.
UNOWNED: Final = "unowned_partition_seconds"
DOWN: Final = "task_downtime_seconds"
#: Pairs are made of the best change of each of so many knobs.
KNOBS_IN_PAIRS: Final = 5
#: Every change of knobs that belong together is tried in a pair: a session that outlasts a restart is
#: what makes static membership work.
_TOGETHER: Final = (frozenset({"membership", "session.timeout.ms"}),)
AS_IT_IS: Final = "as it is"
_COUNTS: Final = {
    figure: f"more than the seeds vary, than a tenth, and than {BY_FIGURE[figure].noticed:g} {what}"
    for figure, what in ((UNOWNED, "partition-seconds without an owner"), (DOWN, "seconds of tasks down"))
}


class Tried(NamedTuple):
    """Changes that were run together; none: the scenario as it is. ``refused``: why they were not run.

    ``start_us``: the part of their un-owned time that is the group's start. ``removes_healthy``: whether
    healthy processes are silent for as long as a session lasts.
    """

    changes: tuple[Alternative, ...]
    figures: tuple[Figures, ...]
    noticed_after_ms: int
    refused: str | None = None
    start_us: int = 0
    removes_healthy: bool = False

    @property
    def label(self) -> str:
        return " and ".join(change.name for change in self.changes) or AS_IT_IS

    @property
    def settings(self) -> dict[str, Any]:
        return {name: value for change in self.changes for name, value in change.settings.items()}

    @property
    def size(self) -> tuple[int, int, float]:
        """The order of "the smallest change": number of settings, work, distance from the former value."""
        return (
            len(self.changes),
            sum(change.effort for change in self.changes),
            sum(change.distance for change in self.changes),
        )

    def spread(self, figure: str) -> Spread | None:
        """A figure over the seeds; None if a run has no value."""
        values = [getattr(one, figure) for one in self.figures]
        return None if any(value is None for value in values) else spread_of(values)


@dataclass
class Advice:
    """The changes that were tried, and the one to take. If ``chosen`` is None, ``reason`` says why."""

    figure: str
    plain: Tried
    tried: list[Tried] = field(default_factory=list)
    chosen: Tried | None = None
    reason: str = ""
    #: Whether the scenario as it is meets the goals.
    is_met: bool = False
    #: Others that do it, too, from the smallest on.
    others: list[Tried] = field(default_factory=list)
    #: Whether the budget of runs ended the search.
    cut_short: bool = False

    def steps(self) -> list[Tried]:
        """The way to what was chosen: each of its changes alone, then both."""
        if self.chosen is None:
            return []
        alone = [one for one in self.tried if len(one.changes) == 1 and one.changes[0] in self.chosen.changes]
        return [*alone, self.chosen] if len(self.chosen.changes) > 1 else [self.chosen]


class Search:
    """Tries changes of settings, alone and in pairs, for the one to advise.

    ``runs``: the most that may be done. ``progress`` takes how many runs are done, and how many follow."""

    def __init__(
        self,
        sweep: Sweep,
        goals: Sequence[Requirement],
        runs: int,
        progress: Callable[[int, int], None],
    ) -> None:
        self._sweep = sweep
        self._goals = goals
        self._left = runs
        self._progress = progress
        self._done = 0
        self._has_later_steps = False

    def advise(self) -> Advice:
        """Search. Raises InputError if the scenario itself is refused, or the runs suffice for nothing."""
        (plain,) = self._try([()])
        if plain.refused is not None:
            raise InputError(plain.refused)
        lead = UNOWNED if plain.spread(DOWN) is None else DOWN
        figure = self._goals[0].figure if self._goals else lead
        advice = Advice(figure, plain)
        if self._goals and self._meets(plain):
            advice.reason = "the scenario meets the goal as it is: nothing has to change"
            advice.is_met = True
            return advice
        if not self._goals and plain.spread(figure) is None:
            raise InputError(f"--goal: needed, because the scenario as it is has no value of {figure}")
        scenario = self._sweep.scenario_of(Point((), {}))
        rank = {BY_FIGURE[lead].key: 1}
        start = start_outweighs([scenario], {AS_IT_IS: plain.figures}, plain.start_us, rank)
        if not self._goals and start is not None:
            advice.reason = f"nothing is advised: {start}"
            return advice
        if overload := growing_lag(scenario.settings, scenario.steps):
            advice.reason = f"no setting that is tried here ends that: {' '.join(overload).removesuffix('.')}"
            return advice
        self._has_later_steps = any(step.do != START and step.at_ms for step in scenario.steps)
        singles = [(change,) for change in changes_of(scenario)]
        self._run(advice, singles)
        self._choose(advice)
        if advice.chosen is None:
            self._run(advice, _pairs(advice))
            self._choose(advice)
        if advice.chosen is None:
            advice.reason = self._why_nothing(advice)
        return advice

    def _run(self, advice: Advice, wanted: Iterable[tuple[Alternative, ...]]) -> None:
        """Try changes as far as the budget goes."""
        wanted = list(wanted)
        allowed = max(0, self._left // self._sweep.seeds)
        advice.cut_short = advice.cut_short or allowed < len(wanted)
        advice.tried += self._try(wanted[:allowed])

    def _try(self, wanted: Sequence[tuple[Alternative, ...]]) -> list[Tried]:
        points = [Point((), {n: v for change in one for n, v in change.settings.items()}) for one in wanted]
        before, self._left = self._done, self._left - len(points) * self._sweep.seeds
        total = before + len(points) * self._sweep.seeds

        def progress(done: int, _: int) -> None:
            self._done = before + done
            self._progress(self._done, total)

        outcomes = run_points(self._sweep, points, progress)
        return [_tried(self._sweep, one, outcome) for one, outcome in zip(wanted, outcomes, strict=True)]

    # -- judging ---------------------------------------------------------------------------------

    def _meets(self, one: Tried) -> bool:
        return one.refused is None and not _unfit(one) and self._reaches(one)

    def _reaches(self, one: Tried) -> bool:
        """Whether the figures meet the goals, whatever else the group does."""
        runs = {f"seed {number}": figures for number, figures in enumerate(one.figures)}
        return not any(goal.unmet_by(runs) for goal in self._goals)

    def _is_better(self, one: Tried, plain: Tried, figure: str) -> bool:
        """Whether ``one`` has less of the figure, by so much that a person would notice and that the seeds do
        not explain. What it saves as the group starts does not count if the scenario is about later steps."""
        before, after = plain.spread(figure), one.spread(figure)
        if one.refused is not None or after is None or _unfit(one):
            return False
        if before is None:
            return True
        measure = BY_FIGURE.get(figure)
        least = max(measure.noticed if measure else 0, NOTICED_SHARE * before.median)
        saved = before.median - after.median
        if figure == UNOWNED and self._has_later_steps:
            saved -= max(0, plain.start_us - one.start_us) / 1e6 / len(plain.figures)
        return saved >= least and not within_spread(before, after)

    def _choose(self, advice: Advice) -> None:
        if self._goals:
            found = [
                one
                for one in advice.tried
                if self._meets(one) and not _same_in_spread(advice.plain, one, self._goals)
            ]
            found.sort(key=lambda one: one.size)
        else:
            found = self._least(advice)
        # whether silent members are removed, or come back just in time, is the seeds' doing
        now_ms = advice.plain.noticed_after_ms
        found = [one for one in found if not one.removes_healthy or one.noticed_after_ms == now_ms] or found
        if found:
            advice.chosen, advice.others = found[0], found[1:]

    def _least(self, advice: Advice) -> list[Tried]:
        """The changes that leave least of the figure; the smallest change first."""
        better = [one for one in advice.tried if self._is_better(one, advice.plain, advice.figure)]
        if not better:
            return []
        spreads = {one.label: one.spread(advice.figure) for one in better}
        least = min(better, key=lambda one: spread.median if (spread := spreads[one.label]) else 0)
        as_good = [one for one in better if one is least or not self._is_better(least, one, advice.figure)]
        return sorted(as_good, key=lambda one: one.size)

    def _why_nothing(self, advice: Advice) -> str:
        ran = [one for one in advice.tried if one.spread(advice.figure) is not None]
        nearest = min(ran, key=lambda one: _median(one, advice.figure), default=None)
        if self._goals:
            sentence = f"no change of one or two settings meets {' and '.join(map(str, self._goals))}"
            known = (one.spread(advice.figure) for one in (advice.plain, *advice.tried))
            if not any(known):
                return f"{sentence}: {advice.figure} has no value in any of these runs"
            reaching = [one for one in ran if self._reaches(one)]
            if reaching and all(map(_unfit, reaching)):
                first = min(reaching, key=lambda one: one.size)
                return f"{sentence} and leaves the group well: with {first.label} {_unfit(first)}"
            if reaching:
                sentence += " in a way that the seeds do not explain"
        else:
            counts = _COUNTS[advice.figure]
            sentence = f"no change of one or two settings makes a difference that counts ({counts})"
            why, well = _unfit(advice.plain), [one.label for one in ran if not _unfit(one)]
            if why and not well:
                return f"{sentence}: as it is, and with every change, {why}"
            if why:
                return f"{sentence}; but as it is, {why}, and not with {well[0]}"
        before, after = advice.plain.spread(advice.figure), nearest and nearest.spread(advice.figure)
        if nearest is None or (before and after and not _is_less(after, before)):
            return sentence
        return f"{sentence}; {nearest.label} {'comes' if len(nearest.changes) == 1 else 'come'} nearest"


def _tried(sweep: Sweep, changes: tuple[Alternative, ...], outcome: Outcome) -> Tried:
    if outcome.refused is not None:
        return Tried(changes, (), 0, outcome.refused)
    scenario = sweep.scenario_of(outcome.point)
    figures = tuple(outcome.figures.values())
    noticed_ms = noticed_after_ms(scenario.settings)
    return Tried(changes, figures, noticed_ms, None, outcome.start_us, removes_healthy(scenario))


def _unfit(one: Tried) -> str | None:
    """The reason why it is not advised, whatever its figures; None if there is none."""
    return unfit_variants({one.label: one.figures}).get(one.label)


def _is_less(after: Spread, before: Spread) -> bool:
    return after.median < before.median and not within_spread(before, after)


def _median(one: Tried, figure: str) -> float:
    spread = one.spread(figure)
    return float("inf") if spread is None else spread.median


def _same_in_spread(plain: Tried, one: Tried, goals: Sequence[Requirement]) -> bool:
    """Whether seeds alone may explain that ``one`` meets the goals and ``plain`` does not."""
    for goal in goals:
        before, after = plain.spread(goal.figure), one.spread(goal.figure)
        if before is None or after is None or not within_spread(before, after):
            return False
    return True


def _pairs(advice: Advice) -> Iterator[tuple[Alternative, Alternative]]:
    """The best change of each knob with that of each other knob, and knobs that belong together."""
    best: dict[str, Tried] = {}
    for one in advice.tried:
        (change,) = one.changes
        known = best.get(change.knob)
        if one.refused is None and (
            known is None or _median(one, advice.figure) < _median(known, advice.figure)
        ):
            best[change.knob] = one
    ranked = sorted(best.values(), key=lambda one: _median(one, advice.figure))[:KNOBS_IN_PAIRS]
    seen: set[tuple[str, ...]] = set()
    every = [one.changes[0] for one in advice.tried if one.refused is None]
    together = [
        pair for pair in combinations(every, 2) if frozenset(change.knob for change in pair) in _TOGETHER
    ]
    for first, second in [*combinations([one.changes[0] for one in ranked], 2), *together]:
        labels = tuple(sorted((first.name, second.name)))
        if labels not in seen and first.settings.keys().isdisjoint(second.settings):
            seen.add(labels)
            yield first, second

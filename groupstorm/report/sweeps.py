"""A sweep as people read it: one row per point, the knee, what a crash and a deploy cost there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.figures import Figures
from groupstorm.figures.table import finding, verdict_on
from groupstorm.problems import InputError, not_one_of
from groupstorm.report.deployment_notes import unused_note
from groupstorm.report.grid import Grid, Row
from groupstorm.report.tables import RANGE, brief, figure_names, figures_csv, range_shown, spread
from groupstorm.storms.runs.choices import defaults_among, is_choice
from groupstorm.storms.runs.contradictions import by_rule, found_in
from groupstorm.storms.runs.run import broken_invariants
from groupstorm.storms.runs.several import start_outweighs
from groupstorm.storms.runs.sweep import VARIANT, Axis, Outcome, Point, Sweep
from groupstorm.storms.scenario.files import Scenario
from groupstorm.verdicts.measures import BY_FIGURE, Spread, first_that_meets, furthest_from_chord, spread_of
from groupstorm.verdicts.ranking import consumers_ended, not_ranked, unfit_variants
from groupstorm.verdicts.recommendation import recommendation
from groupstorm.verdicts.requirements import Requirement, figures_with_numbers
from groupstorm.wording import counted, listed

SWEEP_FILE = "sweep.json"

#: So many points are named that share a contradiction and no value.
_NAMED_MAX = 3

#: The figures of the table, and what heads their columns.
COLUMNS = {
    "unowned_partition_seconds": "un-owned s",
    "cost_per_deploy_partition_seconds": "per deploy",
    "cost_per_crash_partition_seconds": "per crash",
    "task_downtime_seconds": "tasks down s",
    "unowned_max_seconds": "longest gap s",
    "staleness_max_seconds": "stale s",
    "lag_peak": "peak lag",
    "records_duplicated": "again",
    "generations": "gen.",
    "moves": "moves",
}


def check_figure(wanted: str | None, option: str = "--figure") -> None:
    """Raises InputError if there is no figure of that name."""
    if wanted is not None and wanted not in figures_with_numbers():
        raise InputError(f"{option}: no such figure: {not_one_of(wanted, figures_with_numbers(), 100)}")


def figure_of_interest(wanted: str | None, goals: Sequence[Requirement], outcomes: Sequence[Outcome]) -> str:
    """The figure whose knee is looked for."""
    if wanted is not None:
        return wanted
    if goals:
        return goals[0].figure
    runs = [figures for outcome in outcomes for figures in outcome.figures.values()]
    of_tasks = any(figures.probing_rebalances is not None for figures in runs)
    return "task_downtime_seconds" if of_tasks else "unowned_partition_seconds"


def share_met(outcome: Outcome, goals: Sequence[Requirement]) -> float:
    """The share of the point's seeds that meet all goals and are not marred."""
    runs = outcome.figures.values()
    return sum(not _mars(one) and all(goal.is_met(one) for goal in goals) for one in runs) / len(runs)


def meets(outcome: Outcome, goals: Sequence[Requirement]) -> bool:
    """Whether enough of the point's seeds meet each goal, and none is marred."""
    by_seed = {str(seed): figures for seed, figures in outcome.figures.items()}
    is_marred = any(map(_mars, by_seed.values()))
    return bool(by_seed) and not is_marred and not any(goal.unmet_by(by_seed) for goal in goals)


def _mars(figures: Figures) -> bool:
    """Whether an invariant broke in the run, or consumers ended with an error."""
    return bool(broken_invariants(figures)) or consumers_ended(figures) is not None


def sweep_grid(
    sweep: Sweep, outcomes: Sequence[Outcome], goals: Sequence[Requirement], everything: bool
) -> Grid:
    """``everything``: with ranges, and all figures."""
    ran = [outcome for outcome in outcomes if outcome.figures]
    runs = [figures for outcome in ran for figures in outcome.figures.values()]
    names = [name for name in COLUMNS if _says_something(name, runs)]
    if everything:
        names += [name for name in figure_names() if name not in names and _says_something(name, runs)]
        names = [name for name in names if name in figures_with_numbers()]
    headings = [", ".join(sweep.names), *(["goal met"] if goals else [])]
    rows = []
    for outcome in ran:
        cells = [f"{share_met(outcome, goals):.0%}"] if goals else []
        below = [""] * len(cells)
        for name in names:
            found = spread_of(getattr(figures, name) for figures in outcome.figures.values())
            cells.append("-" if found is None else brief(name, found.median))
            varies = found is not None and found.least != found.most
            below.append(range_shown(name, found) if everything and found is not None and varies else "")
        mark = "!" if any(map(_mars, outcome.figures.values())) else ""
        rows.append(Row(", ".join(outcome.point.labels), cells, below if any(below) else (), RANGE, mark))
    title = f"medians of {counted(sweep.seeds, 'seed')}, from seed {sweep.first_seed} on"
    notes = [f"! {_broken(runs)}"] if any(row.mark for row in rows) else []
    failures = dict.fromkeys(outcome.failure for outcome in ran if outcome.failure)
    notes += [f"An assignor failed, and with it the leader: {failure}" for failure in failures]
    notes += [
        f"Refused: {_with_names(sweep, outcome.point)}: {outcome.refused}"
        for outcome in outcomes
        if outcome.refused
    ]
    return Grid([*headings, *(COLUMNS.get(name, name) for name in names)], rows, title, notes)


def _broken(runs: Sequence[Figures]) -> str:
    """A sentence on marred runs: if their configuration is to blame, on the first one."""
    broken = [broken_invariants(figures) for figures in runs]
    found = [finding(one) for one in broken if one]
    if None in found:
        return "an invariant broke in some of these runs"
    if not found:
        return f"in some of these runs {next(filter(None, map(consumers_ended, runs)))}"
    return f"the group {verdict_on(found[0] or '')} in some of these runs ({found[0]})"


def _says_something(name: str, runs: Sequence[Figures]) -> bool:
    return any(getattr(figures, name, None) for figures in runs)


def _with_names(sweep: Sweep, point: Point, without: str = "") -> str:
    named = zip(sweep.names, point.labels, strict=True)
    return ", ".join(f"{name}={label}" for name, label in named if name != without)


def sweep_answer(
    sweep: Sweep,
    outcomes: Sequence[Outcome],
    goals: Sequence[Requirement],
    figure: str | None,
    weights: Mapping[str, float] | None = None,
) -> list[str]:
    """Which values meet the goals, or where the knee is, and which point to take.

    The knee is left out if a point can be recommended, unless ``figure`` asks for it: by the figures of the
    ranking another point may be the better one.
    """
    recommended = _recommendations(sweep, outcomes, goals, weights)
    if recommended and figure is None and not goals:
        return recommended
    return [
        *_knee_sentences(sweep, outcomes, goals, figure_of_interest(figure, goals, outcomes)),
        *recommended,
    ]


def _knee_sentences(
    sweep: Sweep, outcomes: Sequence[Outcome], goals: Sequence[Requirement], figure: str
) -> list[str]:
    """The knee for each combination of the other settings, and what crashes and deploys cost there."""
    if _axis_with_numbers(sweep) is None:
        return _without_axis(sweep, outcomes, goals)
    return [_curve_sentence(*curve, goals, figure) for curve in _curves(sweep, outcomes)]


def _recommendations(
    sweep: Sweep,
    outcomes: Sequence[Outcome],
    goals: Sequence[Requirement],
    weights: Mapping[str, float] | None,
) -> list[str]:
    """Which point to take, of those that meet the goals, in each of the circumstances that nobody chooses.

    Nothing if the points are no choices.
    """
    ran = [one for one in outcomes if one.figures and not one.broken]
    groups: dict[str, dict[str, Outcome]] = {}
    for outcome in ran:
        named = [*zip(sweep.names, outcome.point.labels, strict=True)]
        befalls = ", ".join(f"{name}={label}" for name, label in named if not _may_be_chosen(name))
        chosen = ", ".join(f"{name}={label}" for name, label in named if _may_be_chosen(name))
        groups.setdefault(befalls, {})[chosen] = outcome
    found: dict[str, list[str]] = {}
    for befalls, every in groups.items():
        among = {name: one for name, one in every.items() if not goals or meets(one, goals)}
        if not among:
            continue
        if len(among) < 2:
            return []
        scenarios = {name: sweep.scenario_of(one.point) for name, one in every.items()}
        # points that miss the goals tell, too, which settings the others had to change
        defaults = defaults_among(scenarios) or defaults_among({name: scenarios[name] for name in among})
        if defaults is None:
            return []
        runs = {name: list(outcome.figures.values()) for name, outcome in among.items()}
        start_us = sum(one.start_us for one in among.values())
        start = start_outweighs([*scenarios.values()], runs, start_us, weights)
        found[befalls] = [f"No recommendation: {start}."]
        if start is None:
            found[befalls] = [*recommendation(runs, defaults, weights), *not_ranked(unfit_variants(runs))]
    return [
        f"With {befalls}: {' '.join(sentences)}" if befalls else sentence
        for befalls, sentences in found.items()
        for sentence in (sentences if not befalls else sentences[:1])
    ]


def _may_be_chosen(axis: str) -> bool:
    return axis == VARIANT or is_choice(axis)


def sweep_notes(sweep: Sweep, outcomes: Sequence[Outcome]) -> list[str]:
    """Why points do not differ; each note once."""
    scenarios = [sweep.scenario_of(outcome.point) for outcome in outcomes if outcome.figures]
    return list(dict.fromkeys(note for one in scenarios if (note := unused_note(one)) is not None))


def sweep_contradictions(sweep: Sweep, points: Sequence[Point]) -> list[str]:
    """Sentences on settings that cannot go well together, by arithmetic: one for each rule.

    It names its points unless it is true for all of ``points``, and those for which the numbers differ.
    """
    scenarios = [(point.labels, sweep.scenario_of(point)) for point in points]
    found = found_in((labels, one.settings, one.steps) for labels, one in scenarios)
    sentences = []
    for sentence, true_for, alike in by_rule(found):
        where = "" if len(true_for) == len(points) else f"with {_points_named(sweep, true_for)}: "
        likewise = f"; likewise, in other numbers, with {_points_named(sweep, alike)}" if alike else ""
        sentences.append(f"{where}{sentence}{likewise}.")
    return sentences


def _points_named(sweep: Sweep, points: Sequence[tuple[str, ...]]) -> str:
    """Points by the values that set them apart, if they are all that have these; else the first ones."""
    here = [list(dict.fromkeys(labels)) for labels in zip(*points, strict=True)]
    if math.prod(map(len, here)) == len(points):
        apart = [
            f"{axis.name}={listed(labels)}"
            for axis, labels in zip(sweep.axes, here, strict=True)
            if len(labels) < len(axis.labels)
        ]
        return ", ".join(apart) if apart else "all"
    named = [_with_names(sweep, Point(labels, {})) for labels in points[:_NAMED_MAX]]
    more = len(points) - len(named)
    return "; ".join([*named, *([counted(more, "other point")] if more else [])])


def _axis_with_numbers(sweep: Sweep) -> Axis | None:
    return next((axis for axis in sweep.axes if axis.numbers is not None and len(axis.values) > 1), None)


def _curves(sweep: Sweep, outcomes: Sequence[Outcome]) -> list[tuple[Axis, str, list[Outcome]]]:
    """The axis with numbers and two or more outcomes along it, for each combination of the others' labels."""
    axis = _axis_with_numbers(sweep)
    curves: dict[str, list[Outcome]] = {}
    if axis is None:
        return []
    for outcome in outcomes:
        if outcome.figures:
            curves.setdefault(_with_names(sweep, outcome.point, without=axis.name), []).append(outcome)
    return [(axis, others, curve) for others, curve in curves.items() if len(curve) > 1]


def _curve_sentence(
    axis: Axis, others: str, curve: Sequence[Outcome], goals: Sequence[Requirement], figure: str
) -> str:
    place = knee_of(axis, curve, goals, figure)
    where = f"With {others}: " if others else ""
    if goals:
        whole = " and ".join(map(str, goals))
        met = [number for number, outcome in enumerate(curve) if meets(outcome, goals)]
        if place is None and met:
            last = met[-1]
            too = f" ({counted(len(met) - 1, 'smaller value')} of {last:,} as well)" if last else ""
            largest = f"{axis.name}={_label(axis, curve[last])} is the largest with which {whole} is met"
            return f"{where}{largest}{too}{_price(axis, curve, last)}."
        if place is None:
            best = max(curve, key=lambda one: (share_met(one, goals), -_distance(one, goals[0])))
            return (
                f"{where}no {axis.name} up to {_label(axis, curve[-1])} meets {whole}; {_label(axis, best)} "
                f"comes nearest, in {share_met(best, goals):.0%} of the seeds."
            )
        return (
            f"{where}{axis.name}={_label(axis, curve[place])} is the smallest from which on {whole} is met"
            f"{_price(axis, curve, place)}."
        )
    medians = [_median(outcome, figure) for outcome in curve]
    phrase = BY_FIGURE[figure].phrase if figure in BY_FIGURE else figure
    if place is None and len(set(medians)) == 1:
        return f"{where}{axis.name} makes no difference ({phrase}: {_shown(figure, medians[0])})."
    ends = _ends(axis, curve, figure)
    if place is None:
        return f"{where}no knee over {axis.name} ({phrase}: {ends})."
    return (
        f"{where}the knee is at {axis.name}={_label(axis, curve[place])} ({phrase}: "
        f"{_shown(figure, medians[place])}; {ends}){_price(axis, curve, place)}."
    )


def knee_of(axis: Axis, curve: Sequence[Outcome], goals: Sequence[Requirement], figure: str) -> int | None:
    """The place of the knee among the outcomes of a curve; None if there is none."""
    if goals:
        return first_that_meets([meets(outcome, goals) for outcome in curve])
    medians = [_median(outcome, figure) for outcome in curve]
    if any(median is None for median in medians):
        return None
    return furthest_from_chord(
        [float(outcome.point.settings[axis.name]) for outcome in curve],
        [median for median in medians if median is not None],
    )


def _ends(axis: Axis, curve: Sequence[Outcome], figure: str) -> str:
    parts = [
        f"{_shown(figure, _median(outcome, figure))} at {_label(axis, outcome)}"
        for outcome in ((curve[0], curve[-1]) if len(curve) > 1 else curve)
    ]
    return ", ".join(parts)


def _price(axis: Axis, curve: Sequence[Outcome], place: int) -> str:
    """The cost of crashes and deploys at the knee and at both ends."""
    parts = []
    for what, figure in (
        ("a deploy", "cost_per_deploy_partition_seconds"),
        ("a crash", "cost_per_crash_partition_seconds"),
    ):
        here = _median(curve[place], figure)
        if here is not None:
            parts.append(
                f"{what} costs {_shown(figure, here)} of un-owned time there ({_ends(axis, curve, figure)})"
            )
    return f"; {listed(parts)}" if parts else ""


def _without_axis(sweep: Sweep, outcomes: Sequence[Outcome], goals: Sequence[Requirement]) -> list[str]:
    """Values that are no numbers have no knee: which meet the goal."""
    if not goals:
        return []
    whole = " and ".join(map(str, goals))
    meeting = [_with_names(sweep, outcome.point) for outcome in outcomes if meets(outcome, goals)]
    return [f"{'; '.join(meeting) if meeting else 'No point'} meets {whole}."]


def _distance(outcome: Outcome, goal: Requirement) -> float:
    median = _median(outcome, goal.figure)
    return math.inf if median is None else abs(median - goal.limit)


def _label(axis: Axis, outcome: Outcome) -> str:
    return axis.labels[axis.values.index(outcome.point.settings[axis.name])]


def _median(outcome: Outcome, figure: str) -> float | None:
    found: Spread | None = spread_of(getattr(f, figure, None) for f in outcome.figures.values())
    return None if found is None else found.median


def _shown(figure: str, value: float | None) -> str:
    if value is None:
        return "-"
    return BY_FIGURE[figure].show(value) if figure in BY_FIGURE else brief(figure, value)


def sweep_csv(sweep: Sweep, outcomes: Sequence[Outcome]) -> str:
    """A row per run."""
    rows = [
        ((*outcome.point.labels, seed), figures)
        for outcome in outcomes
        for seed, figures in outcome.figures.items()
    ]
    return figures_csv((*sweep.names, "seed"), rows)


def sweep_content(
    scenario: Scenario,
    sweep: Sweep,
    outcomes: Sequence[Outcome],
    goals: Sequence[Requirement],
    figure: str | None,
    weights: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The content of `sweep.json`, of a sweep over ``scenario``.

    ``figure``: the one whose knee somebody asked for. ``weights``: those of the recommendation.
    """
    curved = figure_of_interest(figure, goals, outcomes)
    knees = []
    for axis, others, curve in _curves(sweep, outcomes):
        place = knee_of(axis, curve, goals, curved)
        value = None if place is None else _label(axis, curve[place])
        knees.append({"setting": axis.name, "others": others, "value": value})
    return {
        "preset": scenario.name,
        "question": scenario.question,
        "variant": sweep.variant,
        "seeds": list(range(sweep.first_seed, sweep.first_seed + sweep.seeds)),
        "set": dict(sweep.overrides),
        "over": {axis.name: list(axis.labels) for axis in sweep.axes},
        "goals": [str(goal) for goal in goals],
        "figure": curved,
        "points": [_point_content(sweep, outcome, goals) for outcome in outcomes],
        "knees": knees,
        "answer": " ".join(sweep_answer(sweep, outcomes, goals, figure, weights)),
    }


def _point_content(sweep: Sweep, outcome: Outcome, goals: Sequence[Requirement]) -> dict[str, Any]:
    content: dict[str, Any] = {"settings": dict(zip(sweep.names, outcome.point.labels, strict=True))}
    if outcome.refused is not None:
        return content | {"refused": outcome.refused}
    if goals:
        content |= {"goal_met": share_met(outcome, goals), "meets_goal": meets(outcome, goals)}
    return content | {
        "spread": spread(list(outcome.figures.values())),
        "runs": [
            {"seed": seed, "figures": figures.to_json(), "command": sweep.command(outcome.point, seed)}
            for seed, figures in outcome.figures.items()
        ],
    }

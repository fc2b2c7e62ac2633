"""`groupstorm.sweep`: one scenario with every combination of some settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from groupstorm.library.arguments import Settings, check_seed, check_seeds, read_storm, reported, weights_of
from groupstorm.library.sweep_result import SweepResult
from groupstorm.problems import InputError
from groupstorm.report.progress import RunsProgress
from groupstorm.report.sweeps import check_figure, figure_of_interest, sweep_content
from groupstorm.storms.runs.sweep import Sweep, axis_of
from groupstorm.storms.runs.sweep_runs import run_sweep
from groupstorm.verdicts.requirements import parse


def sweep(
    scenario: str | os.PathLike[str],
    over: Mapping[str, Iterable[Any]],
    seeds: int = 5,
    goal: str | Sequence[str] | None = None,
    *,
    variant: str | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
    figure: str | None = None,
    rank: str | None = None,
    progress: bool | RunsProgress = False,
) -> SweepResult:
    """Run a scenario with every combination of some settings on all cores, as `groupstorm sweep` does.

    ``over``: setting -> its values, or a text as --over takes it: "20s..80s:20s". "variant" stands for the
    scenario's variants. ``seeds``: so many of each combination, from ``seed`` on. ``goal``: what has to be
    met, such as "unowned_max_seconds<30 for 99%". ``figure``: whose knee to look for without a goal.
    ``rank``: what the best combination costs least of. For the others see `groupstorm.compare`.

    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.

    >>> import groupstorm
    >>> result = groupstorm.sweep(
    ...     "rolling-deploy",
    ...     over={"session.timeout.ms": [20_000, 40_000, 60_000]},
    ...     seeds=2,
    ...     goal="generations==0",
    ...     variant="static",
    ...     settings={"members": 6, "partitions": 12},
    ... )
    >>> result.knee
    60000
    """
    check_seed(seed)
    check_seeds(seeds)
    storm = read_storm(scenario, settings)
    goals = [parse(text, "goal") for text in ((goal,) if isinstance(goal, str) else goal or ())]
    check_figure(figure, "figure")
    weights = weights_of(rank, storm.scenario)
    if not over or not isinstance(over, Mapping):
        raise InputError(f"over: {over!r}: expected settings with values: {{'members': [20, 60]}}")
    axes = tuple(axis_of(str(name), values, storm.scenario) for name, values in over.items())
    first_seed = seed if seed is not None else storm.scenario.seed or 0
    wanted = Sweep(storm.named, variant, axes, first_seed, seeds, storm.changed)
    with reported(progress) as report:
        outcomes = run_sweep(wanted, report, "over", "settings:")
    chosen = figure_of_interest(figure, goals, outcomes)
    return SweepResult(sweep_content(storm.scenario, wanted, outcomes, goals, chosen, weights))

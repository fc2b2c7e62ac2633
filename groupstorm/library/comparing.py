"""`groupstorm.compare`: the variants of a scenario."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing

from groupstorm.library.arguments import Settings, check_seed, check_seeds, read_storm, reported, weights_of
from groupstorm.library.comparison import Comparison
from groupstorm.library.origins import OnDisk
from groupstorm.library.run_result import RunResult
from groupstorm.report.comparisons import comparison_content
from groupstorm.report.progress import RunsProgress
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.several import Order, check_variants, folder_of, run_all
from groupstorm.trace.temporary_folder import TemporaryFolder


def compare(
    scenario: str | os.PathLike[str],
    variants: Sequence[str] | None = None,
    seeds: int = 1,
    settings: Settings | None = None,
    *,
    seed: int | None = None,
    rank: str | None = None,
    progress: bool | RunsProgress = False,
) -> Comparison:
    """Run the variants of a scenario on all cores, as `groupstorm compare` does.

    ``variants``: all if they are left out. ``seeds``: so many of each variant, from ``seed`` on. ``rank``:
    what the best variant costs least of, as --rank takes it. ``progress``: True for a bar on standard error,
    or a function that takes how many runs are done, and how many there are. For ``scenario`` and ``settings``
    see `groupstorm.run`.

    The traces are in a temporary folder, which goes with the last of the runs.
    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.

    >>> import groupstorm
    >>> comparison = groupstorm.compare("rolling-deploy", settings={"members": 6, "partitions": 12})
    >>> list(comparison.runs)
    ['eager', 'cooperative', 'static', 'consumer']
    >>> {variant: figures.generations for variant, figures in comparison.figures.items()}
    {'eager': 12, 'cooperative': 18, 'static': 0, 'consumer': 12}
    """
    check_seed(seed)
    check_seeds(seeds)
    storm = read_storm(scenario, settings)
    weights = weights_of(rank, storm.scenario)
    chosen = check_variants(storm.named, (variants,) if isinstance(variants, str) else variants or ())
    first_seed, *_ = (storm.resolve(variant, seed).seed for variant in chosen)
    temporary = TemporaryFolder("groupstorm-compare-")
    orders = [
        Order(storm.named, variant, number, storm.changed, folder_of(temporary.path, variant, number, seeds))
        for variant in chosen
        for number in range(first_seed, first_seed + seeds)
    ]
    runs: dict[str, list[Run]] = {}
    with reported(progress) as report, closing(run_all(orders)) as finished_runs:
        for done, finished in enumerate(finished_runs, start=1):
            runs.setdefault(finished.scenario.variant, []).append(finished)
            report(done, len(orders))
    content = comparison_content(storm.scenario.name, first_seed, runs, weights)
    results = {variant: [_result(run, temporary) for run in each] for variant, each in runs.items()}
    return Comparison(results, str(content["answer"]), content)


def _result(run: Run, temporary: TemporaryFolder) -> RunResult:
    return RunResult(
        OnDisk(run.folder, run.scenario, temporary),
        scenario=run.scenario.written(),
        figures=run.figures,
        assignor_failure=run.assignor_failure,
    )

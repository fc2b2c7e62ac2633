"""`groupstorm.run`: one storm."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from groupstorm.library.arguments import Settings, check_seed, read_storm
from groupstorm.library.origins import InMemory
from groupstorm.library.run_result import RunResult
from groupstorm.report.progress import run_progress
from groupstorm.storms.runs.run import run_in_memory
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.storms.scenario.files import ResolvedScenario


def run(
    scenario: str | os.PathLike[str],
    variant: str | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
    *,
    progress: bool | Callable[[int, None], None] = False,
) -> RunResult:
    """Storm a group in virtual time, as `groupstorm run` does, without a folder.

    ``scenario``: a preset (`groupstorm list`) or a scenario file. ``variant``: the first if it is left out.
    ``seed``: the same seed gives the same rows; 0, or the file's. ``settings``: those to change, by Kafka's
    names: `groupstorm list --settings`. ``progress``: True for a line on standard error, or a function that
    takes the virtual seconds so far, and None: how many there will be is not known before the group settles.

    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.

    >>> import groupstorm
    >>> result = groupstorm.run("rolling-deploy", variant="static", seed=7, settings={"members": 20})
    >>> result.figures.unowned_max_seconds
    33.124742
    >>> print(result.answer.split("; ")[0])
    0 generations
    """
    check_seed(seed)
    resolved = read_storm(scenario, settings).resolve(variant, seed)
    with _reported(resolved, progress) as report:
        kept = run_in_memory(resolved, report)
    return RunResult(
        InMemory(kept),
        scenario=resolved.written(),
        figures=kept.figures,
        assignor_failure=kept.assignor_failure,
    )


@contextmanager
def _reported(
    scenario: ResolvedScenario, progress: bool | Callable[[int, None], None]
) -> Iterator[Progress | None]:
    if callable(progress):
        yield lambda now_us, _phase: progress(now_us // 1_000_000, None)
    elif progress:
        with run_progress(f"{scenario.name} ({scenario.variant})") as shown:
            yield shown
    else:
        yield None

"""`groupstorm sweep`: one scenario with every combination of some settings, as one table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from groupstorm import __version__
from groupstorm.cli.app import Stopped
from groupstorm.cli.failed_runs import requirements_of
from groupstorm.cli.options import overrides, seed_range
from groupstorm.cli.printing import (
    Shape,
    command_line,
    print_grid,
    print_json,
    print_made,
    print_paragraph,
    print_paragraphs,
    print_progress,
    shape,
)
from groupstorm.pipeline.sweep import TABLE_FILE, write_runs_table
from groupstorm.problems import InputError
from groupstorm.report.progress import runs_progress
from groupstorm.report.sweeps import (
    SWEEP_FILE,
    check_figure,
    sweep_answer,
    sweep_content,
    sweep_contradictions,
    sweep_csv,
    sweep_grid,
    sweep_notes,
)
from groupstorm.storms.runs.run_folder import folder_stem, free_folder, write_json
from groupstorm.storms.runs.several import SEEDS_DEFAULT, weights_of
from groupstorm.storms.runs.sweep import Sweep, check_sweep, parse_axis
from groupstorm.storms.runs.sweep_runs import (
    DEFINITION_FILE,
    Key,
    Plan,
    Result,
    RunOrders,
    SweepStore,
    definition_text,
    missing_orders,
    run_here,
)
from groupstorm.storms.scenario.files import load
from groupstorm.trace.parquet import import_pyarrow


def sweep(
    scenario: str | None = None,
    over: list[str] | None = None,
    variant: str | None = None,
    seed: int | None = None,
    settings: list[str] | None = None,
    seeds: int | None = None,
    goal: list[str] | None = None,
    figure: str | None = None,
    ranked_by: str | None = None,
    out: Path | None = None,
    master: str | None = None,
    read: Path | None = None,
    parquet: bool = False,
    as_json: bool = False,
    as_csv: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
) -> None:
    """Run a scenario with every combination of some settings, on all cores, and print one table.

    A row per point: medians over the seeds, the share of seeds that meet the goal, the cost of a crash beside
    the cost of a deploy. Points that the scenario refuses are listed with the reason. At the end: which point
    to take (--rank says what it costs least of), with its spread, and what that buys against the defaults.
    With a goal also the smallest value of the first --over that has numbers from which on all meet it; with
    --figure, or if nothing can be recommended, the knee: the point of the figure's curve that lies furthest
    from the line between its ends.

    Files: sweep.json in DIR, with the figures of every seed and the command that runs it with its trace, once
    all runs are done; DIR is runs/<preset>-sweep-<seeds> unless --out says otherwise. Each run is kept
    in DIR when it is done: after a kill the same command goes on. --read DIR answers again.

    Example: groupstorm sweep rolling-deploy --variant static --over session.timeout.ms=20s..80s:20s --seeds 3
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    goals = requirements_of(goal, "--goal")
    check_figure(figure)
    if read is None:
        wanted = _wanted(scenario, over, variant, seed, seeds, overrides(settings))
    else:
        given: dict[str, object] = {"PRESET|FILE": scenario, "--over": over, "--variant": variant}
        given |= {"--seed": seed, "--seeds": seeds, "--set": settings, "--out": out, "--master": master}
        wanted = _read(read, given)
    loaded = load(wanted.scenario)
    weights = weights_of(loaded, ranked_by or None)
    plan = Plan(wanted, wanted.points())
    if parquet:
        import_pyarrow()  # before the runs: raises InputError if it is not installed
    if not plan.orders:
        raise InputError(f"--over: every point is refused: {plan.refused[0]}")
    _print_before_runs(loaded.question, plan, chosen_shape, read is not None)
    store = SweepStore(read) if read is not None else run_and_keep(plan, loaded.name, out, master)
    outcomes = plan.outcomes(read_back(plan, store))
    if all(outcome.refused for outcome in outcomes):
        raise InputError(f"--over: every point is refused: {outcomes[0].refused}")
    content = sweep_content(loaded, wanted, outcomes, goals, figure, weights)
    if parquet or master is not None:
        write_runs_table(wanted, outcomes, store.folder / TABLE_FILE)
    if read is None:
        write_json(store.folder / SWEEP_FILE, content)
    if chosen_shape is Shape.JSON:
        print_json(content)
    elif chosen_shape is Shape.CSV:
        print_made(sweep_csv(wanted, outcomes))
    else:
        print_grid(sweep_grid(wanted, outcomes, goals, everything), chosen_shape)
        answer = sweep_answer(wanted, outcomes, goals, figure, weights)
        print_paragraphs([*sweep_notes(wanted, outcomes), *answer])
        if read is None:
            print()
            print_paragraph(f"All figures, and a command for each run: {store.folder / SWEEP_FILE}")


def _read(folder: Path, given: Mapping[str, Any]) -> Sweep:
    """The sweep that a folder holds. Raises InputError for an option that says what a sweep is."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--read {folder}: says which sweep it is: expected no {name}")
    return SweepStore(folder).sweep()


def _wanted(
    scenario: str | None,
    over: Sequence[str] | None,
    variant: str | None,
    seed: int | None,
    seeds: int | None,
    changed: Mapping[str, Any],
) -> Sweep:
    """The sweep that the options name. Raises InputError."""
    if scenario is None:
        raise InputError("PRESET|FILE: expected a scenario, or --read DIR for a sweep that is finished")
    if not over:
        raise InputError("--over: expected a setting and its values, as in session.timeout.ms=10s..120s:10s")
    loaded = load(scenario)
    axes = tuple(parse_axis(text, loaded) for text in over)
    first_seed = seed if seed is not None else loaded.seed or 0
    wanted = Sweep(scenario, variant, axes, first_seed, SEEDS_DEFAULT if seeds is None else seeds, changed)
    check_sweep(wanted)
    return wanted


def _print_before_runs(question: str, plan: Plan, chosen_shape: Shape, are_done: bool) -> None:
    """The question, and which settings cannot go well together unless the runs have shown it."""
    if chosen_shape is not Shape.TABLES:
        return
    print_paragraph(" ".join(question.split()), emphasized=True)
    if not are_done:
        possible = [point for place, point in enumerate(plan.points) if place not in plan.refused]
        print_paragraphs(sweep_contradictions(plan.sweep, possible), "Before any run: ")
    print()


def run_and_keep(plan: Plan, name: str, out: Path | None, master: str | None) -> SweepStore:
    """Do the runs that are not done yet; returns the store that has them all.

    Without ``out``, the folder that the sweep's name gives: a sweep that is finished there begins anew.
    """
    definition = definition_text(plan, __version__)
    store = SweepStore(out if out is not None else _named_folder(plan, name, definition))
    answer = store.folder / SWEEP_FILE
    with store.begun(definition):
        if out is None and answer.exists():
            answer.unlink()
            store.forget_runs()
        if missing := missing_orders(plan, store):
            total = len(plan.orders)
            earlier = total - len(missing)
            with runs_progress() as progress, _runner(master) as run, _told_how_to_go_on(plan, store, out):
                run(missing, store, lambda done: progress(earlier + done, total))
    return store


def read_back(plan: Plan, store: SweepStore) -> Mapping[Key, Result]:
    """All runs of a finished sweep. Raises InputError."""
    store.check(definition_text(plan, __version__))
    results = store.results()
    if len(results) < len(plan.orders):
        raise InputError(
            f"--read {store.folder}: {len(results)} of {len(plan.orders)} runs are done: "
            f"give the sweep's own command again, with --out {store.folder}"
        )
    return results


def _named_folder(plan: Plan, name: str, definition: str) -> Path:
    sweep = plan.sweep
    seeds = seed_range(sweep.first_seed, sweep.seeds)
    stem = folder_stem(name, seeds, kind="sweep", variants=sweep.variant or "", changed=sweep.overrides)
    return free_folder(stem, {DEFINITION_FILE: definition})


@contextmanager
def _runner(master: str | None) -> Iterator[RunOrders]:
    """The function that does the runs: in processes of this machine, or on Spark. Raises InputError."""
    if master is None:
        yield run_here
        return
    from groupstorm.pipeline.session import spark_session
    from groupstorm.pipeline.sweep import repeating_tasks, run_on_spark

    with spark_session(master=repeating_tasks(master)) as spark:
        yield partial(run_on_spark, spark)


@contextmanager
def _told_how_to_go_on(plan: Plan, store: SweepStore, out: Path | None) -> Iterator[None]:
    """If the block is interrupted when runs are done, print the command that does the others."""
    try:
        yield
    except Stopped:
        if done := len(store.results()):
            command = command_line(*sys.argv[1:], *(() if out is not None else ("--out", str(store.folder))))
            print_progress(f"  {done} of {len(plan.orders)} runs are done; for the others: {command}")
        raise
